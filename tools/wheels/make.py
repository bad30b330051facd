#!/usr/bin/env python3
"""Builds the wheels, checks them, and installs each into a fresh environment of every Python on the machine. Use `make wheels`.

Two wheels of the same sources: one for CPython 3.9 and later (the oldest that PyO3 supports), one for 3.12 and later, which is called
through vectorcall; pip takes the second where it can. zig links against an old glibc, so that they run on distributions of 2014. With --sql it
makes the wheel ``weftline-sql`` for them, which holds the program that executes queries and takes longer to build than all the rest.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import product
import sql_wheel

HERE = Path(__file__).resolve().parent
GLIBC = (2, 17)
OLDEST = (3, 9)
FLAVOURS = {"abi3-py39": (3, 9), "abi3-py312": (3, 12)}


def say(words: str) -> None:
    print(f"wheels: {words}", file=sys.stderr, flush=True)


def run(*command: object, **more: object) -> str:
    """Runs a command and gives what it printed; what it said on stderr is shown when it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload]
    if done.returncode != 0:
        sys.exit(f"wheels: {' '.join(str(word) for word in command)} failed with {done.returncode}\n{done.stdout}")
    return str(done.stdout)


def compilers(target: str) -> dict[str, str]:
    """The compilers and linkers that cargo-zigbuild sets for cargo.

    maturin sets its own, which are the same programs by other paths. cargo would take them for others and build all dependencies again, up to 2
    CPU-minutes; variables that are there already stay.
    """
    with TemporaryDirectory() as directory:
        listing, cargo = Path(directory, "environment"), Path(directory, "cargo")
        cargo.write_text(f'#!/bin/sh\n[ "$1" != build ] || exec env --null >"{listing}"\nexec cargo "$@"\n')
        cargo.chmod(0o755)
        run("cargo-zigbuild", "zigbuild", "--target", target, cwd=product.ROOT, env={**os.environ, "CARGO": str(cargo)})
        pairs = (line.partition("=") for line in listing.read_text().split("\0"))
        triple = target.partition(".")[0].replace("-", "_")
        return {name: value for name, _, value in pairs if triple in name.lower()}


def build(out: Path, machine: str) -> None:
    """Both wheels, in ``out``."""
    target = f"{machine}-unknown-linux-gnu"
    versioned = f"{target}.{GLIBC[0]}.{GLIBC[1]}"
    product.stage(product.build("--python", "--target", versioned))
    environment = {**os.environ, **compilers(versioned), "PYO3_NO_PYTHON": "1"}
    for wheel in out.glob("weftline-*.whl"):
        wheel.unlink()
    for feature, version in FLAVOURS.items():
        say(f"building for Python {version[0]}.{version[1]} and later")
        run(
            "maturin", "build", "--release", "--locked", "--zig", "--target", target, "--out", out,
            "--compatibility", f"manylinux_{GLIBC[0]}_{GLIBC[1]}", "--auditwheel", "check",
            "--no-default-features", "--features", feature,
            cwd=product.ROOT,
            # No interpreter is needed for the stable interface, and the one at hand may be older than the flavour.
            env=environment,
        )  # fmt: skip


def build_sql(out: Path, machine: str) -> None:
    """The wheel ``weftline-sql``, in ``out``."""
    say("building weftline-sql")
    target = f"{machine}-unknown-linux-gnu"
    built = product.build("--sql-only", "--target", f"{target}.{GLIBC[0]}.{GLIBC[1]}")
    packages = run(product.ROOT / "tools/build.sh", "--sql-only", "--packages").split()
    licences = run(product.ROOT / "tools/licences.py", target, *packages)
    sql_wheel.write(out, built / "weft-sql", f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}", licences)


def audit(wheel: Path) -> None:
    """All programs and libraries of the wheel, not only the module, run on the glibc that its name promises."""
    said = run(Path(sys.executable).parent / "auditwheel", "show", wheel)
    found = re.search(r'constrains the platform tag to\s+"manylinux_(\d+)_(\d+)_', " ".join(said.split()))
    found = found or re.search(r'consistent with the following platform tag: "manylinux_(\d+)_(\d+)_', " ".join(said.split()))
    promised = re.search(r"manylinux_(\d+)_(\d+)_", wheel.name)
    if not found or not promised or tuple(map(int, found.groups())) > tuple(map(int, promised.groups())):
        sys.exit(f"wheels: {wheel.name} promises more than it keeps:\n{said}")
    say(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, glibc {found[1]}.{found[2]}")


def pythons() -> dict[tuple[int, int], Path]:
    """One interpreter of every version of CPython on this machine: those of PATH and of pyenv."""
    directories = [Path(part) for part in os.environ["PATH"].split(os.pathsep) if part and "shims" not in part]
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    directories += sorted(path / "bin" for path in (root / "versions").glob("*"))
    found: dict[tuple[int, int], Path] = {}
    for directory in directories:
        for path in sorted(directory.glob("python3.*")):
            named = re.fullmatch(r"python3\.(\d+)", path.name)
            version = (3, int(named[1])) if named else (0, 0)
            if version >= (3, 8) and version not in found:
                works = subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0
                if works:
                    found[version] = path
    return dict(sorted(found.items()))


def smoke(version: tuple[int, int], python: Path, wheels: Path, work: Path, sql: bool) -> None:
    """Installs by pip's own choice, and looks whether everything in the wheel works."""
    venv = work / f"{version[0]}.{version[1]}"
    shutil.rmtree(venv, ignore_errors=True)
    run(python, "-m", "venv", venv)
    install = [venv / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links", wheels]
    if version < OLDEST:
        done = subprocess.run([*map(str, install), "weftline"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            sys.exit(f"wheels: pip installed weftline for Python {version}, which is not supported")
        say(f"Python {version[0]}.{version[1]}: refused by pip, as it must be")
        return
    run(*install, "weftline")
    print(run(venv / "bin/python", HERE / "smoke.py", venv / "bin/weft"), end="", file=sys.stderr)
    if sql:
        run(*install, "weftline-sql")
        print(run(venv / "bin/python", HERE / "smoke.py", venv / "bin/weft", "--sql"), end="", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=product.target_directory() / "wheels", help="where the wheels go")
    parser.add_argument("--work", type=Path, default=product.target_directory() / "wheels-check", help="environments go here")
    parser.add_argument("--machine", default=os.uname().machine)
    parser.add_argument("--sql", action="store_true", help="build and check weftline-sql, for the wheels that are there or else with them")
    parser.add_argument("--no-build", action="store_true", help="check the wheels that are there")
    options = parser.parse_args()
    # maturin, zig and cargo-zigbuild lie beside this interpreter.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.no_build:
        if not options.sql or not list(options.out.glob(f"weftline-{product.version()}-*.whl")):
            build(options.out, options.machine)
        if options.sql:
            build_sql(options.out, options.machine)
    wheels = sorted(options.out.glob("weftline-*.whl"))
    sql_wheels = sorted(options.out.glob("weftline_sql-*.whl")) if options.sql else []
    if len(wheels) != len(FLAVOURS) or len(sql_wheels) != options.sql:
        sys.exit(f"wheels: expected {len(FLAVOURS)} wheels in {options.out}, found {[wheel.name for wheel in wheels + sql_wheels]}")
    for wheel in wheels + sql_wheels:
        audit(wheel)
    for version, python in pythons().items():
        smoke(version, python, options.out, options.work, options.sql)
    print(product.parts(), end="", file=sys.stderr)


if __name__ == "__main__":
    main()
