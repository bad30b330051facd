#!/usr/bin/env python3
"""Makes the folders of examples/discs, imports each without any option, and compares with the truth.

    tools/discs/check.py [--weft FILE] [NAME…]
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A clock that was laid over activity says that it may be wrong by a minute; what begins together is nearer than that.
LAID_NS = 60 * 10**9


def check(folder, weft):
    truth = json.loads(folder.with_name(f"{folder.name}.truth.json").read_text())
    scene = truth["scene"]
    record, events = run.import_folder(weft, folder)
    wrong = []

    def expect(what, ours, theirs):
        if ours != theirs:
            wrong.append(f"{what}: {ours}, the truth is {theirs}")

    # Where nothing tells the zone, local time is taken as UTC, and that is said.
    untold = scene["workload"] == "unknown"
    moved = scene["zone"] * 10**9 if untold else 0
    expect("the zone is flagged", any("nothing tells it" in note for note in record["notes"]), untold)

    calls = sorted((event["pid"], event["cat"], event["name"], event["end"], event["start"])
                   for event in events if event["ph"] == "X" and event["cat"] in ("POSIX", "block"))
    true = sorted((pid, cat, name, end + moved, start + moved) for pid, cat, name, start, end in truth["calls"])
    expect("calls", len(calls), len(true))
    by = lambda rows: collections.Counter(row[:3] for row in rows)
    expect("calls by process", by(calls), by(true))
    clock = next((source["clock"] for source in record["sources"] if source["kind"] == "bpftrace"), {})
    error = clock.get("error_ns") or 0
    worst = max((abs(one[place] - other[place]) for one, other in zip(calls, true) for place in (3, 4)), default=0)
    if worst > error + 1000:
        wrong.append(f"a call is off by {worst} ns, the error bar is {error} ns")
    if scene["aligned"]:
        expect("the error bar is below 30 ms", error <= 30_000_000, True)
    else:
        expect("the error bar of a laid clock", error, LAID_NS)
    drift = len(clock.get("anchors", [])) == 2
    expect("drift", drift, scene["drift"] != 0)

    roles = {int(pid): role for pid, role in truth["roles"].items()}
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    expect("roles", {pid: names.get(pid) for pid in roles if pid in names}, {pid: role for pid, role in roles.items() if pid in names})
    expect("processes that made calls have names", {row[0] for row in true} <= set(names), True)
    if untold:
        expect("unknown processes", sorted(name.split()[0] for pid, name in names.items() if pid in {row[0] for row in true}), ["networkd-dispatcher", "render", "tmux"])
    expect("workload", [note for note in record["notes"] if note.startswith("Workload")], [f"Workload: {truth['workload']}."] if truth["workload"] else [])

    shown = sorted([event["name"], event["start"], event["end"]] for event in events if event["ph"] == "X" and event["cat"] in ("pipeline", "checkpoint"))
    expect("phases", shown, sorted(truth["phases"]))

    cpu = sorted([event["end"], event["name"], event["args"]["user_pct"]] for event in events if event["ph"] == "C" and event["cat"] == "sys")
    expect("processor samples", cpu, sorted([at + moved, name, usr] for at, name, usr in truth["cpu"]))
    gpu = sorted([event["end"], event["name"], event["args"]["busy_pct"], event["args"].get("memory_used_bytes", 0) // 2**20]
                 for event in events if event["ph"] == "C" and event["cat"] == "gpu" and event["pid"] == 0)
    expect("GPU samples", gpu, sorted([at + moved, name, sm, fb] for at, name, sm, fb in truth["gpu"]))
    disk = sorted([event["end"], event["name"], event["args"]["reads_completed"], event["args"]["busy_pct"]] for event in events if event["ph"] == "C" and event["cat"] == "io")
    expect("disk samples", disk, sorted(truth.get("iostat", [])))

    torn = sum(told["count"] for source in record["sources"] if source["kind"] == "bpftrace" for reason, told in source["skipped"].items() if reason == "torn line")
    expect("torn lines", torn, sum(truth["torn"].values()))
    expect("repaired latencies", sum("latency_repaired" in event.get("args", {}) for event in events), truth["repaired"])
    return wrong, len(true)


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--weft", type=pathlib.Path, default=ROOT / "target/release/weft", help="the command that imports")
    words.add_argument("names", nargs="*")
    options = words.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        made = subprocess.run([sys.executable, ROOT / "examples/discs/make.py", scratch, *options.names], capture_output=True, text=True, check=True)
        folders = [pathlib.Path(line) for line in made.stdout.splitlines()]
        for folder in folders:
            wrong, calls = check(folder, options.weft)
            print(f"{'FAIL' if wrong else 'ok  '} {folder.name}: {calls} calls")
            for sentence in wrong:
                print(f"     {sentence[:600]}")
            failed += bool(wrong)
    print(f"{failed} of {len(folders)} folders differ" if failed else f"all {len(folders)} folders equal the truth")
    return 1 if failed or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
