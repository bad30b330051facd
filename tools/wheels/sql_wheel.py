"""The wheel ``weftline-sql``: the program weft-sql and nothing else, for ``weft query`` and ``weftline.open(…).sql``.

Written by hand: a wheel is an archive with three lists, and no builder of Python packages supports a finished program.
"""

import base64
import hashlib
import zipfile
from pathlib import Path
from shutil import copy2
from tempfile import TemporaryDirectory

import product

# `weft` and `weftline.analysis` look for the program there.
PACKAGE = "weftline_sql"
INIT = '"""Holds weft-sql, the program that answers `weft query` and `weftline.open(...).sql(...)`; there is nothing to import."""\n'
SUMMARY = "SQL for Weftline: brings `weft query` and `weftline.open(...).sql(...)`"


def write(out: Path, program: Path, platform: str, licences: str) -> Path:
    """Makes the wheel in ``out``; ``licences`` is the list for what is linked into the program."""
    version = product.version()
    information = f"{PACKAGE}-{version}.dist-info"
    tag = f"py3-none-{platform}"
    metadata = [
        "Metadata-Version: 2.4", "Name: weftline-sql", f"Version: {version}", f"Summary: {SUMMARY}", "License-Expression: MIT OR Apache-2.0",
        "License-File: LICENSE-APACHE", "License-File: LICENSE-MIT", "License-File: THIRD-PARTY.txt",
        # The program reads the index that weft writes, and both are made of one source.
        f"Requires-Dist: weftline=={version}", "Requires-Python: >=3.9",
    ]  # fmt: skip
    with TemporaryDirectory() as directory:
        stripped = Path(copy2(program, directory))
        product.strip(stripped)
        files = {
            f"{PACKAGE}/__init__.py": INIT.encode(),
            f"{PACKAGE}/bin/weft-sql": stripped.read_bytes(),
            f"{information}/METADATA": "\n".join([*metadata, ""]).encode(),
            f"{information}/WHEEL": f"Wheel-Version: 1.0\nGenerator: weftline\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
            f"{information}/licenses/THIRD-PARTY.txt": licences.encode(),
        }
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        files[f"{information}/licenses/{name}"] = (product.ROOT / name).read_bytes()
    record = f"{information}/RECORD"
    files[record] = "".join([*(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items()), f"{record},,\n"]).encode()

    for old in out.glob(f"{PACKAGE}-*.whl"):
        old.unlink()
    wheel = out / f"{PACKAGE}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.endswith("weft-sql") else 0o100644) << 16
            archive.writestr(entry, data)
    return wheel


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
