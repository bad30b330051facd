#!/usr/bin/env python3
"""Imports the golden 4-GPU folder of 2022 and compares it with what the DISCS scripts made of the same files.

    tools/discs/compare.py [--golden DIR] [--weft FILE] [--without-golden]

Compared, with counts: every start, end and event of every process, to the nanosecond; processor shares and GPU averages by
second; phases; names of processes; the clock; the numbers that the reference tells. Deviations that are known and no others:

* The scripts add five hours to everything, whatever the zone: all their times are ours and 5 h.
* `grep " $pid "` puts block requests into the file of the process that happened to run when they were done (DONEPID) as well.
* Their GPU average breaks on rows with fewer GPUs than at the start; there we compare the seconds before.
* A torn line in the block trace: they print an error or a wrong row; we skip and count it.

Without golden data this fails, unless --without-golden says that there is none.
"""

import argparse
import collections
import csv
import datetime
import json
import pathlib
import sys
import tarfile
import tempfile

import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
THEIR_HOURS = 5 * 3600 * 10**9
COUNTS = {"READ": 40167, "WRITE": 1147, "OPENAT": 13082, "BIO": 1859}  # 1860 lines, one of them torn
PHASES = {"INIT": 1, "EPOCH": 40, "EVAL": 4}
ANCHOR = {"source_ns": 1380360127458684, "local": "2022-08-27T22:35:00", "width": 52711}


def nanoseconds(text):
    """An ISO time without a zone, as ns since 1970."""
    whole, _, fraction = text.partition(".")
    seconds = int(datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc).timestamp())
    return seconds * 10**9 + int((fraction + "0" * 9)[:9])


class Check:
    def __init__(self):
        self.failures = 0

    def equal(self, what, ours, theirs):
        good = ours == theirs
        print(f"{'ok  ' if good else 'FAIL'} {what}: {ours}" + ("" if good else f", expected {theirs}"))
        self.failures += not good


def event_name(event):
    if event.get("cat") == "block":
        return {"read": "BIOR", "write": "BIOW"}.get(event["name"])
    if event.get("cat") == "POSIX":
        return {"read": "READ", "write": "WRITE", "openat": "OPENAT"}.get(event["name"])
    return None


def compare_events(check, events, expected, raw):
    ours = collections.defaultdict(collections.Counter)
    kinds = collections.Counter()
    for event in events:
        name = event_name(event)
        if event["ph"] == "X" and name:
            ours[event["pid"]][(event["start"] + THEIR_HOURS, event["end"] + THEIR_HOURS, name)] += 1
            kinds["BIO" if name.startswith("BIO") else name] += 1
    for kind, count in COUNTS.items():
        check.equal(f"{kind} events", kinds[kind], count)
    # Rows of the block trace that grep finds in a second process.
    done_by = collections.Counter()
    for line in (raw / "trace_bio.out").read_text().splitlines()[2:]:
        words = line.split()
        if len(words) == 9 and words[6] in "RW" and words[3] != words[1]:
            done_by[int(words[3])] += 1
    total = moved = 0
    for path in sorted((expected / "st_end_data").iterdir()):
        pid = int(path.name.rsplit("_", 1)[1])
        theirs = collections.Counter()
        for start, end, name in csv.reader(path.open()):
            theirs[(nanoseconds(start), nanoseconds(end), name)] += 1
        total += sum(theirs.values())
        check.equal(f"process {pid}: events of ours that they do not have", sum((ours[pid] - theirs).values()), 0)
        extra = theirs - ours[pid]
        others = collections.Counter()
        for other, rows in ours.items():
            if other != pid:
                others.update({row: count for row, count in rows.items() if row[2].startswith("BIO")})
        foreign = extra & others
        moved += sum(foreign.values())
        check.equal(f"process {pid}: events of theirs that we do not have", sum((extra - foreign).values()), 0)
        check.equal(f"process {pid}: block requests of others that they put here", sum(foreign.values()), done_by.get(pid, 0))
    check.equal("block requests in a second process", moved, 32)
    check.equal("events compared", total, sum(kinds.values()) + moved)


def compare_cpu(check, events, expected):
    names = {"%usr": "user_pct", "%nice": "nice_pct", "%sys": "system_pct", "%iowait": "iowait_pct", "%irq": "irq_pct",
             "%soft": "softirq_pct", "%steal": "steal_pct", "%guest": "guest_pct", "%gnice": "guest_nice_pct", "%idle": "idle_pct"}
    ours = {event["end"] + THEIR_HOURS: event["args"] for event in events if event["ph"] == "C" and (event["cat"], event["name"]) == ("sys", "cpu")}
    theirs = {nanoseconds(row["timestamp"]): {names[key]: float(row[key]) for key in names}
              for row in csv.DictReader((expected / "cpu_data/cpu_all.csv").open())}
    check.equal("processor samples", len(ours), len(theirs))
    check.equal("processor samples that differ", sum(ours.get(at) != values for at, values in theirs.items()), 0)


def compare_gpu(check, events, expected):
    ours = collections.defaultdict(dict)
    for event in events:
        if event["ph"] == "C" and event["cat"] == "gpu" and event["pid"] == 0:
            ours[event["end"] + THEIR_HOURS][event["name"]] = event["args"]
    rows = [row for row in csv.reader((expected / "gpu_data/gpu_avg.csv").open())][1:]
    good = [row for row in rows if len(row) == 4]
    check.equal("rows of theirs that broke", len(rows) - len(good), 1)
    differ = compared = 0
    for at, *values in good:
        gpus = ours[nanoseconds(at)].values()
        mean = lambda key, unit: sum(gpu.get(key, 0) / unit for gpu in gpus) / max(len(gpus), 1)
        mine = [mean("busy_pct", 1), mean("memory_busy_pct", 1), mean("memory_used_bytes", 2**20)]
        compared += 1
        differ += any(abs(one - float(other)) > 1e-6 for one, other in zip(mine, values))
    check.equal("GPU averages compared", compared, len(good))
    check.equal("GPU averages that differ", differ, 0)
    last = nanoseconds(good[-1][0])
    after = [at for at in ours if at > last]
    check.equal("seconds with fewer GPUs that we have and they lost", (len(after), {len(ours[at]) for at in after}), (4, {1}))


def compare_phases(check, events, expected):
    ours = collections.Counter()
    for event in events:
        if event["ph"] == "X" and event["cat"] == "pipeline" and event["name"] in ("init", "epoch", "eval"):
            ours[(event["start"] + THEIR_HOURS, event["end"] + THEIR_HOURS, event["name"].upper())] += 1
    theirs = collections.Counter((nanoseconds(start), nanoseconds(end), name) for start, end, name in csv.reader((expected / "mllog_data/timeline.csv").open()))
    check.equal("phases", dict(collections.Counter(name for *_, name in ours.elements())), PHASES)
    check.equal("phases that differ", sum(((ours - theirs) + (theirs - ours)).values()), 0)


def compare_names(check, events, expected):
    theirs = {int(pid): name for pid, name in json.loads((expected / "pids.json").read_text()).items()}
    ours = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name" and event["pid"] in theirs}
    check.equal("names of processes", ours, theirs)


def compare_clock(check, record):
    source = next(source for source in record["sources"] if source["name"].endswith("trace_time_align.out"))
    anchor = source["clock"]["anchors"][0]
    check.equal("anchors", len(source["clock"]["anchors"]), 1)
    check.equal("alignment", (anchor["source_ns"], anchor["utc_ns"]), (ANCHOR["source_ns"], nanoseconds(ANCHOR["local"])))
    check.equal("error", source["clock"]["error_ns"], (ANCHOR["width"] + 1) // 2)
    skipped = {(source["kind"], reason): told["count"] for source in record["sources"] for reason, told in source["skipped"].items()}
    check.equal("what was skipped", skipped, {("bpftrace", "torn line"): 1, ("mpstat", "average of the whole trace"): 1})
    check.equal("files without a format", record["unknown"], [])


def compare_dlio(check, weft, golden):
    expected = golden / "dlio_timeline/out/timeline/timeline.csv"
    _, events = run.import_folder(weft, golden / "dlio_timeline/DLIO_X")
    names = {"init": "INIT", "block": "TRAINING", "eval": "EVAL", "checkpoint": "CHECKPOINT"}
    ours = sorted((event["start"], event["end"], names[event["name"]]) for event in events if event["ph"] == "X" and event["name"] in names)
    theirs = sorted((nanoseconds(start), nanoseconds(end), name) for start, end, name in csv.reader(expected.open()))
    check.equal("DLIO phases", (len(ours), ours == theirs), (len(theirs), True))


def compare_small(check, weft, golden):
    """Real files of single tools: counted by hand."""
    lines = (golden / "bpftrace_real/rd.out").read_text().splitlines()[2:]
    _, events = run.import_folder(weft, golden / "bpftrace_real")
    check.equal("reads of a real trace", sum(event.get("cat") == "POSIX" for event in events), sum(line[:1].isdigit() for line in lines))
    _, events = run.import_folder(weft, golden / "gpu_w_multiple_procs")
    rows = [line.split() for line in (golden / "gpu_w_multiple_procs").read_text().splitlines() if not line.startswith("#")]
    counters = [event for event in events if event["ph"] == "C"]
    check.equal("GPU samples of processes", sum(event["pid"] != 0 for event in counters), sum(row[3] != "-" for row in rows))
    check.equal("GPU samples of GPUs", sum(event["pid"] == 0 for event in counters), len({(row[1], row[2]) for row in rows}))
    _, events = run.import_folder(weft, golden / "iostat_real_sample.json")
    check.equal("iostat reports", sum(event["cat"] == "io" for event in events if event["ph"] == "C"), 2)
    record, events = run.import_folder(weft, golden / "ulog_head60.jsonl")
    edges = [json.loads(line)["event_type"] for line in (golden / "ulog_head60.jsonl").read_text().splitlines()]
    told = sum(event["ph"] == "i" for event in events), sum(event["ph"] == "X" for event in events)
    check.equal("entries of an MLPerf log", told, (edges.count("POINT_IN_TIME"), edges.count("INTERVAL_START")))


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--golden", type=pathlib.Path, default=ROOT.parent / "shared/golden/trace_visuals")
    words.add_argument("--weft", type=pathlib.Path, default=ROOT / "target/release/weft", help="the command that imports")
    words.add_argument("--without-golden", action="store_true")
    options = words.parse_args()
    packed = [options.golden / name for name in ("raw_4gpu_2022.tar.xz", "expected_4gpu_2022.tar.xz")]
    if not all(path.exists() for path in packed):
        print(f"no golden data in {options.golden}" + ("; told so" if options.without_golden else "; --without-golden accepts that"))
        return 0 if options.without_golden else 1
    check = Check()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for path, name in zip(packed, ("raw", "expected")):
            tarfile.open(path).extractall(scratch / name, filter="data")
        raw = next((scratch / "raw").rglob("trace_bio.out")).parent
        # The archive as it is: nothing unpacked, nothing edited.
        record, events = run.import_folder(options.weft, packed[0])
        for note in record["notes"]:
            print(f"note {note}")
        compare_clock(check, record)
        compare_names(check, events, scratch / "expected")
        compare_events(check, events, scratch / "expected", raw)
        compare_cpu(check, events, scratch / "expected")
        compare_gpu(check, events, scratch / "expected")
        compare_phases(check, events, scratch / "expected")
    compare_dlio(check, options.weft, options.golden)
    compare_small(check, options.weft, options.golden)
    print(f"{check.failures} failures" if check.failures else "all equal")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
