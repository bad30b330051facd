"""What views of a trace hold, by plain loops: one row per time bucket, thread, file, host … and per layer counts, times and bytes.

The rules, beside those of oracle.py:

- A view counts what a report counts. Its size is that of DFAnalyzer: spans of a program's own that close a sample say its size again.
- The category of an I/O call gets `_reader`, `_checkpoint`, `_lustre` and `_ssd` where the path has `/data`, `/checkpoint`, `/lustre`, `/ssd`.
- A layer is a set of spans by category and name; its parts are sets within it. An event belongs to the bucket in which it began, counted from the first
  span's start; totals to the bucket that holds the middle of their period.
- `call`: over single events. `proc`: over what each thread sums up to. A deviation over calls is that of a population, over threads that of a sample.
- A rate is a ratio of sums. A share of nothing is absent, and so is what single calls alone tell where some are known only as totals.
- Wall time is the length of a union of time ranges within each process, added up over processes: of a layer, of a layer while none of the layers below it
  was going on (`o_`), of a layer that runs in the background while nothing computed (`u_`).
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from functools import cache, partial
from types import SimpleNamespace as Bag

import oracle
from oracle import COPIES, IO_CATEGORIES, READS, WRITES, integer

VIEWS = "time_range proc_name file_name file_dir file_pattern host_name proc_id thread_id rank epoch step".split()
BY_PROCESS = {"proc_name", "host_name", "proc_id", "thread_id", "rank"}
SUFFIXES = (("/data", "_reader"), ("/checkpoint", "_checkpoint"), ("/lustre", "_lustre"), ("/ssd", "_ssd"))
BINS = "0_4kib 4kib_16kib 16kib_64kib 64kib_256kib 256kib_1mib 1mib_4mib 4mib_16mib 16mib_64mib 64mib_256mib 256mib_1gib 1gib_4gib 4gib_plus".split()
# What single calls alone tell is not compared where some calls are known only as totals.
UNKNOWN = object()
OF_CALLS = [f"time_call_{stat}_ns" for stat in ("min", "max", "std")] + [f"size_call_{stat}" for stat in ("min", "max", "mean", "std")]
OF_CALLS += ["offset_min", "offset_max", *(f"size_bin_{text}_sum" for text in BINS)]

# What calls do, of those that the traces hold.
OPENS = set("open open64 openat openat64 creat creat64 fopen fopen64 freopen fdopen".split())
CLOSES = set("close fclose".split())
SEEKS = set("lseek lseek64 fseek fseeko fseeko64 rewind fsetpos seek".split())
STATS = set(
    "stat stat64 lstat lstat64 fstat fstat64 fstatat fstatat64 newfstatat statx statfs fstatfs __xstat __xstat64 __lxstat __lxstat64 __fxstat"
    " __fxstat64 __fxstatat __fxstatat64".split()
)
OTHER_METADATA = set("access mkdir rmdir unlink rename link symlink readlink opendir readdir closedir ftell chmod".split())
SYNCS = set("fsync fdatasync sync syncfs sync_file_range msync".split())
FORKS = set("fork vfork".split())
# As DFAnalyzer has it: waitpid is none of these.
PROCESS = FORKS | set("wait kill pipe exit".split())
KINDS = (
    ("read", READS), ("write", WRITES | COPIES), ("metadata", OPENS | CLOSES | SEEKS | STATS | OTHER_METADATA), ("sync", SYNCS), ("process", PROCESS)
)  # fmt: skip
PROFILE_KEYS = "cat func_name pid tid file_name host_name epoch step time_start".split()
KIND_NUMBERS = {"read": 1, "write": 2, "metadata": 3, "process": 4, "other": 6, "sync": 7}


# ---- layers: name, test of a kind of span, layer above, whether it runs in the background, parts


def kind_of(cat, name):
    """What an I/O call does."""
    return next((kind for kind, names in KINDS if cat in IO_CATEGORIES and name in names), "other")


def is_io(span):
    return "posix" in span.label or "stdio" in span.label


def named(names, span):
    return span.kind == "metadata" and span.name in names


IO_PARTS = {
    "data": lambda span: span.kind in ("read", "write"),
    "close": partial(named, CLOSES),
    "open": partial(named, OPENS),
    "seek": partial(named, SEEKS),
    "stat": partial(named, STATS),
    **{kind: (lambda span, kind=kind: span.kind == kind) for kind in ("read", "write", "metadata", "other", "sync")},
}
READER_PARTS = {
    part: (lambda span, text=text: text in span.name)
    for part, text in (("close", ".close"), ("open", ".open"), ("preprocess", ".preprocess"), ("sample", ".get_sample"))
}
LOADER_PARTS = {"init": lambda span: "init" in span.name, "item": lambda span: "item" in span.name}


def layer(name, test, parent=None, background=False, parts=None):
    return Bag(name=name, test=test, parent=parent, background=background, parts=parts or {})


def cat(*cats):
    return lambda span: span.label in cats


def name(*names):
    return lambda span: span.name in names


def io_layers(reader, checkpoint):
    return [
        layer("posix", is_io, None, True, IO_PARTS),
        layer("reader_posix", lambda span: is_io(span) and "_reader" in span.label, reader, True, IO_PARTS),
        layer("checkpoint_posix", lambda span: is_io(span) and "_checkpoint" in span.label, checkpoint, False, IO_PARTS),
    ]


def forks(span):
    return is_io(span) and span.name in FORKS


LOADER = ("data", "data_loader", "dataloader")


def waits_for_batch(span):
    return span.name == "fetch.iter" or span.label in LOADER and span.name == "fetch"


def uses_batch(span):
    return span.label in LOADER and span.name in ("fetch.body", "fetch.yield", "loop.yield")


DLIO = [
    layer("app", name("DLIOBenchmark.initialize", "DLIOBenchmark.run")),
    layer("training", name("DLIOBenchmark.run"), "app"),
    layer("epoch", name("DLIOBenchmark._train"), "training"),
    layer("compute", cat("ai_framework"), "epoch"),
    layer("fetch_data", name("<module>.iter", "fetch-data.iter", "loop.iter"), "epoch"),
    layer("checkpoint", cat("checkpoint"), "epoch"),
    layer("data_loader", lambda span: span.label == "data_loader" and span.name not in ("loop.iter", "loop.yield"), "fetch_data", True, LOADER_PARTS),
    layer("data_loader_fork", forks, "fetch_data", True),
    layer("reader", cat("reader"), "data_loader", True, READER_PARTS),
    *io_layers("reader", "checkpoint"),
]
AI = [
    layer("app", cat("ai_root")),
    layer("training", lambda span: span.label == "pipeline" and span.name == "train", "app"),
    layer("epoch", lambda span: span.label == "pipeline" and span.name.startswith("epoch"), "training"),
    layer("step", lambda span: uses_batch(span) or span.label == "pipeline" and span.name == "step", "epoch"),
    layer("compute", cat("compute"), "epoch"),
    layer("fetch_data", waits_for_batch, "epoch"),
    layer("checkpoint", cat("checkpoint"), "epoch"),
    layer("comm", cat("comm"), "epoch"),
    layer("device", cat("device"), "epoch"),
    layer("data_loader", lambda span: span.label in LOADER and not waits_for_batch(span) and not uses_batch(span), "fetch_data", True, LOADER_PARTS),
    layer("data_loader_fork", forks, "fetch_data", True),
    layer("reader", lambda span: span.label == "reader" or span.name == "preprocess", "data_loader", True, READER_PARTS),
    *io_layers("reader", "checkpoint"),
]


def auto(cats):
    """All spans, and a layer per category: `a.b` is a part of `a` where both are there. Names that are taken, by a layer, a part of one or the table of
    all of them, get a number."""
    made, called = [layer("app", lambda span: True)], {}
    for one in sorted(cats - {"dftracer", "weft"}):
        plain = "".join(char if char.isalnum() else "_" for char in one) or "none"
        taken = {"flat"} | {known.name for known in made} | {f"{known.name}_{part}" for known in made for part in known.parts}
        called[one] = next(text for text in (plain, *(f"{plain}_{number}" for number in range(2, 999))) if text not in taken)
        above = [other for other in called if other and one.startswith(other + ".")]
        parent = called[max(above, key=len)] if above else "app"
        has_parts = one.startswith(("posix", "stdio"))
        test = lambda span, one=one: one in span.label if one in ("posix", "stdio") else span.label == one or span.label.startswith(one + ".")
        made.append(layer(called[one], test, parent, has_parts, IO_PARTS if has_parts else None))
    return made


def preset_of(cats):
    if cats & {"ai_root", "pipeline"}:
        return "ai"
    if cats & {"reader", "data_loader", "checkpoint", "ai_framework", "dlio_benchmark"}:
        return "dlio"
    return "posix" if cats & IO_CATEGORIES else "auto"


# ---- spans as views see them


def size_in_views(span):
    """Bytes of a span; None where it has no size."""
    if span.cat in IO_CATEGORIES:
        return max(oracle.moved(span)) or None
    summed = integer(span.args.get("size_sum"))
    if summed is not None and summed >= 0:
        return summed
    image = integer(span.args.get("image_size")) or 0
    return image if image > 0 and "open" not in span.name.lower() else None


def directory(path):
    """What stands before the last slash."""
    place = path.rfind("/")
    return "/" if place == 0 else path[:place] if place > 0 else ""


def union(ranges):
    """Ranges that do not touch, in order."""
    joined = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        elif start < end:
            joined.append([start, end])
    return joined


def common(one, other):
    """What two lists of such ranges both cover."""
    found, left, right = [], 0, 0
    while left < len(one) and right < len(other):
        start, end = max(one[left][0], other[right][0]), min(one[left][1], other[right][1])
        if start < end:
            found.append([start, end])
        if one[left][1] <= other[right][1]:
            left += 1
        else:
            right += 1
    return found


def length(ranges):
    return sum(end - start for start, end in ranges)


def width_of(trace):
    """Buckets, in whole µs, that put the job into a few pieces; not shorter than the periods of totals, which would be spread over several."""
    records, period = trace.totals()
    starts, ends = [span.start for span in trace.spans], [span.start + span.dur for span in trace.spans]
    return max((max(ends) - min(starts)) // 7_000 * 1_000 if starts else 0, period if records else 1_000)


class Views:
    """The views of a trace. `preset`: which layers; by default those that its categories speak for. `width`: of time buckets, ns."""

    def __init__(self, trace, width, preset=None):
        self.trace, self.width = trace, width
        cats = {event.cat for event in trace.events}
        self.preset = preset or preset_of(cats)
        self.layers = {"posix": [layer("posix", is_io, None, False, IO_PARTS)], "dlio": DLIO, "ai": AI}.get(self.preset) or auto(cats)
        records, self.period = trace.totals()
        self.origin = min((span.start for span in trace.spans), default=None)
        if self.origin is None:
            self.origin = min((event.start for event in trace.events if event.start is not None), default=0)
        names = {event.process for event in trace.events if event.is_process and not event.bad}
        self.labels = {process: oracle.label(process, names) for process in names}
        self.spans = [span for span in trace.spans + records if oracle.is_kept(span)]
        # By kind of span: the layers and the parts of layers that hold it.
        self.places = {}
        for span in self.spans:
            self.describe(span)
            if span.key not in self.places:
                held = [one for one in self.layers if one.test(span)]
                parts = [(one.name, part) for one in held for part, test in one.parts.items() if test(span)]
                self.places[span.key] = [(one.name, "") for one in held] + parts
        self.has_totals = {place for span in self.spans if not span.span for place in self.places[span.key]}

    def describe(self, span):
        span.single = span.span
        span.label, span.kind = span.cat, kind_of(span.cat, span.name)
        if is_io(span):
            span.label += "".join(suffix for part, suffix in SUFFIXES if part in (span.known_path or ""))
        span.key, span.offset = (span.label, span.name, span.kind), integer(span.args.get("offset"))
        if span.single:
            span.count, span.time, span.view_size = 1, span.dur, size_in_views(span)
            bucket = (span.start - self.origin) // self.width
        else:
            moves = span.cat in IO_CATEGORIES and span.kind in ("read", "write") or "size_sum" in span.args
            span.view_size = max(span.bytes_moved, 0) if moves else None
            bucket = max((span.start + self.period // 2 - self.origin) // self.width, 0)
        # The host and devices, whose pid is 0 or a text, stand for themselves.
        pid, tid = (number if isinstance(number, int) else 0 for number in (span.pid, span.tid))
        path, process = span.known_path, self.labels.get(span.process, f"{span.host or 'unknown'}#{pid}")
        span.person = span.process._replace(pid=pid)
        span.rows = {
            "time_range": bucket,
            "proc_name": f"app#{process}#{tid}",
            "file_name": path,
            "file_dir": None if path is None else directory(path),
            "file_pattern": None if path is None else "".join("[0-9]" if char in "0123456789" else char for char in path),
            "host_name": span.host or "unknown",
            "proc_id": pid,
            "thread_id": tid,
            "rank": self.trace.ranks.get(span.process),
            "epoch": integer(span.args.get("epoch")),
            "step": integer(span.args.get("step")),
        }

    # ---- the columns of a layer or a part of it in one row

    @staticmethod
    def columns(spans):
        count, time = sum(span.count for span in spans), sum(span.time for span in spans)
        sizes = [span.view_size for span in spans if span.view_size is not None]
        size = sum(sizes)
        threads = defaultdict(lambda: [0, 0, 0])
        for span in spans:
            sums = threads[span.rows["proc_name"]]
            sums[0] += span.count
            sums[1] += span.time
            sums[2] += span.view_size or 0
        found = {
            "count_sum": count, "time_sum_ns": time, "size_sum": size, "time_call_mean_ns": ratio(time, count),
            "bw": rate(size, time), "ops": rate(count, time), "intensity": ratio(count, size),
            "proc_name_nunique": len(threads), "file_name_nunique": len({span.known_path for span in spans} - {None}),
        }  # fmt: skip
        for column, unit, values in zip(("count", "time", "size"), ("", "_ns", ""), zip(*threads.values())):
            stats = {"min": min(values), "max": max(values), "mean": mean(values), "std": deviation(values, len(values) - 1)}
            found.update({f"{column}_proc_{stat}{unit}": value for stat, value in stats.items()})
        if not all(span.single for span in spans):
            found.update(dict.fromkeys(OF_CALLS, UNKNOWN))
        else:
            times = [span.time for span in spans]
            found.update({"time_call_min_ns": min(times), "time_call_max_ns": max(times), "time_call_std_ns": deviation(times, len(times))})
            offsets = [span.offset for span in spans if span.offset is not None]
            for column, values in (("size_call", sizes), ("offset", offsets)):
                found.update({f"{column}_min": min(values, default=None), f"{column}_max": max(values, default=None)})
            found.update({"size_call_mean": mean(sizes), "size_call_std": deviation(sizes, len(sizes))})
            bins = Counter(map(bin_of, sizes))
            found.update({f"size_bin_{text}_sum": bins[place] for place, text in enumerate(BINS)})
        return found

    def groups(self, view):
        """(layer, part) → row → spans."""
        found = defaultdict(lambda: defaultdict(list))
        for span in self.spans:
            row = span.rows[view]
            if row is not None:
                for place in self.places[span.key]:
                    found[place][row].append(span)
        return found

    def of_layer(self, view, wanted):
        """The view of one layer: row → column → value."""
        found = defaultdict(dict)
        for (one, part), rows in self.groups(view).items():
            for row, spans in rows.items() if one == wanted else ():
                found[str(row)].update({(f"{part}_" if part else "") + column: value for column, value in self.columns(spans).items()})
        return dict(found)

    def flat(self, view):
        """The view of all layers side by side: row → column → value."""
        found = defaultdict(dict)
        groups = self.groups(view)
        for (one, part), rows in groups.items():
            prefix = f"{one}_{part}_" if part else f"{one}_"
            for row, spans in rows.items():
                found[row].update({prefix + column: value for column, value in self.columns(spans).items()})
        self.add_walls(found, view, groups)
        self.add_shares(found, view)
        return {str(row): columns for row, columns in found.items()}

    # ---- wall times

    def walls(self, view):
        """row → layer → [union, own, beside compute], ns."""
        whole, parts = defaultdict(list), defaultdict(list)
        for span in self.spans:
            if span.single:
                for one, part in self.places[span.key]:
                    if not part:
                        whole[one, span.person].append((span.start, span.start + span.dur))
                        parts[one, span.person, span.rows[view]].append((span.start, span.start + span.dur))
        whole = defaultdict(list, {key: union(ranges) for key, ranges in whole.items()})
        found = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))

        @cache
        def below(name, process):
            return union(one for other in self.layers if other.parent == name for one in whole[other.name, process])

        def put(row, name, ranges, process):
            mine = union(ranges)
            inside, beside = common(mine, below(name, process)), common(mine, whole["compute", process])
            pieces = [(row, mine, inside, beside)] if view != "time_range" else [
                (bucket, *(common(ranges, [[self.origin + bucket * self.width, self.origin + (bucket + 1) * self.width]]) for ranges in (mine, inside, beside)))
                for bucket in {bucket for start, end in mine for bucket in range((start - self.origin) // self.width, -(-(end - self.origin) // self.width))}
            ]  # fmt: skip
            for row, mine, inside, beside in pieces:
                sums = found[row][name]
                for place, more in enumerate((length(mine), length(mine) - length(inside), length(beside))):
                    sums[place] += more

        if view == "time_range":
            for (name, process), ranges in list(whole.items()):
                put(None, name, ranges, process)
        else:
            for (name, process, row), ranges in parts.items():
                if row is not None:
                    put(row, name, ranges, process)
        return found

    def add_walls(self, found, view, groups):
        walls = self.walls(view)
        for row, by_layer in walls.items():
            found[row]
        with_totals = {(one, row) for (one, part), rows in groups.items() if not part for row, spans in rows.items() if not all(span.single for span in spans)}
        by_process = view == "time_range" or view in BY_PROCESS

        def known(one, row):
            return (one, row) not in with_totals and (by_process or (one, "") not in self.has_totals)

        def wall(one, row, needed, of):
            sums = walls[row].get(one) if row in walls else None
            return of(*sums) if sums and sums[0] > 0 and all(known(other, row) for other in needed) else None

        has_compute = any(one.name == "compute" for one in self.layers)
        for one in self.layers:
            below = [other.name for other in self.layers if other.parent == one.name]
            kinds = [("o", [one.name, *below], lambda all_of, own, beside: own)]
            if has_compute and one.background and one.name != "compute":
                kinds.append(("u", [one.name, "compute"], lambda all_of, own, beside: all_of - beside))
            for row, columns in found.items():
                columns[f"{one.name}_time_union_ns"] = wall(one.name, row, [one.name], lambda all_of, own, beside: all_of)
            for prefix, needed, of in kinds:
                values = {row: wall(one.name, row, needed, of) for row in found}
                total = sum(value for value in values.values() if value is not None)
                for row, value in values.items():
                    columns, column = found[row], f"{prefix}_{one.name}_time_union"
                    columns[f"{column}_ns"] = value
                    columns[f"{column}_frac_self"] = ratio(value, columns[f"{one.name}_time_union_ns"])
                    columns[f"{column}_frac_total"] = ratio(value, total)
        # The unions of all layers are known now.
        for one in self.layers:
            for row, columns in found.items():
                for prefix in ("o", "u"):
                    value = columns.get(f"{prefix}_{one.name}_time_union_ns")
                    wholes = {"parent": one.parent} if one.parent else {}
                    wholes.update({self.layers[0].name: self.layers[0].name} if one is not self.layers[0] else {})
                    for called, other in wholes.items():
                        columns[f"{prefix}_{one.name}_time_union_frac_{called}"] = ratio(value, columns[f"{other}_time_union_ns"])

    # ---- shares

    def add_shares(self, found, view):
        time, size = ("time_sum_ns", "size_sum") if view in BY_PROCESS else ("time_proc_max_ns", "size_proc_max")
        boundary = self.layers[0].name
        for one in self.layers:
            for part in ("", *one.parts):
                prefix = f"{one.name}_{part}_" if part else f"{one.name}_"
                rows = [columns for columns in found.values() if prefix + "count_sum" in columns]
                shares = {"count": "count_sum", "time_proc": time, "size_proc": size, "time_call": "time_sum_ns", "size_call": "size_sum"}
                totals = {share: sum(columns[prefix + column] for columns in rows) for share, column in shares.items()}
                wholes = {boundary: boundary} if part or one.name != boundary else {}
                wholes.update({"parent": one.name} if part else {"parent": one.parent} if one.parent else {})
                for columns in rows:
                    for share, column in shares.items():
                        columns[f"{prefix}{share}_frac_total"] = ratio(columns[prefix + column], totals[share])
                    columns[prefix + "ops_slope"] = ratio(columns[prefix + time] * totals["count"], totals["time_proc"] * columns[prefix + "count_sum"])
                    for called, whole in wholes.items():
                        for share, column in (("proc", time), ("call", "time_sum_ns")):
                            columns[f"{prefix}time_{share}_frac_{called}"] = ratio(columns[prefix + column], columns.get(f"{whole}_{column}"))
                slopes = sorted(slope for columns in rows if (slope := columns[prefix + "ops_slope"]) is not None)
                for columns in rows:
                    slope = columns[prefix + "ops_slope"]
                    if slope is not None:
                        columns[prefix + "ops_percentile"] = ratio(bisect_left(slopes, slope) + bisect_right(slopes, slope) + 1, 2 * len(slopes))

    # ---- layers of the whole job

    def summary(self):
        """The section `layers` of a report: layer → column → value."""
        ranges = defaultdict(lambda: defaultdict(list))
        held = defaultdict(list)
        for span in self.spans:
            for one, part in self.places[span.key]:
                if not part:
                    held[one].append(span)
                    if span.single:
                        ranges[one][span.person].append((span.start, span.start + span.dur))
        unions = {one: {process: union(all_of) for process, all_of in by_process.items()} for one, by_process in ranges.items()}

        def in_common(one, other):
            return sum(length(common(mine, unions.get(other, {}).get(process, []))) for process, mine in unions.get(one, {}).items())

        def is_known(*names):
            return not any((other, "") in self.has_totals for other in names)

        found = {}
        for one in self.layers:
            spans, mine = held[one.name], unions.get(one.name, {})
            below = [other.name for other in self.layers if other.parent == one.name]
            walls = [length(all_of) for all_of in mine.values()]
            inside = sum(length(common(all_of, union(part for other in below for part in unions.get(other, {}).get(process, [])))) for process, all_of in mine.items())
            has_compute = one.name != "compute" and any(other.name == "compute" for other in self.layers)
            found[one.name] = {
                "count": sum(span.count for span in spans),
                "size": sum(oracle.size(span) if span.single else span.view_size or 0 for span in spans),
                "time_sum_ns": sum(span.time for span in spans),
                "processes": len({span.person for span in spans}),
                "total_calls": sum(span.count for span in spans if not span.single),
                **(
                    {
                        "time_union_ns": length(union(part for all_of in mine.values() for part in all_of)),
                        "time_union_proc_ns": sum(walls),
                        "time_union_proc_max_ns": max(walls, default=0),
                    }
                    if is_known(one.name)
                    else {}
                ),
                "time_self_ns": sum(walls) - inside if is_known(one.name, *below) else None,
                "time_unoverlapped_ns": sum(walls) - in_common(one.name, "compute") if has_compute and is_known(one.name, "compute") else None,
                **{f"overlap_{other.name}_ns": in_common(one.name, other.name) if is_known(one.name, other.name) else None for other in self.layers},
            }
        return found

    # ---- what views are made of

    def profiles(self):
        """`run.profiles`: the records as they are; those that are about the same are one."""
        groups = defaultdict(list)
        for record in self.trace.records():
            epoch, step = (integer(record.args.get(key)) for key in ("epoch", "step"))
            about = (record.cat, record.name, record.pid, record.tid, record.known_path, record.host or "unknown", epoch, step, record.start - self.origin)
            groups["|".join(map(str, about))].append(record)
        found = {}
        for row, records in groups.items():
            self.describe(records[0])
            sizes = [record.bytes_moved for record in records if record.cat in IO_CATEGORIES and kind_of(record.cat, record.name) in ("read", "write") or "size_sum" in record.args]
            times = [extreme for record in records if record.extremes for extreme in record.extremes]
            found[row] = {
                "count": sum(record.count for record in records),
                "io_cat": KIND_NUMBERS[records[0].kind],
                "time_ns": sum(record.time for record in records),
                "time_min_ns": min(times, default=None),
                "time_max_ns": max(times, default=None),
                "size": sum(sizes) or None,
                "time_range": (records[0].start + self.period // 2 - self.origin) // self.width,
                "time_end": records[0].start - self.origin + self.period,
                "acc_pat": 0,
                **dict.fromkeys(("size_min", "size_max", "offset_min", "offset_max"), UNKNOWN),
            }
        return found

    def metrics(self, views):
        """`run.metrics`: by the keys of views, category, kind of I/O and name."""
        groups = defaultdict(list)
        for span in self.spans:
            keys = [span.rows[view] for view in sorted({*views, "proc_name"})]
            groups["|".join(map(str, (*keys, span.label, KIND_NUMBERS[span.kind], span.name)))].append(span)
        found = {}
        for row, spans in groups.items():
            all_columns = self.columns(spans)
            names = {"count_sum": "count", "time_sum_ns": "time_ns", "size_sum": "size", **{f"size_bin_{text}_sum": f"size_bin_{text}" for text in BINS}}
            same = "time_call_min_ns time_call_max_ns size_call_min size_call_max offset_min offset_max".split()
            found[row] = {names.get(column, column): value for column, value in all_columns.items() if column in names or column in same}
            found[row].update({"acc_pat": 0, "time_sq": UNKNOWN, "size_sq": UNKNOWN})
            if all(span.single for span in spans):
                found[row]["time_sq"] = ratio(sum(span.time**2 for span in spans), 10**18)
                found[row]["size_sq"] = float(sum((span.view_size or 0) ** 2 for span in spans))
        return found


def ratio(part, whole):
    """Of integers: the nearest floating-point number."""
    return None if part is None or not whole else part / whole


def rate(amount, ns):
    return ratio(amount * oracle.SECOND, ns)


def mean(values):
    return ratio(sum(values), len(values))


def deviation(values, freedom):
    """The root of the squares' sum over so many; of none there is no deviation."""
    count, total = len(values), sum(values)
    return math.sqrt(ratio(count * sum(value * value for value in values) - total * total, count * freedom)) if freedom > 0 else None


def bin_of(size):
    """The first bin whose bound the size does not exceed: 4 KiB, and four times as much each."""
    return next((place for place in range(len(BINS) - 1) if size <= 4096 * 4**place), len(BINS) - 1)
