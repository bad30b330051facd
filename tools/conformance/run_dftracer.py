#!/usr/bin/env python3
"""Runs DFTracer's own black-box tests against Weftline's drop-in: run_dftracer.py --work DIR --venv VENV   (`make conformance`)

The tests are those of its source distribution on PyPI, unchanged: its test/CMakeLists.txt and its scripts that count lines and run jq. Left
out are those of its internal classes (test/unit) and of its analysis (test/dfanalyzer), which link its own sources.

`deviations.toml` names the tests that are known to fail, with the reason; docs/compat.md has the same. A test that fails and is not named there, one
that is named and passes, and one that is named and does not exist are errors.
"""

import argparse
import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.parse
import urllib.request
import xml.etree.ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs/compat.md"
ARCHIVE = "dftracer-2.2.0.tar.gz"
SHA256 = "53642fc5ea16a9155b31e9fe9bfe61ab0588f7c70c8eedf7cec51c7fa6d5aaed"
INDEX = "https://pypi.org/simple/dftracer/"
# Folders of tests that are no black boxes: their CMakeLists.txt is emptied.
WHITE_BOXES = ("unit", "dfanalyzer")
# What a developer's shell carries must change no result.
UNWANTED = ("DFTRACER_", "WEFT_", "LD_", "PYTHON")


def fetch(directory: Path) -> Path:
    """The archive. Not by `pip download`, which would configure DFTracer's build to learn its name."""
    archive = directory / ARCHIVE
    if not archive.exists() or digest(archive) != SHA256:
        with urllib.request.urlopen(INDEX, timeout=60) as page:
            links = re.findall(r'href="([^"#]+)', page.read().decode())
        (link,) = {link for link in links if link.endswith("/" + ARCHIVE)}
        with urllib.request.urlopen(urllib.parse.urljoin(INDEX, link), timeout=600) as source, archive.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    if digest(archive) != SHA256:
        raise SystemExit(f"conformance: {archive} is not the file that the list of deviations was made for")
    return archive


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def unpack(archive: Path, directory: Path) -> Path:
    """The tests alone."""
    shutil.rmtree(directory, ignore_errors=True)
    top = ARCHIVE.removesuffix(".tar.gz")
    with tarfile.open(archive) as packed:
        if hasattr(tarfile, "data_filter"):
            packed.extraction_filter = tarfile.data_filter
        packed.extractall(directory, [part for part in packed if part.name.startswith(f"{top}/test/")])
    tests = directory / top / "test"
    for folder in WHITE_BOXES:
        (tests / folder / "CMakeLists.txt").write_text("")
    return tests


def run_tests(tests: Path, build: Path, python: Path) -> dict[str, str]:
    """Each test's name, and what it said if it failed."""
    shutil.rmtree(build, ignore_errors=True)
    find = "import pathlib, weftline; print(pathlib.Path(weftline.__file__).parent)"
    prefix = subprocess.run([python, "-c", find], check=True, capture_output=True, text=True).stdout.strip()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(UNWANTED)}
    configure = ["cmake", "-S", HERE, "-B", build, f"-DTESTS={tests}", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DDFTRACER_PYTHON_EXE={python}"]
    subprocess.run(configure, check=True, env=environment, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build], check=True, env=environment, stdout=subprocess.DEVNULL)
    results = build / "results.xml"
    # Its status says no more than the file.
    subprocess.run(["ctest", "--test-dir", build, "--timeout", "120", "--output-junit", results, "--quiet"], check=False, env=environment)
    failed = {}
    for case in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
        failure = case.find("failure")
        said = (case.findtext("system-out") or "").strip()
        failed[case.attrib["name"]] = "" if failure is None else f"{failure.get('message') or 'failed'}\n{said}"
    return failed


def judge(found: dict[str, str], deviations: list[dict[str, str]], page: str) -> list[str]:
    """What is wrong with the results, the list and the page."""
    wrong = []
    known: set[str] = set()
    for deviation in deviations:
        pattern, reason = deviation["tests"], deviation["reason"]
        named = fnmatch.filter(found, pattern)
        if not named:
            wrong.append(f"{pattern}: there is no such test")
        wrong += [f"{name}: passes, although it is listed: {reason}" for name in named if not found[name]]
        known.update(named)
        if f"`{pattern}`" not in page:
            wrong.append(f"{pattern}: {PAGE.relative_to(ROOT)} does not have it")
    for name, said in found.items():
        if said and name not in known:
            wrong.append(f"{name}: failed\n" + "\n".join(f"    {line}" for line in said.splitlines()[-30:]))
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="where archive, tests and results go")
    parser.add_argument("--venv", type=Path, required=True, help="a virtual environment with weftline, weftline-dftracer and requirements.txt")
    given = parser.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    tests = unpack(fetch(work), work / "source")
    found = run_tests(tests, work / "build", given.venv.absolute() / "bin/python3")
    if not found:
        print("conformance: no test was found", file=sys.stderr)
        return 1
    deviations = tomllib.loads((HERE / "deviations.toml").read_text())["deviation"]
    wrong = judge(found, deviations, PAGE.read_text())
    passed = sum(not said for said in found.values())
    print(f"dftracer {ARCHIVE[9:14]}: {passed} of {len(found)} tests pass, {len(found) - passed} do not")
    for line in wrong:
        print(f"conformance: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
