#!/usr/bin/env python3
"""Compares what `import` makes of Perfetto's traces with what Perfetto's own engine sees in them.

    compare_import.py WEFT [--seeds N] [--write DIR] [TRACE…]

WEFT is the command (`make build`: target/release/weft). Without traces the tool makes its own
with Perfetto's protobuf classes: one for each thing that a trace can hold, and N random ones. Each is compared slice by slice (name, category,
start, duration, thread, arguments) and counter by counter. Needs Node and tools/requirements.txt. Exit status: 0 equal, 1 not, 2 misuse.
"""

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from check_trace import Engine, TraceError

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDS = 1, 2
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6
BOOT_NS = 50_000_000_000
UTC_NS = 1_794_990_000_000_000_000

SLICES = """
    select s.id as id, s.ts as ts, s.dur as dur, coalesce(nullif(s.name, ''), 'unnamed') as name,
           coalesce(nullif(s.category, ''), 'track_event') as cat, t.tid as tid, p.pid as pid, s.arg_set_id as args
    from slice s left join thread_track tt on s.track_id = tt.id and tt.name is null left join thread t using (utid)
         left join process p using (upid)
"""
ARGS = """
    select s.id as id, a.key as key, a.display_value as value
    from slice s join args a using (arg_set_id) where a.key glob 'debug.*'
"""
COUNTERS = """
    select c.ts as ts, c.value as value, coalesce(nullif(t.name, ''), 'counter') as name
    from counter c join track t on c.track_id = t.id
"""
LOST = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"


class Maker:
    """A trace in the making."""

    def __init__(self):
        self.trace = pb.Trace()

    def packet(self, sequence=1, ts=None, flags=0, clock=None):
        packet = self.trace.packet.add()
        packet.trusted_packet_sequence_id = sequence
        if ts is not None:
            packet.timestamp = ts
        if clock is not None:
            packet.timestamp_clock_id = clock
        if flags:
            packet.sequence_flags = flags
        return packet

    def start(self, sequence=1):
        return self.packet(sequence, flags=CLEARED)

    def snapshot(self, sequence=1, extra=(), **clocks):
        packet = self.packet(sequence)
        times = {BOOTTIME: BOOT_NS, REALTIME: UTC_NS, MONOTONIC: BOOT_NS - 7_000_000}
        times.update({int(key[1:]): value for key, value in clocks.items()})
        for clock, time in times.items():
            if time is not None:
                packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=time)
        for clock, time, incremental, unit in extra:
            packet.clock_snapshot.clocks.add(
                clock_id=clock, timestamp=time, is_incremental=incremental, unit_multiplier_ns=unit
            )
        return packet

    def process(self, uuid, pid, name="", sequence=1):
        descriptor = self.packet(sequence).track_descriptor
        descriptor.uuid = uuid
        descriptor.process.pid = pid
        if name:
            descriptor.process.process_name = name

    def thread(self, uuid, pid, tid, name="", sequence=1, parent=0):
        descriptor = self.packet(sequence).track_descriptor
        descriptor.uuid = uuid
        if parent:
            descriptor.parent_uuid = parent
        descriptor.thread.pid = pid
        descriptor.thread.tid = tid
        if name:
            descriptor.thread.thread_name = name

    def track(self, uuid, name, parent=0, sequence=1):
        descriptor = self.packet(sequence).track_descriptor
        descriptor.uuid = uuid
        descriptor.name = name
        if parent:
            descriptor.parent_uuid = parent

    def counter_track(self, uuid, name, parent=0, sequence=1, **fields):
        descriptor = self.packet(sequence).track_descriptor
        descriptor.uuid = uuid
        if name:
            descriptor.name = name
        if parent:
            descriptor.parent_uuid = parent
        descriptor.counter.SetInParent()
        for key, value in fields.items():
            setattr(descriptor.counter, key, value)

    def event(self, kind, ts, track=None, name=None, sequence=1, cats=(), clock=None, flags=0):
        event = self.packet(sequence, ts, flags, clock).track_event
        event.type = kind
        if track is not None:
            event.track_uuid = track
        if name is not None:
            event.name = name
        event.categories.extend(cats)
        return event

    def legacy(self, phase, ts, sequence=1, track=None, name=None, cats=(), **fields):
        event = self.packet(sequence, ts).track_event
        if track is not None:
            event.track_uuid = track
        if name is not None:
            event.name = name
        event.categories.extend(cats)
        event.legacy_event.phase = ord(phase)
        for key, value in fields.items():
            setattr(event.legacy_event, key, value)
        return event

    def common(self):
        self.start()
        self.snapshot()
        self.process(10, 100, "worker")
        self.thread(11, 100, 101, "main thread")


def simple(make):
    make.common()
    t = BOOT_NS
    make.event(BEGIN, t + 1_000, 11, "outer", cats=["io", "disk"])
    make.event(BEGIN, t + 2_000, 11, "inner", cats=["io"])
    make.event(END, t + 3_500, 11)
    make.event(INSTANT, t + 4_001, 11, "mark")
    make.event(END, t + 9_999, 11)


def late_descriptions(make):
    """Tracks and names come behind their events."""
    make.start()
    make.event(BEGIN, BOOT_NS + 10, 11, "a")
    make.event(END, BOOT_NS + 20, 11)
    make.process(10, 100, "late")
    make.thread(11, 100, 101, "late thread")
    make.snapshot()


def async_tracks(make):
    make.common()
    make.track(20, "requests", parent=10)
    make.track(21, "queue", parent=11)
    make.track(22, "global")
    for number, track in enumerate((10, 20, 21, 22, 99)):
        make.event(BEGIN, BOOT_NS + number * 10, track, f"on {track}")
        make.event(BEGIN, BOOT_NS + number * 10 + 1, track, "nested")
        make.event(INSTANT, BOOT_NS + number * 10 + 2, track, "mark")
        make.event(END, BOOT_NS + number * 10 + 3, track)
        make.event(END, BOOT_NS + 1_000 + number, track)


def counters(make):
    make.common()
    make.counter_track(30, "rss", parent=10, unit=3)
    make.counter_track(31, "kilo", unit=2, unit_multiplier=1024)
    make.counter_track(32, "delta", is_incremental=True, unit_name="things")
    make.counter_track(33, "", parent=11, type=1, is_incremental=True)
    make.counter_track(34, "sum", is_incremental=True, unit_multiplier=3)
    for number in range(5):
        for track in (30, 31, 32, 34):
            make.event(COUNTER, BOOT_NS + number * 100 + track, track).counter_value = number * 7 - 3
        make.event(COUNTER, BOOT_NS + number * 100 + 50, 30).double_counter_value = number / 8
    # A start anew also starts counters anew.
    make.packet(flags=CLEARED)
    make.event(COUNTER, BOOT_NS + 1_000, 32).counter_value = 11
    event = make.event(BEGIN, BOOT_NS + 2_000, 11, "with")
    event.extra_counter_track_uuids.extend([33, 31])
    event.extra_counter_values.extend([100, 5])
    event = make.event(END, BOOT_NS + 3_000, 11)
    event.extra_counter_track_uuids.extend([33])
    event.extra_counter_values.extend([50])
    event.extra_double_counter_track_uuids.extend([30])
    event.extra_double_counter_values.extend([0.25])


def defaults_and_interning(make):
    make.snapshot()
    make.process(10, 100, "worker")
    make.thread(11, 100, 101, "main thread")
    for round_number in range(3):
        packet = make.packet(2, flags=CLEARED)
        packet.trace_packet_defaults.timestamp_clock_id = MONOTONIC
        packet.trace_packet_defaults.track_event_defaults.track_uuid = 11
        packet.trace_packet_defaults.track_event_defaults.extra_counter_track_uuids.extend([40])
        for number in (1, 2):
            packet.interned_data.event_names.add(iid=number, name=f"name {number} of {round_number}")
            packet.interned_data.event_categories.add(iid=number, name=f"cat{number}")
            packet.interned_data.debug_annotation_names.add(iid=number, name=f"key{number}")
            packet.interned_data.debug_annotation_string_values.add(iid=number, str=f"text {number}".encode())
        packet.interned_data.source_locations.add(iid=1, file_name="a.c", function_name="f", line_number=7)
        make.counter_track(40, "extra", is_incremental=True)
        for number in range(20):
            at = BOOT_NS + round_number * 100_000 + number * 1_000
            event = make.packet(2, at, NEEDS).track_event
            event.type = BEGIN
            event.name_iid = number % 2 + 1
            event.category_iids.extend([1, 2] if number % 3 else [2])
            note = event.debug_annotations.add()
            note.name_iid = number % 2 + 1
            note.string_value_iid = 1
            event.source_location_iid = 1
            event.extra_counter_values.append(number)
            end = make.packet(2, at + 999, NEEDS).track_event
            end.type = END
    # Lost packets: all that needs what is lost is left out, until the next start.
    packet = make.packet(2, BOOT_NS + 900_000)
    packet.previous_packet_dropped = 1
    event = make.packet(2, BOOT_NS + 900_001, NEEDS).track_event
    event.type = INSTANT
    event.name_iid = 1


def annotations(make):
    make.common()
    event = make.event(BEGIN, BOOT_NS + 1, 11, "all kinds")

    def note(name, **fields):
        annotation = event.debug_annotations.add()
        annotation.name = name
        for key, value in fields.items():
            setattr(annotation, key, value)
        return annotation

    note("bool", bool_value=True)
    note("uint", uint_value=(1 << 63) - 1)
    note("int", int_value=-5)
    note("double", double_value=0.125)
    note("text", string_value="größe \"x\"")
    note("pointer", pointer_value=0xABCDEF)
    note("json", legacy_json_value='{"a": [1, {"b": "c"}]}')
    nested = note("dict")
    inner = nested.dict_entries.add()
    inner.name, inner.int_value = "one", 1
    deep = nested.dict_entries.add()
    deep.name = "list"
    for number in range(3):
        deep.array_values.add().string_value = f"v{number}"
    array = note("array")
    for number in range(3):
        array.array_values.add().int_value = number
    old = event.debug_annotations.add()
    old.name = "old"
    old.nested_value.nested_type = 1
    old.nested_value.dict_keys.extend(["x", "y"])
    old.nested_value.dict_values.add().int_value = 3
    values = old.nested_value.dict_values.add()
    values.nested_type = 2
    values.array_values.add().string_value = "deep"
    event.flow_ids.extend([7, 8])
    event = make.event(END, BOOT_NS + 5, 11)
    event.terminating_flow_ids.extend([7])
    annotation = event.debug_annotations.add()
    annotation.name = "at_end"
    annotation.string_value = "yes"


def clocks(make):
    """Events on four clocks, and snapshots in which they drift."""
    make.start()
    make.snapshot()
    make.thread(11, 100, 101)
    make.event(BEGIN, BOOT_NS + 1_000, 11, "boot")
    make.event(END, BOOT_NS + 2_000 - 7_000_000, 11, clock=MONOTONIC)
    make.event(BEGIN, UTC_NS + 10_000, 11, "wall", clock=REALTIME)
    make.event(END, UTC_NS + 20_000, 11, clock=REALTIME)
    # A clock of the sequence that counts on, in microseconds.
    packet = make.snapshot(extra=[(64, 5_000, True, 1_000)], c6=BOOT_NS + 100_000, c1=UTC_NS + 100_000, c3=None)
    packet.sequence_flags = CLEARED
    make.packet().trace_packet_defaults.timestamp_clock_id = 64
    for number in range(10):
        make.event(BEGIN, 3, 11, f"counted {number}")
        make.event(END, 4, 11)
    make.event(INSTANT, BOOT_NS + 1_000_000, 11, "absolute", clock=BOOTTIME)
    second = 1_000_000_000
    make.snapshot(c6=BOOT_NS + 10 * second, c1=UTC_NS + 10 * second, c3=BOOT_NS + 10 * second - 7_000_400)
    make.event(BEGIN, BOOT_NS + 11 * second - 7_000_000, 11, "drifted", clock=MONOTONIC)
    make.event(END, BOOT_NS + 12 * second - 7_000_000, 11, clock=MONOTONIC)


def unmatched(make):
    make.common()
    t = BOOT_NS
    make.event(END, t + 1, 11)
    make.event(BEGIN, t + 2, 11, "never ends")
    make.event(BEGIN, t + 3, 11, "outer", cats=["a"])
    make.event(BEGIN, t + 4, 11, "inner", cats=["b"])
    # The end of the outer one comes first.
    make.event(END, t + 5, 11, "outer", cats=["a"])
    make.event(INSTANT, t + 6, 11, "between")
    make.event(BEGIN, t + 7, 11, "next", cats=["c"])
    make.event(END, t + 8, 11, cats=["no such"])
    make.event(END, t + 9, 11, cats=["c"])
    make.event(BEGIN, t + 10, 10, "also never")


def out_of_order(make):
    make.common()
    t = BOOT_NS
    make.track(20, "shared", parent=10)
    for number in range(50):
        base = t + (49 - number) * 1_000
        make.event(BEGIN, base, 20, f"n{number}")
        make.event(END, base + 600, 20)
        make.event(BEGIN, base + 100, 20, "in")
        make.event(END, base + 300, 20)
    # The end in another sequence, earlier in the file.
    make.start(2)
    make.track(21, "handed over", parent=10)
    make.event(END, t + 5_000, 21, sequence=2)
    make.event(BEGIN, t + 4_000, 21, "handed", sequence=1)


def compressed(make):
    make.common()
    inner = Maker()
    for number in range(100):
        inner.event(BEGIN, BOOT_NS + number * 10, 11, f"n{number % 7}")
        inner.event(END, BOOT_NS + number * 10 + 5, 11)
    make.packet(0).compressed_packets = zlib.compress(inner.trace.SerializeToString())
    make.event(INSTANT, BOOT_NS + 5_000, 11, "after")


def legacy_phases(make):
    make.start()
    make.snapshot()
    packet = make.packet()
    packet.thread_descriptor.pid = 100
    packet.thread_descriptor.tid = 101
    packet.thread_descriptor.thread_name = "old"
    packet.thread_descriptor.reference_timestamp_us = (BOOT_NS - 7_000_000) // 1_000
    packet.thread_descriptor.reference_thread_time_us = 500
    make.thread(11, 100, 102)
    t = BOOT_NS
    event = make.legacy("X", t + 1_000, name="complete", cats=["c"], duration_us=50, thread_duration_us=20)
    make.legacy("B", t + 100_000, name="b", cats=["c"])
    make.legacy("E", t + 200_000)
    make.legacy("i", t + 201_000, name="instant", instant_event_scope=3)
    make.legacy("b", t + 202_000, name="async", cats=["net"], unscoped_id=5)
    make.legacy("b", t + 203_000, name="async", cats=["net"], local_id=5)
    make.legacy("b", t + 203_500, name="async", cats=["other"], global_id=5, id_scope="s")
    make.legacy("n", t + 204_000, name="step", cats=["net"], unscoped_id=5)
    make.legacy("e", t + 205_000, name="async", cats=["net"], unscoped_id=5)
    make.legacy("e", t + 206_000, name="async", cats=["net"], local_id=5)
    make.legacy("e", t + 207_000, name="async", cats=["other"], global_id=5, id_scope="s")
    make.legacy("X", t + 300_000, name="other thread", duration_us=7, tid_override=107, pid_override=100)
    make.legacy("X", t + 400_000, name="of a track", track=11, duration_us=3)
    # Times that count on, in microseconds of the monotonic clock.
    for number in range(5):
        event = make.packet().track_event
        event.timestamp_delta_us = 1_000
        event.thread_time_delta_us = 10
        event.type = BEGIN
        event.name = f"counted {number}"
        event = make.packet().track_event
        event.timestamp_delta_us = 10
        event.thread_time_delta_us = 5
        event.type = END
    event = make.packet().track_event
    event.timestamp_absolute_us = BOOT_NS // 1_000 + 9_000
    event.type = INSTANT
    event.name = "absolute"


def others(make):
    make.common()
    make.packet().trace_config.duration_ms = 5
    make.packet(ts=BOOT_NS).ftrace_events.cpu = 1
    make.packet(ts=BOOT_NS).system_info.hz = 100
    tree = make.packet(ts=BOOT_NS).process_tree
    tree.processes.add(pid=200, ppid=1, cmdline=["/bin/x", "--flag"])
    tree.threads.add(tid=201, tgid=200, name="of tree")
    make.thread(50, 200, 201)
    make.event(INSTANT, BOOT_NS + 1, 50, "x")
    # A track event of sequence 0, and one on a clock that nobody describes.
    make.event(INSTANT, BOOT_NS + 2, 11, "of none", sequence=0)
    make.event(INSTANT, BOOT_NS + 3, 11, "no clock", clock=42)


VARIANTS = [
    simple, late_descriptions, async_tracks, counters, defaults_and_interning, annotations, clocks, unmatched, out_of_order,
    compressed, legacy_phases, others,
]  # fmt: skip


def random_trace(seed):
    """Tracks, threads, counters and sequences by chance; ends that fit or do not; packets of sequences mixed, some compressed."""
    choose = random.Random(seed)
    make = Maker()
    make.snapshot(sequence=900)
    pids = [choose.randrange(2, 5000) for _ in range(3)]
    tracks = []
    for place, pid in enumerate(pids):
        make.process(1_000 + place, pid, f"process {place}", sequence=900)
        for thread in range(2):
            uuid = 2_000 + place * 10 + thread
            make.thread(uuid, pid, pid + thread, choose.choice(["", f"thread {thread}"]), sequence=900)
            tracks.append(uuid)
        tracks.append(3_000 + place)
        make.track(3_000 + place, f"track {place}", parent=choose.choice([0, 1_000 + place, uuid]), sequence=900)
        make.counter_track(
            4_000 + place,
            f"counter {place}",
            parent=choose.choice([0, 1_000 + place]),
            sequence=900,
            unit=choose.randrange(4),
            unit_multiplier=choose.choice([0, 1, 8]),
        )
    parts = []
    for sequence, uuid in enumerate(tracks, start=1):
        part = Maker()
        packet = part.packet(sequence, flags=CLEARED)
        packet.trace_packet_defaults.track_event_defaults.track_uuid = uuid
        names = [f"name {number}" for number in range(5)]
        for number, name in enumerate(names, start=1):
            packet.interned_data.event_names.add(iid=number, name=name)
            packet.interned_data.event_categories.add(iid=number, name=f"c{number}")
        now = BOOT_NS + choose.randrange(1_000_000)
        stack = []
        for _ in range(choose.randrange(50, 400)):
            now += choose.choice([0, 1, choose.randrange(5_000), choose.randrange(1_000_000)])
            event = part.packet(sequence, now, NEEDS).track_event
            action = choose.random()
            if action < 0.45:
                event.type = BEGIN
                event.name_iid = choose.randrange(1, 6)
                event.category_iids.append(choose.randrange(1, 3))
                stack.append((event.name_iid, event.category_iids[0]))
                if choose.random() < 0.3:
                    note = event.debug_annotations.add()
                    note.name = choose.choice("abc")
                    note.int_value = choose.randrange(-1_000, 1_000)
            elif action < 0.85:
                event.type = END
                if stack and choose.random() < 0.2:
                    event.name_iid, category = choose.choice(stack) if choose.random() < 0.3 else stack[-1]
                    event.category_iids.append(category)
                if stack:
                    stack.pop()
            elif action < 0.93:
                event.type = INSTANT
                event.name_iid = choose.randrange(1, 6)
            else:
                event.type = COUNTER
                event.track_uuid = 4_000 + choose.randrange(3)
                event.counter_value = choose.randrange(-(10**6), 10**6)
        parts.append(list(part.trace.packet))
    # Sequences are mixed in pieces, as rings of buffers are read.
    while any(parts):
        part = choose.choice([part for part in parts if part])
        piece, part[:] = part[:50], part[50:]
        if choose.random() < 0.3:
            inner = pb.Trace(packet=piece)
            make.packet(0).compressed_packets = zlib.compress(inner.SerializeToString())
        else:
            make.trace.packet.extend(piece)
    return make


def perfetto_sees(path):
    with Engine() as engine:
        engine.load(path)
        slices = engine.rows(SLICES)
        args = engine.rows(ARGS)
        return slices, args, engine.rows(COUNTERS), engine.rows(LOST)


def imported(program, path, directory):
    """Spans, instants and counters of a run, and what was skipped."""
    run = Path(directory) / (path.name + ".run")
    done = subprocess.run([program, "import", "--json", "--host", "localhost", path, "-o", run], capture_output=True, text=True)
    if done.returncode != 0:
        raise TraceError(f"import failed: {done.stderr.strip()}")
    record = json.loads(done.stdout)
    spans, counters, open_async = [], [], {}
    for source in record["sources"]:
        for name in source["files"]:
            with gzip.open(run / name, "rt", encoding="utf-8") as lines:
                for line in lines:
                    if line.startswith("{"):
                        take(json.loads(line), spans, counters, open_async)
    return spans, counters, record


def take(event, spans, counters, open_async):
    phase, ns = event["ph"], event.get("ns", 0)
    if phase == "M":
        return
    start = event["ts"] * 1_000 + ns // 1_000
    args = event.get("args", {})
    if phase == "C":
        for value in args.values():
            counters.append((start, value, event["name"]))
        return
    if phase == "e":
        span = open_async.pop(event["id"])
        span["dur"] = start - span["ts"]
        return
    span = {"ts": start, "dur": 0, "name": event["name"], "cat": event["cat"], "args": args}
    span["thread"] = (event["pid"], event["tid"]) if phase == "X" else None
    span["instant"] = phase == "i"
    if phase == "X":
        span["dur"] = (event["ts"] + event["dur"]) * 1_000 + ns % 1_000 - start
    elif phase == "b":
        open_async[event["id"]] = span
    if "flow_phase" not in args:
        spans.append(span)


def flat(value, key, out):
    """Arguments as Perfetto keeps them: one row per leaf."""
    if isinstance(value, dict):
        for name, inner in value.items():
            flat(inner, f"{key}.{name}" if key else name, out)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            flat(inner, f"{key}[{place}]", out)
    else:
        out[key] = value


def same(ours, theirs):
    if isinstance(ours, bool):
        return theirs == str(ours).lower()
    if isinstance(ours, (int, float)):
        return abs(float(theirs) - ours) <= abs(ours) * 1e-9
    return str(ours) == theirs


def compare(program, path, directory):
    """Differences, in words, and a line with numbers."""
    slices, args, counters, lost = perfetto_sees(path)
    spans, counts, record = imported(program, path, directory)
    wrong = []
    skipped = {}
    for source in record["sources"]:
        for reason, what in source["skipped"].items():
            skipped[reason] = skipped.get(reason, 0) + what["count"]
    # Both count from their first event.
    first = min((row["ts"] for row in slices + counters), default=0)
    first_ours = min([span["ts"] for span in spans] + [at for at, _, _ in counts], default=0)
    # Numbers of threads have 32 bits and no sign here.
    for row in slices:
        row["tid"] = row["tid"] if row["tid"] is None else row["tid"] & 0xFFFFFFFF
    unended = [row for row in slices if row["dur"] < 0]
    if len(unended) != skipped.get("span without end", 0):
        wrong.append(f"{len(unended)} slices without end, ours {skipped.get('span without end', 0)}")
    key = lambda row: (row["ts"] - first, row["name"], row["cat"])
    theirs = Counter(key(row) for row in slices)
    ours = Counter((span["ts"] - first_ours, span["name"], span["cat"]) for span in spans)
    differ(wrong, "slices", theirs, ours)
    left = Counter(key(row) for row in unended)
    theirs = Counter(key(row) + (row["dur"],) for row in slices if row["dur"] >= 0)
    ours = Counter((span["ts"] - first_ours, span["name"], span["cat"], span["dur"]) for span in spans)
    for extra in list((ours - theirs).elements()):
        if left[extra[:3]] > 0:
            left[extra[:3]] -= 1
            ours[extra] -= 1
    differ(wrong, "durations", theirs, +ours)
    # Threads, of what is on a thread's own track.
    theirs = Counter(key(row) + (row["pid"] or 0, row["tid"]) for row in slices if row["tid"] is not None and row["dur"] != 0)
    ours = Counter(
        (span["ts"] - first_ours, span["name"], span["cat"], *span["thread"])
        for span in spans
        if span["thread"] and span["dur"] != 0
    )
    # Those that never end have no duration there, and one of zero here where nothing follows.
    gone = Counter(key(row) + (row["pid"] or 0, row["tid"]) for row in unended if row["tid"] is not None)
    differ(wrong, "threads", theirs - gone, ours - gone)
    # The engine makes counters of the thread times that old events have; here they are arguments.
    names = {name for _, _, name in counts}
    counters = [row for row in counters if row["name"] in names or not row["name"].startswith("thread_")]
    differ(
        wrong,
        "counters",
        Counter((row["ts"] - first, row["name"], round(float(row["value"]), 6)) for row in counters),
        Counter((at - first_ours, name, round(float(value), 6)) for at, value, name in counts),
    )
    compared = compare_args(wrong, slices, args, spans, first, first_ours)
    total = sum(row["dur"] for row in slices if row["dur"] >= 0)
    numbers = (
        f"{len(slices)} slices ({len(unended)} open), {total} ns, {len(counters)} counter values "
        f"of {sum(float(row['value']) for row in counters):g}, {compared} arguments"
    )
    if lost:
        numbers += "; engine: " + ", ".join(f"{row['name']}={row['value']}" for row in lost)
    if skipped:
        numbers += "; skipped: " + ", ".join(f"{reason}={count}" for reason, count in skipped.items())
    return wrong, numbers


def compare_args(wrong, slices, args, spans, first, first_ours):
    """Each debug annotation that the engine keeps is an argument of a span at the same time with the same name."""
    where = {row["id"]: (row["ts"] - first, row["name"]) for row in slices}
    ours = {}
    for span in spans:
        leaves = {}
        flat(span["args"], "", leaves)
        ours.setdefault((span["ts"] - first_ours, span["name"]), []).append(leaves)
    for row in args:
        name = row["key"].removeprefix("debug.")
        candidates = ours.get(where[row["id"]], [])
        if not any(name in leaves and same(leaves[name], row["value"]) for leaves in candidates):
            wrong.append(f"argument {name}={row['value']} of {where[row['id']]}: {candidates[:1]}")
    return len(args)


def differ(wrong, what, theirs, ours):
    for title, extra in (("only there", theirs - ours), ("only here", ours - theirs)):
        if extra:
            few = ", ".join(map(str, sorted(extra, key=str)[:3]))
            wrong.append(f"{what}: {sum(extra.values())} {title}: {few}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", metavar="WEFT", type=Path)
    parser.add_argument("trace", type=Path, nargs="*")
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="random traces (20)")
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="the first of their seeds (1)")
    parser.add_argument("--write", type=Path, metavar="DIR", help="keep the traces that are made")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        traces = list(options.trace)
        if not traces:
            place = options.write or Path(directory)
            place.mkdir(parents=True, exist_ok=True)
            made = [(variant.__name__, variant) for variant in VARIANTS]
            seeds = range(options.first, options.first + options.seeds)
            made += [(f"random-{seed}", seed) for seed in seeds]
            for name, how in made:
                make = Maker() if callable(how) else random_trace(how)
                if callable(how):
                    how(make)
                traces.append(place / f"{name}.pftrace")
                traces[-1].write_bytes(make.trace.SerializeToString())
        for trace in traces:
            try:
                wrong, numbers = compare(options.program, trace, directory)
            except TraceError as error:
                wrong, numbers = [str(error)], ""
            print(f"{'DIFFERENT' if wrong else 'equal'} {trace.name}: {numbers}")
            for words in wrong:
                print(f"    {words}")
            failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
