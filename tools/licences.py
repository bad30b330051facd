#!/usr/bin/env python3
"""Prints the licences of all crates that are linked into programs: tools/licences.py TRIPLE WORDS…

WORDS choose packages and features, as for `cargo build`; `tools/build.sh --packages` prints them. `cargo tree` lists the crates that cargo builds for
them (`cargo metadata` would unify the features of the whole workspace), `cargo metadata` says where their sources are. Each different text is printed
once. Fails if a crate states no licence.
"""

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# C sources inside crates (zstd, libdeflate) have theirs in directories of their own.
TEXT = re.compile(r"(un)?licen[cs]e|copying|copyright|notice", re.IGNORECASE)
# Sources that merely mention licences in their names.
SOURCE = {".rs", ".c", ".h", ".py", ".sh", ".toml", ".json", ".yml", ".yaml", ".html", ".in"}


def cargo(*words: str) -> str:
    return subprocess.run(["cargo", *words, "--locked"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(triple: str, words: "list[str]") -> "dict[tuple[str, str], str]":
    """Name and version of all crates that end up in programs, with their licence; ours are left out, and what only runs in a build."""
    # The package weftline-unify only names features: what it alone depends on is not linked.
    tree = cargo(
        "tree", "--edges", "normal,no-proc-macro", "--target", triple, "--prefix", "none", "--prune", "weftline-unify",
        "--format", "{p}|{l}|", *words,
    )  # fmt: skip
    found = {}
    for line in filter(None, tree.splitlines()):
        package, licence, _ = line.split("|")
        name, version, *place = package.split(" ")
        if not place:
            found[name, version.removeprefix("v")] = licence
    return found


def texts(directory: Path) -> "list[str]":
    files = sorted(path for path in directory.rglob("*") if TEXT.match(path.name) and path.suffix not in SOURCE and path.is_file())
    return [path.read_text(encoding="utf-8", errors="replace").strip() for path in files]


def main() -> None:
    triple, words = sys.argv[1], sys.argv[2:]
    crates = linked(triple, words)
    nameless = [" ".join(crate) for crate, licence in crates.items() if not licence]
    if nameless:
        sys.exit(f"licences: no licence is stated by {', '.join(sorted(nameless))}")
    # Crates that only a feature brings in are known where the feature is on.
    features = [word for at, word in enumerate(words) if "--features" in words[max(at - 1, 0) : at + 1]]
    packages = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", triple, *features))["packages"]
    places = {(package["name"], package["version"]): Path(package["manifest_path"]).parent for package in packages}

    # Texts that differ in white space alone are one.
    numbers: "dict[str, tuple[int, str]]" = {}
    rows = []

    def row(name: str, version: str, licence: str, found: "list[str]") -> None:
        own = sorted({numbers.setdefault(" ".join(text.split()), (len(numbers) + 1, text))[0] for text in found})
        rows.append(f"{name} {version}: {licence}{''.join(f' [{number}]' for number in own)}")

    for (name, version), licence in sorted(crates.items()):
        row(name, version, licence, texts(places[name, version]))
    toolchain = subprocess.run(["rustc", "--print", "sysroot"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    version = subprocess.run(["rustc", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[1]
    standard = [Path(toolchain, "share/doc/rust/licenses", name) for name in ("Apache-2.0.txt", "MIT.txt")]
    row("Rust's standard library", version, "MIT OR Apache-2.0", [path.read_text().strip() for path in standard if path.is_file()])

    # zig links LLVM's unwinder into programs, where others load libgcc_s.
    zig = importlib.util.find_spec("ziglang")
    if zig and zig.origin:
        unwinder = Path(zig.origin).with_name("lib") / "libunwind/LICENSE.TXT"
        row("LLVM's libunwind, of zig", importlib.metadata.version("ziglang"), "Apache-2.0 WITH LLVM-exception", [unwinder.read_text().strip()])

    print("Software of others in Weftline, with its licences. Numbers name the texts below, which come from the sources of each.\n")
    print("\n".join(rows))
    for number, text in numbers.values():
        print(f"\n{'=' * 100}\n[{number}]\n\n{text}")


if __name__ == "__main__":
    main()
