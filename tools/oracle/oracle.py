"""Reference analysis of a trace in one plain loop: counts, times and bytes of the job, its operations, files and processes.

compare.py compares Weftline's reports, SQL tables and Python results with this loop. It shares no code and no table with them, reads a whole
trace into memory and keeps every number exact (integers and decimals). expected_failures.tsv lists cells in which the product is known to be wrong.

It reads what the index reads directly: pfw files of DFTracer (all versions), PerfFlowAspect and Weftline, Chrome JSON, Kineto, VizTracer; plain or gz.

The rules:

- A line that defines a hash (FH, HH, SH) is not an event. A hash has the nearest definition before it in its file; else the first one
  after it in its file; else the first one of the other files, in the order of their names.
- Numbers may be written as text ("ret":"4096").
- An event that needs a time and has no usable one (missing, null, NaN, text that is no number, beyond 64 bits of nanoseconds) is damage.
- A span is an X; a B with the E that ends it on its thread; a b with the e of its category, scope and id. A span that never ended is an event, but not a span.
- A process is a pid of a host, and of a pid namespace if the trace has it (0 is none). If one file has the namespace of a pid, it holds for files
  of that host that do not. Events that do not name their host are on the one host that their file names. Files that name no host have processes of their
  own. Pid 0 is not a process: it is the host (samples) or a device (Kineto); nor is a pid that is not a number. Metadata makes no process.
- Kernel threads are not processes: the children of pid 2, and pid 2 itself, which have neither a program nor a command line. Nor is a process that only
  issued requests to block devices (category `block`, in a file of Weftline): the kernel reports those of everybody, and its own threads write back what
  others wrote.
- Bytes are the positive results of reads and writes in the categories POSIX and STDIO. A call that copies between two files reads the one and writes
  the other.
- Totals are records in which DFTracer summed the calls of a period. They count unless the same thread has spans of that name in the period.
"""

import gzip
import json
import re
import sys
from collections import defaultdict, namedtuple
from decimal import ROUND_FLOOR, Decimal, InvalidOperation, getcontext
from pathlib import Path
from types import SimpleNamespace as Bag

READS = set(
    "read pread pread64 readv preadv preadv2 preadv64 preadv64v2 __read_chk __pread_chk __pread64_chk fread fread_unlocked __fread_chk"
    " __fread_unlocked_chk fgets fgets_unlocked __fgets_chk __fgets_unlocked_chk getline getdelim __getdelim getc fgetc _IO_getc getc_unlocked"
    " fgetc_unlocked getchar getchar_unlocked __uflow".split()
)
WRITES = set(
    "write pwrite pwrite64 writev pwritev pwritev2 pwritev64 pwritev64v2 fwrite fwrite_unlocked fputs fputs_unlocked puts fprintf __fprintf_chk"
    " printf __printf_chk dprintf __dprintf_chk vfprintf __vfprintf_chk vprintf __vprintf_chk vdprintf __vdprintf_chk putc fputc _IO_putc"
    " putc_unlocked fputc_unlocked putchar putchar_unlocked __overflow".split()
)
COPIES = set("copy_file_range sendfile sendfile64 splice tee".split())
IO_CATEGORIES = {"posix", "stdio"}

# What reports leave out, as DFAnalyzer does: files of the system and of interpreters, and calls that only wrap others.
SYSTEM_FILES = (
    "/dev/ /etc/ /gapps/python /lib/python /proc/ /software/ /sys/ /usr/lib /usr/tce/backend /usr/tce/packages /venv __pycache__".split()
)
WRAPPERS = re.compile(
    r"^(DLIOBenchmark\.__init__|DLIOBenchmark\.initialize|FileStorage\.__init__|TorchDataset\.__init__)$"
    r"|(Checkpointing|DataLoader).(__init__|finalize|get_tensor)|DataLoader.next|Framework.(get_loader|init_loader|is_nativeio_available|trace_object)"
    r"|Reader.(__init__|load_index|next|read_index)|.save_state|checkpoint_end_|checkpoint_start_"
)

PHASES = {1: "X", 2: "C", 3: "A", 4: "M", "I": "i", "S": "b", "F": "e"}
UNITS = {"NS": 1, "US": 1_000, "MS": 1_000_000, "S": 1_000_000_000, "SEC": 1_000_000_000}
SECOND = 1_000_000_000
FARTHEST = 2**63
# Digits of decimals: products of times and units stay exact.
getcontext().prec = 60


# ---- from text to events


def number(value):
    """A finite number, as it is or as text; else None."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            try:
                value = Decimal(value)
            except InvalidOperation:
                return None
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def integer(value):
    value = number(value)
    return None if value is None else int(value)


def nanoseconds(value):
    """A number of nanoseconds, rounded down; None where 64 bits cannot hold it."""
    if isinstance(value, Decimal):
        value = int(value.to_integral_value(ROUND_FLOOR)) if value.adjusted() < 20 else FARTHEST
    return value if -FARTHEST <= value < FARTHEST else None


DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=Decimal, strict=False)
BETWEEN = re.compile(r"[\s,\[\]]*")
HEAD = re.compile(r'\{[^\[]*"traceEvents"\s*:\s*\[')
# C++ prints these without quotes and in lower case.
NOT_NUMBERS = re.compile(r"(?<=[:,\[])\s*-?(nan|inf)(?=\s*[,}\]])")


def objects(text):
    """The objects of a trace, whatever is around them, and None for each line that is none. A file that is one object gives that object first."""
    at = BETWEEN.match(text).end()
    while at < len(text):
        line_end = text.find("\n", at) % (len(text) + 1)
        try:
            value, at = DECODER.raw_decode(text, at)
        except ValueError:
            head = HEAD.match(text, at)
            try:
                value = DECODER.decode(NOT_NUMBERS.sub("NaN", text[at:line_end]).rstrip(", \r]"))
                at = line_end
            except ValueError:
                value, at = ({}, head.end()) if head else (None, line_end)
        if isinstance(value, dict) and isinstance(value.get("traceEvents"), list):
            yield {**value, "traceEvents": None}
            yield from value["traceEvents"]
        elif value != {}:
            yield value
        at = BETWEEN.match(text, at).end()


def read(path):
    """The text of a trace file. What is behind a damaged place in a gzip file is not read."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return data.decode("utf-8", "surrogateescape")


def shown(text):
    """A text as the product shows it: bytes that are no UTF-8, which JSON has as lone surrogates (\\udcff), become characters of a private plane."""
    return "".join(chr(0x100000 + ord(char)) if "\ud800" <= char <= "\udfff" else char for char in str(text))


def load(path):
    """The events of one file, and what else it says: definitions of hashes, its hosts, its rank, its unit of time."""
    file = Bag(path=str(path), events=[], damage=0, definitions=defaultdict(list), hosts=set(), rank=None, unit=1_000, pidns=None, is_own=False)
    for value in objects(read(path)):
        if not isinstance(value, dict):
            file.damage += 1
        elif "ph" in value:
            args = value.get("args") if isinstance(value.get("args"), dict) else {}
            ph = PHASES.get(value["ph"], value["ph"])
            if ph == "M" and value.get("name") in ("FH", "HH", "SH") and "name" in args and "value" in args:
                file.definitions[value["name"], str(args["value"])].append((len(file.events), shown(args["name"])))
                continue
            if ph == "M" and value.get("name") == "CM" and args.get("name") == "time_metric":
                file.unit = UNITS.get(str(args.get("value")).upper(), file.unit)
            event = Bag(ph=ph, name=shown(value.get("name", "")), cat=shown(value.get("cat", "")).lower(), args=args, raw=value, at=len(file.events))
            file.events.append(event)
        elif isinstance(value.get("distributedInfo"), dict):
            file.rank = integer(value["distributedInfo"].get("rank"))
    for event in file.events:
        set_times(file, event)
    return file


def set_times(file, event):
    raw = event.raw
    ts, dur, rest = number(raw.get("ts")), number(raw.get("dur")), raw.get("ns")
    event.start = event.dur = None
    if ts is None:
        pass
    elif isinstance(ts, int) and isinstance(rest, int) and 0 <= rest < 1_000_000 and file.unit == 1_000:
        # Weftline: both ends in whole microseconds, and their remainders.
        event.start = nanoseconds(ts * 1000 + rest // 1000)
        if isinstance(dur, int) and event.start is not None:
            event.dur = (ts + dur) * 1000 + rest % 1000 - event.start
    else:
        event.start = nanoseconds(ts * file.unit)
        if dur is not None and event.start is not None:
            end = nanoseconds((ts + dur) * file.unit)
            event.dur = None if end is None else end - event.start
    event.bad = event.start is None and event.ph != "M"
    file.damage += event.bad


# ---- who and what events are about


Process = namedtuple("Process", "host pidns pid file")


class Trace:
    """The files of a run and what their events mean together."""

    def __init__(self, paths):
        self.files = [load(path) for path in sorted(paths, key=str)]
        self.ranks = {}
        self.elsewhere = {}
        for file in self.files:
            for key, found in file.definitions.items():
                self.elsewhere.setdefault(key, found[0][1])
        self.namespaces, self.threads, self.issuers, self.doers = {}, set(), set(), set()
        for file in self.files:
            self.place(file)
        for file in self.files:
            self.name(file)
            self.pair(file)
        self.events = [event for file in self.files for event in file.events]
        none = self.threads | self.issuers - self.doers
        for event in self.events:
            event.is_process = isinstance(event.pid, int) and event.pid != 0 and event.process not in none
        self.damage = sum(file.damage for file in self.files)
        self.spans = [event for event in self.events if event.span]

    def meaning(self, file, kind, key, at):
        """What a hash means to the event at a place of a file; None where nobody says."""
        found = file.definitions.get((kind, str(key)), [])
        before = [name for place, name in found if place <= at]
        return before[-1] if before else found[0][1] if found else self.elsewhere.get((kind, str(key)))

    def place(self, file):
        """Says for every event of a file on which host, in which namespace of pids and about which files it is."""
        identity = {}
        for event in file.events:
            args, pid = event.args, event.raw.get("pid", 0)
            event.pid = pid if integer(pid) is None else integer(pid)
            tid = event.raw.get("tid", 0)
            event.tid = tid if integer(tid) is None else integer(tid)
            if event.ph == "M" and event.cat == "weft" and event.name == "process_name":
                identity[event.pid] = (args.get("host"), args.get("pidns") or None)
                file.pidns = args.get("pidns") or None
                file.is_own = True
            event.host, event.pidns = identity.get(event.pid, (args.get("hostname"), None))
            if event.host is None and "hhash" in args:
                event.host = self.meaning(file, "HH", args["hhash"], event.at) or str(args["hhash"])
            if event.host:
                file.hosts.add(event.host)
            known, source = (None if args.get(key) is None else self.meaning(file, "FH", args[key], event.at) for key in ("fhash", "fhash2"))
            # A file that nobody names goes by its hash.
            event.known_path = known or args.get("fname")
            event.path = event.known_path or (None if args.get("fhash") is None else str(args["fhash"]))
            event.source = source or (None if args.get("fhash2") is None else str(args["fhash2"]))
        for event in file.events:
            if event.host is None and len(file.hosts) == 1:
                event.host, event.pidns = next(iter(file.hosts)), event.pidns or file.pidns
            if event.pidns:
                self.namespaces.setdefault((event.host, event.pid), event.pidns)

    def name(self, file):
        """Says in which process every event of a file is, and what is told of that process."""
        for event in file.events:
            args = event.args
            event.pidns = event.pidns or self.namespaces.get((event.host, event.pid))
            event.process = Process(event.host, event.pidns, event.pid, None if event.host else file.path)
            tells = event.ph == "M" and event.cat == "weft" and event.name == "process_name"
            of_kernel = integer(args.get("ppid")) == 2 or event.pid == 2 and integer(args.get("ppid")) == 0
            if tells and of_kernel and not args.get("exe") and not args.get("cmd"):
                self.threads.add(event.process)
            elif file.is_own and event.cat == "block" and event.ph == "X":
                self.issuers.add(event.process)
            elif tells or event.ph != "M":
                self.doers.add(event.process)
            stated = file.rank
            if event.ph == "M":
                named = re.fullmatch(r"Rank (\d+)\s*", str(event.args.get("name"))) if event.name == "process_name" else None
                stated = event.args.get("rank") if event.cat == "weft" else event.args.get("value") if event.args.get("name") == "rank" else stated
                stated = named[1] if named else stated
            if integer(stated) is not None:
                self.ranks[event.process] = integer(stated)

    @staticmethod
    def pair(file):
        """Makes spans: X as they are, B and b with the duration that their end gives them."""
        stacks = defaultdict(list)
        for event in file.events:
            event.span = event.ph == "X" and event.start is not None and event.dur is not None
            if event.ph in "BEbe" and event.start is not None:
                raw = event.raw
                key = (event.process, event.tid) if event.ph in "BE" else (event.cat, str(raw.get("scope")), str(raw.get("id", raw.get("id2"))))
                if event.ph in "Bb":
                    stacks[key].append(event)
                elif stacks[key]:
                    begun = stacks[key].pop()
                    begun.dur, begun.span = event.start - begun.start, True

    def period(self):
        """How long the periods of records are: as processes state at their end, else a second."""
        stated = [integer(span.args.get("cfg", {}).get("trace_interval_ms")) for span in self.spans if span.name == "end" and "cfg" in span.args]
        return max((ms * 1_000_000 for ms in stated if ms), default=SECOND)

    def records(self):
        """Records of calls that the tracer summed itself."""
        records = []
        for file in self.files:
            for event in file.events:
                count = integer(event.args.get("dft_cnt", event.args.get("dftu_cnt")))
                if event.start is None or event.ph != "A" and not (event.ph == "C" and count is not None):
                    continue
                get = lambda name: integer(event.args.get(name + "_sum", event.args.get(name))) or 0
                least, most = (integer(event.args.get("dur_" + end, event.args.get("dur"))) for end in ("min", "max"))
                event.count, event.bytes_moved = max(count or 1, 1), get("size") if "size_sum" in event.args else get("ret")
                event.time = get("dur") * file.unit
                event.extremes = None if None in (least, most) else (least * file.unit, most * file.unit)
                records.append(event)
        return records

    def totals(self):
        """Records without those whose calls are recorded one by one as well; and the length of their periods."""
        period, singly, records = self.period(), defaultdict(list), []
        for span in self.spans:
            singly[span.process, span.tid, span.cat, span.name].append(span)
        for record in self.records():
            rivals = singly[record.process, record.tid, record.cat, record.name]
            if not any(record.start <= span.start < record.start + period and record.path in (None, span.path) for span in rivals):
                records.append(record)
        return records, period


def label(process, others):
    """What reports call a process; with its file or pid namespace where that alone tells it from another."""
    alike = [other for other in others if (other.host, other.pid) == (process.host, process.pid)]
    place = Path(process.file).name if process.file else process.pidns
    return f"{process.host or 'unknown'}#{process.pid}" + (f"@{place}" if len(alike) > 1 else "")


def moved(span):
    """Bytes that a span read and wrote."""
    if span.cat not in IO_CATEGORIES:
        return 0, 0
    result = max(integer(span.args.get("ret")) or 0, 0)
    return (result if span.name in READS | COPIES else 0), (result if span.name in WRITES | COPIES else 0)


def size(span):
    """Bytes of a span of any category. Layers of a program say how large a sample is; those that open or close one move nothing of it."""
    if span.cat in IO_CATEGORIES:
        return max(moved(span))
    if "close" in span.name.lower():
        return 0
    summed = integer(span.args.get("size_sum"))
    if summed is not None or "open" in span.name.lower():
        return max(summed or 0, 0)
    return max(integer(span.args.get("image_size")) or 0, 0)


def is_kept(span):
    """Whether a report counts it."""
    return not WRAPPERS.search(span.name) and not any(part in (span.path or "") for part in SYSTEM_FILES)


def sections(trace, kept=False, totals=False):
    """The cells: section → row → column → number. `kept`: only what reports count. `totals`: with calls that are known only as totals."""
    operations = defaultdict(lambda: {"count": 0, "time_ns": 0, "min_ns": None, "max_ns": None, "bytes": 0})
    files = defaultdict(lambda: {"calls": 0, "read_bytes": 0, "written_bytes": 0, "time_ns": 0})
    processes = defaultdict(lambda: {"calls": 0, "read_bytes": 0, "written_bytes": 0, "time_ns": 0})
    records, period = trace.totals() if totals else ([], SECOND)
    names = {event.process for event in trace.events if event.is_process and event.ph != "M" and not event.bad}
    labels = {process: label(process, names) for process in names}

    def add(row, calls, read, written, time):
        row["calls"] += calls
        row["read_bytes"] += read
        row["written_bytes"] += written
        row["time_ns"] += time

    for span in trace.spans + records:
        if kept and not is_kept(span):
            continue
        single = span.span
        count, time = (1, span.dur) if single else (span.count, span.time)
        extremes = (span.dur, span.dur) if single else span.extremes
        if single:
            (read, written), bytes_of = moved(span), size(span)
        else:
            is_io = span.cat in IO_CATEGORIES
            read = span.bytes_moved if is_io and span.name in READS | COPIES else 0
            written = span.bytes_moved if is_io and span.name in WRITES | COPIES else 0
            bytes_of = max(read, written)
        row = operations[f"{span.cat} {span.name}"]
        row["count"] += count
        row["time_ns"] += time
        row["bytes"] += bytes_of
        for column, choose, value in (("min_ns", min, extremes and extremes[0]), ("max_ns", max, extremes and extremes[1])):
            row[column] = value if row[column] is None else row[column] if value is None else choose(row[column], value)
        if span.cat not in IO_CATEGORIES:
            continue
        if span.is_process:
            add(processes[labels[span.process]], count, read, written, time)
        if span.name in COPIES and span.source:
            add(files[span.source], count, read, 0, time)
            read = 0
        if span.path:
            add(files[span.path], count, read if span.name not in COPIES else 0, written, time)

    starts = [span.start for span in trace.spans]
    ends = [span.start + max(span.dur, 0) for span in trace.spans]
    last_record = max((record.start for record in records), default=None)
    if last_record is not None and last_record >= max(ends, default=last_record):
        starts.append(min(record.start for record in records))
        ends.append(last_record + period)
    hosts = {process.host for process in names if process.host}
    job = {
        "events": len(trace.events),
        "spans": len(trace.spans),
        "time_ns": max(ends) - min(starts) if starts else 0,
        "processes": len(names),
        "hosts": len(hosts) or (1 if names else 0),
        "read_bytes": sum(moved(span)[0] for span in trace.spans if not kept or is_kept(span)),
        "written_bytes": sum(moved(span)[1] for span in trace.spans if not kept or is_kept(span)),
        "damage": trace.damage,
    }
    for record in records:
        if record.cat in IO_CATEGORIES and (not kept or is_kept(record)):
            job["read_bytes"] += record.bytes_moved if record.name in READS | COPIES else 0
            job["written_bytes"] += record.bytes_moved if record.name in WRITES | COPIES else 0
    ranks = {name: {"rank": trace.ranks.get(process)} for process, name in labels.items()}
    return {"job": {"": job}, "operations": dict(operations), "files": dict(files), "processes": dict(processes), "ranks": ranks}


if __name__ == "__main__":
    json.dump(sections(Trace(sys.argv[1:])), sys.stdout, indent=1, default=str)
    print()
