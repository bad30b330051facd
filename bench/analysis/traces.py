"""The traces that are analysed: one generated job in several forms, and what DFTracer's own generator makes."""

import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import measure

# The calls that the selective filter looks for.
ONE_NAME = "fsync"
# How long the generated job takes, whatever the number of its events.
SECONDS = 600
# What the others leave beside a trace.
LITTER = (".dftindex", ".dftindex-cache", "split", "worker_*")
# The file of a form that is not a compressed one; a run is a directory.
FILE_OF = {"plain": "trace.pfw", "run": ""}
# Processes of DFTracer's generator, and events that each makes in one of its steps.
FAKE_RANKS, FAKE_EVENTS_PER_STEP = 8, 19.8


@dataclass
class Trace:
    """A directory with trace files, and what a correct analysis finds there."""

    name: str
    directory: Path
    events: int
    # Pairs of category and name, and calls of `ONE_NAME`; None where only the events are known.
    pairs: int | None = None
    matches: int | None = None
    # None where the time is not known, or a part of it would not hold its share of the events.
    seconds: int | None = None

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.directory.iterdir() if path.name.endswith((".pfw", ".pfw.gz")))

    @property
    def bytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)

    def copy_for(self, stack: str) -> "Trace":
        """The same files (hard links) in a directory of their own: dftracer-utils does not read other versions' index."""
        directory = self.directory.with_name(f"{self.directory.name}-{stack}")
        directory.mkdir(exist_ok=True)
        for file in self.files:
            link = directory / file.name
            link.unlink(missing_ok=True)
            link.hardlink_to(file)
        return replace(self, directory=directory)

    def remove_index(self) -> None:
        """Ours and those of the others, with all that they leave behind."""
        for pattern in (".weft", *LITTER):
            for path in self.directory.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def size_below(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def kept(directory: Path, key: str) -> dict | None:
    """What is known of a directory made earlier with the same key. It is written last: half a directory is never taken."""
    try:
        known = json.loads((directory / "truth.json").read_text())
    except (OSError, ValueError):
        return None
    return known if known["key"] == key else None


def generated(generator: Path, directory: Path, events: int, forms: tuple[str, ...], sharded: bool = False) -> list[Trace]:
    """The job of crates/format/examples/generate_trace in the given forms."""
    if not generator.exists():
        raise measure.Failed(f"{generator} is not there; use `make bench-analysis`, which builds it")
    key = f"{hashlib.sha256(generator.read_bytes()).hexdigest()} {SECONDS} {sharded} {' '.join(forms)}"
    known = kept(directory, key)
    if known is None:
        shutil.rmtree(directory, ignore_errors=True)
        command = [str(generator), str(events), "--seconds", str(SECONDS), "--sharded", "yes" if sharded else "no"]
        for form in forms:
            (directory / form).mkdir(parents=True)
            command += [f"--{form}", str(directory / form / FILE_OF.get(form, "trace.pfw.gz"))]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        known = {**json.loads(said), "key": key}
        (directory / "truth.json").write_text(json.dumps(known))
    matches = sum(call["count"] for call in known["calls"] if call["name"] == ONE_NAME)
    traces = []
    for form in forms:
        calls = known["calls"]
        if form == "run":
            # Our recorder writes the start of a process as an instant, DFTracer as a span; groups are of spans.
            calls = [call for call in calls if call["name"] != "start"]
        events = sum(call["count"] for call in calls)
        traces.append(Trace(form, directory / form, events, len(calls), matches, SECONDS))
    return traces


def faked(bin_directory: Path, work: Path, events: int) -> Trace:
    """What `dftracer_gen_fake_trace` makes: one file per rank."""
    directory = work / f"faked-{events}"
    steps = max(1, round(events / FAKE_RANKS / FAKE_EVENTS_PER_STEP))
    epochs = -(-steps // 1000)
    steps //= epochs
    key = f"{epochs} {steps}"
    known = kept(directory, key)
    if known is None:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        program = str(bin_directory / "dftracer_gen_fake_trace")
        size = ["-p", str(FAKE_RANKS), "-H", "4", "-e", str(epochs), "-s", str(steps)]
        subprocess.run([program, "-o", str(directory / "fake"), *size], check=True, capture_output=True)
        count = "gzip -dc \"$1\"/*.gz | grep -c '\"ph\":\"X\"'"
        command = ["sh", "-c", count, "sh", str(directory / "fake")]
        counted = subprocess.run(command, check=True, capture_output=True, text=True)
        known = {"key": key, "events": int(counted.stdout)}
        (directory / "truth.json").write_text(json.dumps(known))
    return Trace("fake", directory / "fake", known["events"])
