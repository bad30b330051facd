"""Builds the Python package (PEP 517, PEP 660): cargo makes the command, the libraries and ``_analysis``, maturin ``_native``.

``pip install .`` comes here through ``pyproject.toml``. The sdist holds the whole source tree, so that it can build all of them too.
"""

import subprocess
import sys
import sysconfig
import tarfile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Optional

import maturin
import product

Settings = Optional[dict[str, Any]]

# Vectorcall is part of the stable interface since this version: see crates/python/Cargo.toml.
VECTORCALL = (3, 12)
# What a source distribution holds of the tree.
SOURCES = (
    "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "Cargo.lock", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "Makefile",
    "README.md", "crates", "docs", "pyproject.toml", "rust-toolchain.toml", "rustfmt.toml", "tools/build.sh", "tools/install.sh", "tools/wheels", "xtask",
)  # fmt: skip


def features(version: tuple[int, ...]) -> list[str]:
    """cargo's options for the module of this Python."""
    return ["--no-default-features", "--features", "abi3-py312"] if version >= VECTORCALL else []


def settings(given: Settings) -> dict[str, Any]:
    return {"maturin.build-args": features(sys.version_info[:2]), **(given or {})}


def refuse_others() -> None:
    if sys.implementation.name != "cpython":
        raise SystemExit(f"weftline needs CPython; this is {sys.implementation.name}")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit("weftline does not support free-threaded Python yet; use the ordinary build of it")


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, settings(config_settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None) -> str:
    refuse_others()
    return announced(maturin.build_wheel, wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None) -> str:
    refuse_others()
    return announced(maturin.build_editable, wheel_directory, config_settings, metadata_directory)


def announced(build: Callable[..., str], wheel_directory: str, config_settings: Settings, metadata_directory: Optional[str]) -> str:
    """Builds everything, and ends with what the package holds (`pip install -v` shows it)."""
    product.stage(product.build("--python"), sql=True)
    wheel = build(wheel_directory, settings(config_settings), metadata_directory)
    print(product.parts(), end="", flush=True)
    return wheel


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    with TemporaryDirectory() as directory:
        information = Path(directory) / prepare_metadata_for_build_wheel(directory, config_settings)
        metadata = (information / "METADATA").read_bytes()
        name = information.name.removesuffix(".dist-info")
    with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo(f"{name}/PKG-INFO")
        entry.size = len(metadata)
        archive.addfile(entry, BytesIO(metadata))
        for path in sources():
            archive.add(product.ROOT / path, f"{name}/{path}", recursive=False)
    return f"{name}.tar.gz"


def sources() -> list[str]:
    """The files of the tree: what git knows or would take, or, in an unpacked sdist, all."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *SOURCES],
        cwd=product.ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if listed.returncode == 0 and listed.stdout:
        return [path for path in listed.stdout.decode().split("\0") if path and (product.ROOT / path).is_file()]
    found = (path for source in SOURCES for path in [product.ROOT / source, *(product.ROOT / source).rglob("*")])
    made = [product.PACKAGE / place for place in (*product.STAGED, product.ANALYSIS[1])]

    def wanted(path: Path) -> bool:
        return path.is_file() and not {"target", "__pycache__"} & set(path.parts) and not set(made) & {path, *path.parents}

    return [str(path.relative_to(product.ROOT)) for path in found if wanted(path)]
