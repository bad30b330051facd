#!/usr/bin/env python3
"""Imports real folders of Tracekit, and compares every cell with a plain reading of the same files and with what Tracekit itself made of them.

    tools/tracekit/compare.py WEFT [--golden DIR] [--without-golden]

WEFT is the command (`make build`: target/release/weft). Without golden data it fails, unless told so.
"""

import argparse
import collections
import datetime
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

FOLDERS = {
    "runA_seedver/logs_20250901T000000Z": ["."],
    "runC_head_shared/logs_20251023T000000Z": ["cloud1", "cloud2"],
}
MS = 10**6
TICK = 10**7


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def imported(program, *sources):
    """Events of a run as (host, event), times in ns; the two halves of an asynchronous span are one."""
    events, open_spans = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        run = pathlib.Path(scratch, "run")
        done = subprocess.run([program, "import", "--json", "--host", "host", *sources, "-o", run], check=True, capture_output=True)
        for path in sorted(run.glob("*.pfw.gz")):
            host = None
            for line in gzip.open(path, "rt"):
                if not line.startswith("{"):
                    continue
                event = json.loads(line)
                if event["name"] == "process_name":
                    host = event["args"]["host"]
                    continue
                start, end = divmod(event.get("ns", 0), 1000)
                event["start"] = event.get("ts", 0) * 1000 + start
                event["end"] = (event.get("ts", 0) + event["dur"]) * 1000 + end if "dur" in event else event["start"]
                if event["ph"] == "b":
                    open_spans[path, event["id"]] = event
                if event["ph"] == "e":
                    open_spans.pop((path, event["id"]))["end"] = event["start"]
                    continue
                events.append((host, event))
    assert not open_spans
    return json.loads(done.stdout), events


class Check:
    def __init__(self):
        self.cells = self.wrong = 0

    def __call__(self, what, ours, theirs):
        ours, theirs = collections.Counter(ours), collections.Counter(theirs)
        cells = sum(len(row) * count for row, count in theirs.items())
        self.cells += cells
        good = ours == theirs and cells > 0
        self.wrong += not good
        print(f"{what}: {sum(theirs.values())} rows, {cells} cells, {'equal' if good else 'DIFFERENT'}")
        if not good:
            for row in list((ours - theirs).items())[:3]:
                print(f"    only ours:   {row}")
            for row in list((theirs - ours).items())[:3]:
                print(f"    only theirs: {row}")


def frozen(args):
    return tuple(sorted((key, json.dumps(value)) for key, value in args.items()))


def of(events, phases, category, name=None):
    return [(h, e) for h, e in events if e["ph"] in phases and e["cat"] == category and name in (None, e["name"])]


def invocations(records, node):
    spans, queues = [], []
    for record in records:
        host = record.get("node") or node
        rest = {key: value for key, value in record.items() if key not in ("ts_start", "ts_end", "node", "pid") and value is not None}
        name = record.get("module_id") or "invocation"
        spans.append((host, name, record["pid"], record["ts_start"] * MS, record["ts_end"] * MS, frozen(rest)))
        if record["ts_enqueue"] < record["ts_start"]:
            queues.append((host, record["pid"], record["ts_enqueue"] * MS, record["ts_start"] * MS, record["trace_id"]))
    return spans, queues


def our_invocations(events):
    spans, queues = [], []
    for host, event in of(events, "Xb", "tracekit"):
        if event["name"] == "queue":
            queues.append((host, event["pid"], event["start"], event["end"], event["args"]["trace_id"]))
        else:
            spans.append((host, event["name"], event["pid"], event["start"], event["end"], frozen(event["args"])))
    return spans, queues


def ticks(records, node_of):
    """Samples with ticks since the process's start."""
    last, found = {}, []
    for record in records:
        pid, at, user, system = record["pid"], record["ts_ms"], record["utime"], record["stime"]
        row = {"rss_bytes": record["rss_kb"] * 1024}
        start = at
        if pid in last:
            start, before_user, before_system = last[pid]
            row |= {
                "cpu_ns": (user + system - before_user - before_system) * TICK,
                "user_ns": (user - before_user) * TICK,
                "system_ns": (system - before_system) * TICK,
            }
        last[pid] = (at, user, system)
        found.append((node_of(pid), pid, start * MS, at * MS, frozen(row)))
    return found


def windows(records, node_of):
    """Samples with the time of a window: Tracekit's own differences."""
    found = []
    for record in records:
        row = {}
        if record.get("dt_ms"):
            row["cpu_ns"] = record["cpu_ms"] * MS
        if "rss_kb" in record:
            row["rss_bytes"] = record["rss_kb"] * 1024
        at = record["ts_ms"]
        found.append((node_of(record["pid"]), record["pid"], (at - record.get("dt_ms", 0)) * MS, at * MS, frozen(row)))
    return found


def samples(events, keys=None):
    found = []
    for host, event in of(events, "C", "process", "process"):
        args = {key: value for key, value in event["args"].items() if keys is None or key in keys}
        found.append((host, event["pid"], event["start"], event["end"], frozen(args)))
    return found


def counters(events, category, name=None):
    return [(h, e["name"], e["start"], e["end"], frozen(e["args"])) for h, e in of(events, "C", category, name)]


def wall(day, clock):
    moment = datetime.datetime.fromisoformat(f"{day}T{clock}+00:00")
    return int(moment.timestamp()) * 10**9


def mpstat(path, node):
    names = ["user", "nice", "system", "iowait", "irq", "softirq", "steal", "guest", "guest_nice", "idle"]
    found, before, day = [], None, None
    for line in path.read_text().splitlines():
        words = line.split()
        if words and words[0] == "Linux":
            day = datetime.datetime.strptime(words[3], "%m/%d/%y").date().isoformat()
        elif len(words) == 12 and words[1] == "CPU":
            before = wall(day, words[0])
        elif len(words) == 12:
            at = wall(day, words[0])
            values = {f"{name}_pct": float(word) for name, word in zip(names, words[2:])}
            found.append((node, "cpu", before, at, frozen(values)))
            before = at
    return found


def vmstat(path, node):
    found, before = [], None
    kib = lambda megabytes: round(megabytes * 1e6 / 1024)
    for line in path.read_text().splitlines():
        words = line.split()
        if len(words) != 19 or not words[0].isdigit():
            continue
        r, b, swpd, free, buff, cache, si, so, bi, bo, interrupts, switches = map(int, words[:12])
        at = wall(words[17], words[18])
        start = before if before and before < at else at - 10**9
        seconds = (at - start) // 10**9
        found.append((node, "memory", at, at, frozen({"MemFree": kib(free), "Buffers": kib(buff), "Cached": kib(cache)})))
        found.append((node, "swap", at, at, frozen({"used_kb": kib(swpd)})))
        kernel = {"running": r, "blocked": b}
        if before is not None:
            kernel |= {"interrupts": interrupts * seconds, "context_switches": switches * seconds}
            paging = {"paged_in_kb": bi * seconds, "paged_out_kb": bo * seconds}
            paging |= {"swapped_in_mb_per_s": float(si), "swapped_out_mb_per_s": float(so)}
            found.append((node, "paging", start, at, frozen(paging)))
        found.append((node, "kernel", start, at, frozen(kernel)))
        before = at
    return found


def links(records, name):
    """What Tracekit made of `net.log`: rates in bytes per second."""
    found, before = [], {}
    for record in records:
        at = record["ts_ms"] * MS
        start = before.get(record["link"], at - 10**9)
        seconds = (at - start) // 10**9
        moved = {"bytes_recv": record["rx_Bps"] * seconds, "bytes_sent": record["tx_Bps"] * seconds}
        found.append((record["node"], name or record["link"], start, at, frozen(moved)))
        before[record["link"]] = at
    return found


def node_facts(record):
    facts = {key: value for key, value in record.items() if key not in ("cpu_cores", "mem_mb", "cpu_freq_mhz")}
    facts |= {"cores": record["cpu_cores"], "memory_bytes": record["mem_mb"] << 20}
    if record["cpu_freq_mhz"]:
        facts["cpu_frequency"] = {"hz": record["cpu_freq_mhz"] * MS, "source": "tracekit"}
    return record.get("node") or record["node_id"], frozen(facts)


def our_nodes(events):
    return [(host, frozen(event["args"])) for host, event in of(events, "M", "weft", "node")]


def compare_raw(program, check, what, root, nodes):
    """A whole folder: raw logs are read, and copies counted as told elsewhere."""
    record, events = imported(program, root)
    spans, queues, processes, facts = [], [], [], []
    differences = []
    for name in nodes:
        folder = root / name
        meta = json.loads((folder / "node_meta.json").read_text())
        facts.append(node_facts(meta))
        raw = rows(folder / "events.ffmpeg.jsonl")
        more = invocations(raw, meta["node"])
        spans += more[0]
        queues += more[1]
        of_pid = {invocation["pid"]: invocation["node"] for invocation in raw}
        node_of = lambda pid: of_pid.get(pid, meta["node"])
        processes += ticks(rows(folder / "proc_metrics.jsonl"), node_of)
        made = folder / "cctf/proc_cpu.jsonl"
        made = made if made.exists() else folder / "CTS/proc_metrics.jsonl"
        differences += [
            (node_of(row["pid"]), row["pid"], (row["ts_ms"] - row["dt_ms"]) * MS, row["ts_ms"] * MS, frozen({"cpu_ns": row["cpu_ms"] * MS}))
            for row in rows(made)
            if row["dt_ms"]
        ]
    ours = our_invocations(events)
    check(f"{what}: invocations", ours[0], spans)
    check(f"{what}: queues", ours[1], queues)
    check(f"{what}: samples of processes", samples(events), processes)
    check(f"{what}: CPU time as Tracekit computed it", [s for s in samples(events, ("cpu_ns",)) if s[4]], differences)
    check(f"{what}: nodes", our_nodes(events), facts)
    if (root / "cpu.log").exists():
        node = meta["node"]
        check(f"{what}: cpu.log", counters(events, "sys", "cpu"), mpstat(root / "cpu.log", node))
        check(f"{what}: mem.log", [c for c in counters(events, "sys") if c[1] != "cpu"], vmstat(root / "mem.log", node))
        check(f"{what}: net.log as Tracekit read it", counters(events, "net"), links(rows(root / "links.jsonl"), meta["iface"]))
    total = sum(source["events"] for source in record["sources"])
    skipped = collections.Counter()
    for source in record["sources"]:
        for reason, kept in source["skipped"].items():
            skipped[reason] += kept["count"]
    print(f"{what}: {total} events, skipped {dict(skipped)}, unknown {[pathlib.Path(name).name for name in record['unknown']]}")


def compare_standard(program, check, what, folder):
    """A standard folder alone."""
    _, events = imported(program, folder)
    nodes = json.loads((folder / "nodes.json").read_text())
    node = nodes[0]["node_id"]
    raw = rows(folder / "invocations.jsonl")
    of_pid = {invocation["pid"]: invocation.get("node") or node for invocation in raw}
    node_of = lambda pid: of_pid.get(pid, node)
    theirs, ours = invocations(raw, node), our_invocations(events)
    check(f"{what}: invocations", ours[0], theirs[0])
    check(f"{what}: queues", ours[1], theirs[1])
    records = rows(folder / "proc_metrics.jsonl")
    read = ticks if "utime" in records[0] else windows
    check(f"{what}: samples of processes", samples(events), read(records, node_of))
    check(f"{what}: nodes", our_nodes(events), [node_facts(node) for node in nodes])
    if (folder / "link_metrics.jsonl").exists():
        check(f"{what}: links", counters(events, "net"), links(rows(folder / "link_metrics.jsonl"), None))
        first = rows(folder / "host_metrics.jsonl")[0]
        # All its rows have the time at which the file was made: one is kept.
        free = [(first["node"], "memory", first["ts_ms"] * MS, first["ts_ms"] * MS, frozen({"MemFree": round(first["mem_free_mb"] * 1e6 / 1024)}))]
        check(f"{what}: memory", counters(events, "sys"), free)
        for name in ("proc_cpu.jsonl", "proc_rss.jsonl"):
            _, alone = imported(program, folder / name)
            check(f"{what}: {name} alone", samples(alone), windows(rows(folder / name), lambda pid: "host"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    here = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--golden", type=pathlib.Path, default=here.parent / "shared/golden/tracekit")
    parser.add_argument("--without-golden", action="store_true", help="nothing to compare is no failure")
    given = parser.parse_args()
    if not given.golden.is_dir():
        print(f"{given.golden}: no golden data, nothing was compared")
        return 0 if given.without_golden else 1
    check = Check()
    program = given.program.resolve()
    for path, nodes in FOLDERS.items():
        root = given.golden / path
        compare_raw(program, check, path.split("/")[0], root, nodes)
        for name in nodes:
            for standard in ("cctf", "CTS"):
                if (root / name / standard).is_dir():
                    what = f"{path.split('/')[0]} {name} {standard} alone"
                    compare_standard(program, check, what, root / name / standard)
    print(f"{check.cells} cells compared, {check.wrong} tables differ")
    return 1 if check.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
