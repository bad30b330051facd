"""The parts of the Python package that are not Python: an installation of the command, the libraries and the headers, and the analysis module.

cargo builds them and tools/install.sh installs them, with the package as the prefix: so ``weft`` and the libraries find each other in a
wheel by the same paths as anywhere else.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Optional

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "crates/python/python/weftline"
# The second extension module. maturin makes only the first; this one is the same for all versions of Python.
ANALYSIS = ("lib_analysis.so", "_analysis.abi3.so")
# What is taken of the installation. Manuals and completions have no place in a wheel.
STAGED = ("bin", "lib", "include")


def target_directory() -> Path:
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()


def version() -> str:
    """That of the workspace, which all packages share."""
    found = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found, "Cargo.toml states the version"
    return found[1]


def build(*options: str) -> Path:
    """Builds and gives the directory with the products; ``options`` are those of tools/build.sh. `_analysis` does not depend on an interpreter."""
    environment = {**os.environ, "PYO3_NO_PYTHON": "1"}
    command = [str(ROOT / "tools/build.sh"), *options]
    return Path(subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout.strip())


def stage(built: Path, sql: bool = False) -> None:
    """Installs what was built into the package; ``sql``: weft-sql too, where it was built."""
    unstage()
    with TemporaryDirectory() as prefix:
        subprocess.run([ROOT / "tools/install.sh", built / "weft", prefix], check=True, stdout=subprocess.DEVNULL)
        for place in STAGED:
            for path in sorted(Path(prefix, place).rglob("*")):
                # The static library is as big as all the rest, and nobody links one out of a Python package.
                if not path.is_dir() and path.suffix != ".a" and (sql or path.name != "weft-sql"):
                    take(path, PACKAGE / path.relative_to(prefix))
    built_name, name = ANALYSIS
    shutil.copy2(built / built_name, PACKAGE / name)
    strip(PACKAGE / name)


def parts() -> str:
    """Which optional parts the package has, and what adds the others; with nothing of this machine."""
    weft = PACKAGE / "bin/weft"
    return subprocess.run([weft, "doctor", "--parts"], check=True, stdout=subprocess.PIPE, text=True, env={"PATH": str(weft.parent)}).stdout


def take(source: Path, destination: Path) -> None:
    """Copies one file. A wheel cannot hold links: see :func:`link`."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        link(source, destination)
    elif soname(source) in (None, source.name):
        shutil.copy2(source, destination)
        strip(destination)


def link(source: Path, destination: Path) -> None:
    """The name that programs load becomes the library, the name for ``-l`` a line that tells the linker of it."""
    real = source.resolve()
    loaded = soname(real) or real.name
    if source.name == loaded or source.name.endswith("_preload.so"):
        shutil.copy2(real, destination)
        strip(destination)
    elif source.suffix == ".so":
        destination.write_text(f"INPUT({loaded})\n")


def soname(path: Path) -> Optional[str]:
    """The name by which the loader knows a shared library."""
    if not path.name.startswith("lib") or ".so" not in path.name:
        return None
    dynamic = subprocess.run(["readelf", "--dynamic", "--wide", str(path)], capture_output=True, text=True, check=True).stdout
    named = [line.partition("[")[2].rstrip("]") for line in dynamic.splitlines() if "(SONAME)" in line]
    return named[0] if named else None


def unstage() -> None:
    """Removes what :func:`stage` put there."""
    for place in STAGED:
        shutil.rmtree(PACKAGE / place, ignore_errors=True)
    (PACKAGE / ANALYSIS[1]).unlink(missing_ok=True)


def strip(path: Path) -> None:
    """Takes out what only those need who build Weftline."""
    with path.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return
    subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)
