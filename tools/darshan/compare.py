"""Compares what an import makes of Darshan logs with what PyDarshan reads: counter by counter, segment by segment.

    pip install -r tools/darshan/requirements.txt
    make build
    python tools/darshan/compare.py [--weft target/release/weft] [LOG…]

Without logs it takes those that come with PyDarshan. To compare those that our tests write (all versions, both byte orders):

    cargo nextest run --cargo-profile bench -p weftline-import logs_for_other_readers
    python tools/darshan/compare.py --made-up target/tmp/darshan-logs/*.darshan

Counters that a log's version does not have are -1 there and missing here, a counter of 0 is missing here. What PyDarshan itself loses is counted apart,
as "explained" (see `lost`). Logs that it cannot open are named: its wheels have no bzip2. Ends with 1 where anything differs.
"""

import argparse
import gzip
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import darshan
from darshan.backend import cffi_backend as backend

COUNTERS = ["POSIX", "STDIO", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR"]
DXT = {"DXT_POSIX": "POSIX", "DXT_MPIIO": "MPI-IO"}
# The first version of a Lustre record has one component, under other names.
LUSTRE_1 = {"LUSTRE_COMP_STRIPE_SIZE": "LUSTRE_STRIPE_SIZE", "LUSTRE_COMP_STRIPE_COUNT": "LUSTRE_STRIPE_WIDTH"}


# PnetCDF's counters before version 3: whose sum or which one is today's.
PNETCDF = {
    "PNETCDF_FILE_OPENS": ["PNETCDF_INDEP_OPENS", "PNETCDF_COLL_OPENS"],
    **{
        f"PNETCDF_FILE_F_{name}_TIMESTAMP": [f"PNETCDF_F_{name}_TIMESTAMP"]
        for name in ["OPEN_START", "CLOSE_START", "OPEN_END", "CLOSE_END"]
    },
}


def lost(module, version, swapped, name):
    """Whether PyDarshan loses a counter of an old record when it makes a new one of it.

    POSIX records before version 4 get room for new integers, and the last real numbers are not moved: two of version 3, four of those before. Where bytes
    are swapped as well, it leaves three real numbers as they are, whose places are those of the new integers.
    """
    if module != "POSIX" or version >= 4:
        return False
    ends = ["VARIANCE_RANK_TIME", "VARIANCE_RANK_BYTES"]
    ends += ["FASTEST_RANK_TIME", "SLOWEST_RANK_TIME"] if version < 3 else []
    ends += ["META_TIME", "MAX_READ_TIME", "MAX_WRITE_TIME"] if swapped else []
    return name.removeprefix("POSIX_F_") in ends


class Tally:
    """Cells that are equal, and those that are not."""

    def __init__(self):
        self.equal = {}
        self.different = []
        self.explained = 0

    def cell(self, kind, where, ours, theirs, slack=0):
        same = ours == theirs
        if not same and isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
            same = abs(ours - theirs) <= slack or (math.isnan(ours) and math.isnan(theirs))
        if same:
            self.equal[kind] = self.equal.get(kind, 0) + 1
        else:
            self.different.append(f"{kind} {where}: {ours!r} here, {theirs!r} there")


def imported(weft, log, directory):
    """The events of an import."""
    run = pathlib.Path(directory) / "run"
    done = subprocess.run([weft, "import", "--host", "localhost", log, "-o", run], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{log}: {done.stderr}")
    events = []
    for path in sorted(run.glob("*.pfw.gz")):
        for line in gzip.open(path, "rt"):
            text = line.strip().rstrip(",")
            if text.startswith("{"):
                events.append(json.loads(text))
    return events, done.stdout


def start_ns(event):
    """The exact start: whole microseconds, and what `ns` has of it beyond those."""
    return event["ts"] * 1000 + event.get("ns", 0) // 1000


def end_ns(event):
    return (event["ts"] + event["dur"]) * 1000 + event.get("ns", 0) % 1000


def records(handle, module):
    """All records of a module, as PyDarshan has them."""
    while True:
        record = backend.log_get_record(handle, module, dtype="numpy" if module != "LUSTRE" else "dict")
        if record is None:
            return
        yield record


def by_record(events, name):
    """Facts that the import has of a module's records, in the order of the log."""
    return [event["args"] for event in events if event["cat"] == "darshan" and event["name"] == name]


def compare_counters(tally, log, handle, events, modules, module, swapped):
    theirs = list(records(handle, module))
    ours = by_record(events, module) or by_record(events, "PNETCDF" if module == "PNETCDF_FILE" else module)
    version = modules[module]["ver"]
    tally.cell("records", f"{log} {module}", len(ours), len(theirs))
    names = backend.counter_names(module), backend.fcounter_names(module)
    for mine, record in zip(ours, theirs):
        where = f"{log} {module} {record['id']}"
        tally.cell("ids", where, mine["id"], int(record["id"]))
        tally.cell("ranks", where, mine["rank"], int(record["rank"]))
        for place, kind in enumerate(["counters", "fcounters"]):
            for name, value in zip(names[place], record[kind].tolist()):
                if name.endswith("RENAMED_FROM"):
                    value %= 1 << 64
                found = mine.get(name)
                if module == "PNETCDF_FILE" and version < 3 and name in PNETCDF:
                    found = sum(mine.get(old, 0) for old in PNETCDF[name]) or None
                if found is not None and found != value and lost(module, version, swapped, name):
                    tally.explained += 1
                    continue
                if found is None:
                    # What the version of the log does not have is -1 there; zero is left out here.
                    found = -1 if value == -1 else 0
                tally.cell(kind, f"{where} {name} (version {version})", found, value)


def compare_dxt(tally, log, handle, events, module):
    theirs = list(records(handle, module))
    facts = by_record(events, module)
    tally.cell("records", f"{log} {module}", len(facts), len(theirs))
    spans = [event for event in events if event["ph"] == "X" and event["cat"] == DXT[module]]
    job = next(event["args"] for event in events if event["name"] == "job" and event["ph"] == "M")
    place = 0
    for mine, record in zip(facts, theirs):
        where = f"{log} {module} {record['id']} of rank {record['rank']}"
        for key in ["id", "rank", "hostname", "write_count", "read_count"]:
            tally.cell("segment heads", f"{where} {key}", mine[key], record[key])
        for way in ["write", "read"]:
            for segment in record[f"{way}_segments"]:
                span = spans[place]
                place += 1
                args = span["args"]
                tally.cell("segments", f"{where} name", span["name"], way)
                tally.cell("segments", f"{where} file", args["fhash"], mine["fhash"])
                tally.cell("segments", f"{where} offset", args.get("offset", -1), segment["offset"])
                length = args["ret"] if "ret" in args else args["size_sum"]
                tally.cell("segments", f"{where} length", length, segment["length"])
                for key, ours in [("start_time", start_ns(span)), ("end_time", end_ns(span))]:
                    expected = job["start_ns"] + round(segment[key] * 1e9)
                    tally.cell("segments", f"{where} {key}", ours, expected, slack=1)
    tally.cell("segments", f"{log} {module} spans", len(spans), place)


def compare_lustre(tally, log, handle, events):
    theirs = list(records(handle, "LUSTRE"))
    ours = by_record(events, "LUSTRE")
    tally.cell("records", f"{log} LUSTRE", len(ours), len(theirs))
    for mine, record in zip(ours, theirs):
        where = f"{log} LUSTRE {record['id']}"
        tally.cell("ids", where, mine["id"], record["id"])
        tally.cell("ranks", where, mine["rank"], record["rank"])
        osts = [ost for component in record["components"] for ost in component["ost_ids"]]
        tally.cell("osts", where, mine["LUSTRE_OST_IDS"], [int(ost) for ost in osts])
        for place, component in enumerate(record["components"]):
            for name, value in component["counters"].items():
                if "LUSTRE_COMPS" in mine:
                    tally.cell("counters", f"{where} {name}", mine["LUSTRE_COMPS"][place][name], int(value))
                elif name in LUSTRE_1:
                    tally.cell("counters", f"{where} {name}", mine[LUSTRE_1[name]], int(value))


def compare_heatmap(tally, log, handle, events):
    theirs = list(records(handle, "HEATMAP"))
    ours = by_record(events, "HEATMAP")
    tally.cell("records", f"{log} HEATMAP", len(ours), len(theirs))
    job = next(event["args"] for event in events if event["name"] == "job" and event["ph"] == "M")
    counters = {}
    for event in events:
        if event["ph"] == "C" and event["cat"] == "heatmap":
            counters[(event["name"], event["pid"], start_ns(event))] = event["args"]
    pids = {event["args"]["rank"]: event["pid"] for event in events if event["name"] == "HEATMAP"}
    for mine, record in zip(ours, theirs):
        where = f"{log} HEATMAP {record['id']} of rank {record['rank']}"
        tally.cell("ids", where, mine["id"], record["id"])
        tally.cell("counters", where, mine["HEATMAP_F_BIN_WIDTH_SECONDS"], record["bin_width_seconds"])
        width = round(record["bin_width_seconds"] * 1e9)
        for place in range(record["nbins"]):
            key = (mine["map"], pids[record["rank"]], job["start_ns"] + place * width)
            found = counters.get(key, {})
            tally.cell("bins", f"{where} {place} read", found.get("bytes_read", 0), int(record["read_bins"][place]))
            tally.cell("bins", f"{where} {place} write", found.get("bytes_written", 0), int(record["write_bins"][place]))


def compare_sums(tally, log, handle, events, module):
    """Calls and bytes of totals and spans are those of the counters: nothing is lost, nothing counts twice."""
    prefix = module.replace("-", "")
    kinds = {
        "POSIX": (["READS"], ["WRITES"]),
        "STDIO": (["READS"], ["WRITES"]),
        "H5D": (["READS"], ["WRITES"]),
        "MPI-IO": tuple([f"{way}_{what}" for way in ["INDEP", "COLL", "SPLIT", "NB"]] for what in ["READS", "WRITES"]),
    }[module]
    for names, counts, counter in [
        (["read", "fread"], kinds[0], "BYTES_READ"),
        (["write", "fwrite"], kinds[1], "BYTES_WRITTEN"),
    ]:
        calls = size = 0
        for event in events:
            if event["cat"] == module and event["name"] in names:
                args = event["args"]
                calls += args["dft_cnt"] if event["ph"] == "C" else 1
                size += args.get("size_sum", args.get("ret", 0))
        facts = by_record(events, module)
        total = sum(max(fact.get(f"{prefix}_{count}", 0), 0) for fact in facts for count in counts)
        tally.cell("sums", f"{log} {module} {names[0]} calls", calls, total)
        tally.cell("sums", f"{log} {module} {counter}", size, sum(fact.get(f"{prefix}_{counter}", 0) for fact in facts))


def compare_job(tally, log, handle, events, paths):
    job = backend.log_get_job(handle)
    mine = next(event["args"] for event in events if event["name"] == "job" and event["ph"] == "M")
    for ours, theirs in [("jobid", "jobid"), ("uid", "uid"), ("nprocs", "nprocs")]:
        tally.cell("job", f"{log} {ours}", mine[ours], job[theirs])
    start = job["start_time_sec"] * 10**9 + job["start_time_nsec"]
    tally.cell("job", f"{log} start", mine["start_ns"], start)
    # A log in whole seconds counts the last of them.
    end = job["end_time_sec"] * 10**9 + job["end_time_nsec"] + (10**9 if mine["log_version"] < "3.41" else 0)
    tally.cell("job", f"{log} end", mine["end_ns"], end)
    theirs = backend.log_get_exe(handle).split()
    if not theirs or "***" in mine["exe"]:
        # It has no command line where no line ends it; and secrets are masked here.
        tally.explained += 1
        theirs = [word for word, own in zip(theirs, mine["exe"].split()) if "***" not in own]
        tally.cell("job", f"{log} exe", [word for word in theirs if word not in mine["exe"].split()], [])
    else:
        tally.cell("job", f"{log} exe", mine["exe"], " ".join(theirs))
    for key, value in job["metadata"].items():
        tally.cell("job", f"{log} {key}", mine.get(key), value)
    mounts = sorted((kind, path) for path, kind in backend.log_get_mounts(handle))
    tally.cell("job", f"{log} mounts", sorted(tuple(mount) for mount in mine["mounts"]), mounts)
    names = backend.log_get_name_records(handle)
    seen = {}
    for event in events:
        if event["cat"] == "darshan" and "fhash" in event.get("args", {}):
            seen[event["args"]["id"]] = paths.get(event["args"]["fhash"])
    for number, path in seen.items():
        tally.cell("names", f"{log} {number}", path, names.get(number, f"record {number}"))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--weft", default="target/release/weft")
    options.add_argument("--quiet", action="store_true", help="only the sums of all logs")
    options.add_argument("--made-up", action="store_true", help="logs of our tests, whose sums do not fit each other")
    options.add_argument("logs", nargs="*")
    told = options.parse_args()
    logs = told.logs or sorted(str(path) for path in pathlib.Path(darshan.__file__).parent.rglob("*.darshan"))
    every = Tally()
    for log in logs:
        tally = Tally()
        name = pathlib.Path(log).name
        handle = backend.log_open(log)
        if handle["handle"] == backend.ffi.NULL:
            print(f"{name}: PyDarshan cannot open it")
            continue
        swapped = pathlib.Path(log).read_bytes()[8:16] == (6567223).to_bytes(8, "big")
        modules = backend.log_get_modules(handle)
        with tempfile.TemporaryDirectory() as directory:
            events, said = imported(told.weft, log, directory)
        paths = {event["args"]["value"]: event["args"]["name"] for event in events if event["name"] == "FH"}
        compare_job(tally, name, handle, events, paths)
        for module in modules:
            if module in COUNTERS:
                compare_counters(tally, name, handle, events, modules, module, swapped)
                # Records that the tests make up have no segments that their counters know of.
                if module in ["POSIX", "STDIO", "MPI-IO", "H5D"] and not told.made_up:
                    compare_sums(tally, name, handle, events, module)
            elif module in DXT:
                compare_dxt(tally, name, handle, events, module)
            elif module == "LUSTRE":
                compare_lustre(tally, name, handle, events)
            elif module == "HEATMAP":
                compare_heatmap(tally, name, handle, events)
        backend.log_close(handle)
        if not told.quiet:
            print(f"{name}: {sum(tally.equal.values())} equal, {len(tally.different)} different; {list(modules)}")
            print("".join(f"    {line}\n" for line in said.splitlines()[1:]), end="")
        for line in tally.different[:20]:
            print(f"  {line}")
        every.different += tally.different
        every.explained += tally.explained
        for kind, count in tally.equal.items():
            every.equal[kind] = every.equal.get(kind, 0) + count
    print(f"{len(logs)} logs: {sum(every.equal.values())} cells equal, {len(every.different)} different, {every.explained} explained")
    print(", ".join(f"{kind} {count}" for kind, count in sorted(every.equal.items())))
    return 1 if every.different else 0


if __name__ == "__main__":
    sys.exit(main())
