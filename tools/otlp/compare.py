#!/usr/bin/env python3
"""Compares what `import` makes of OTLP files with the spans from which OpenTelemetry's Python SDK wrote them.

    compare.py WEFT [--spans N] [--write DIR]

WEFT is the command (`make build`: target/release/weft). Spans of three services, with attributes of all types,
events, links and states, are encoded by the SDK's own exporter and written in every form that is read: protobuf as one message and behind
lengths of both kinds, JSON lines with ids as OpenTelemetry has them and as protobuf has them, and JSON over many lines. Each form is compared
span by span with the SDK's objects. Exit status: 0 equal, 1 not, 2 misuse.
"""

import argparse
import base64
import gzip
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

START_NS = 1_794_990_000_000_000_000
RESOURCES = [
    {"service.name": "front", "process.pid": 4242, "host.name": "node1", "process.command_args": ["python", "front.py"]},
    {"service.name": "back", "process.pid": 4242, "host.name": "node2", "process.executable.name": "back"},
    {"service.name": "loose", "host.name": "node1", "service.instance.id": "a"},
]


def make(count, seed=7):
    """Batches of finished spans, one list per request."""
    choose = random.Random(seed)
    batches = []
    earlier = []
    for attributes in RESOURCES:
        exporter = InMemorySpanExporter()
        provider = TracerProvider(resource=Resource(attributes))
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        tracers = [provider.get_tracer("io.lib", "1.2"), provider.get_tracer("größe")]
        for number in range(count):
            begin = START_NS + choose.randrange(10**9)
            links = []
            if earlier and choose.random() < 0.2:
                links = [trace.Link(choose.choice(earlier), {"why": "follows", "n": 3})]
            parent = None
            if earlier and choose.random() < 0.5:
                parent = trace.set_span_in_context(trace.NonRecordingSpan(choose.choice(earlier)))
            span = choose.choice(tracers).start_span(
                f"op {number % 13}",
                context=parent,
                kind=choose.choice(list(trace.SpanKind)),
                links=links,
                start_time=begin,
                attributes={
                    "text": f"wert {number} \"ü\"\n",
                    "int": choose.randrange(-(2**60), 2**60),
                    "double": choose.random() * 10 ** choose.randrange(-5, 20),
                    "whole double": float(number),
                    "bool": number % 2 == 0,
                    "list": [number, 2, 3],
                    "texts": ["a", "b"],
                    "thread.id": 1 + number % 5,
                    "kind": "an attribute's own",
                },
            )
            for event in range(choose.randrange(3)):
                span.add_event(f"event {event}", {"at": event, "f": 0.5}, timestamp=begin + event)
            status = choose.choice(list(trace.StatusCode))
            if status is trace.StatusCode.ERROR:
                span.set_status(status, "it broke")
            elif status is trace.StatusCode.OK:
                span.set_status(status)
            span.end(end_time=begin + choose.randrange(10**8))
            earlier.append(span.get_span_context())
        batches.append(list(exporter.get_finished_spans()))
    return batches


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def hex_ids(value):
    """JSON as OpenTelemetry has it: ids are hexadecimal, values of enumerations are numbers."""
    if isinstance(value, dict):
        return {
            key: base64.b64decode(inner).hex() if key in ("traceId", "spanId", "parentSpanId") else hex_ids(inner)
            for key, inner in value.items()
        }
    return [hex_ids(inner) for inner in value] if isinstance(value, list) else value


def forms(requests):
    """The same requests in every form that is read: name → bytes."""
    messages = [request.SerializeToString() for request in requests]
    plain = [MessageToDict(request) for request in requests]
    numbers = [hex_ids(MessageToDict(request, use_integers_for_enums=True)) for request in requests]
    snake = [MessageToDict(request, preserving_proto_field_name=True) for request in requests]
    lines = lambda objects: "".join(json.dumps(each) + "\n" for each in objects).encode()
    metrics = metrics_pb2.MetricsData()
    scope = metrics.resource_metrics.add().scope_metrics.add()
    for number in range(3):
        scope.metrics.add(name=f"m{number}").gauge.data_points.add(as_int=number)
    logs = logs_pb2.LogsData()
    records = logs.resource_logs.add().scope_logs.add().log_records
    records.add(time_unix_nano=START_NS).body.string_value = "hello"
    records.add(observed_time_unix_nano=START_NS).body.string_value = "hello"
    other = [metrics.SerializeToString(), logs.SerializeToString()]
    return {
        "one.otlp": (b"".join(messages), 0),
        "varint.otlp": (b"".join(varint(len(each)) + each for each in messages), 0),
        "big.otlp": (b"".join(len(each).to_bytes(4, "big") + each for each in messages), 0),
        "all-signals.otlp": (b"".join(len(each).to_bytes(4, "big") + each for each in messages + other), 5),
        "lines.jsonl": (lines(numbers), 0),
        "protobuf-ids.jsonl": (lines(plain), 0),
        "snake-case.jsonl": (lines(snake), 0),
        "all-signals.jsonl": (lines([MessageToDict(metrics)] + numbers + [MessageToDict(logs)]), 5),
        "pretty.json": ("\n".join(json.dumps(each, indent=2, ensure_ascii=False) for each in numbers).encode(), 0),
    }


def expected(batches):
    """Spans and instants as they should come, by span id."""
    found = {}
    for spans, resource in zip(batches, RESOURCES):
        for span in spans:
            attributes = {key: list(value) if isinstance(value, tuple) else value for key, value in span.attributes.items()}
            attributes["attribute.kind"] = attributes.pop("kind")
            args = {
                **attributes,
                "trace_id": f"{span.context.trace_id:032x}",
                "span_id": f"{span.context.span_id:016x}",
                "kind": span.kind.name.lower(),
            }
            if span.parent:
                args["parent_span_id"] = f"{span.parent.span_id:016x}"
            if span.status.status_code is not trace.StatusCode.UNSET:
                args["status"] = span.status.status_code.name.lower()
            if span.status.description:
                args["status_message"] = span.status.description
            if span.links:
                args["links"] = [
                    {
                        "trace_id": f"{link.context.trace_id:032x}",
                        "span_id": f"{link.context.span_id:016x}",
                        **link.attributes,
                    }
                    for link in span.links
                ]
            if span.instrumentation_scope.version:
                args["scope_version"] = span.instrumentation_scope.version
            found[args["span_id"]] = {
                "name": span.name,
                "cat": span.instrumentation_scope.name,
                "start": span.start_time,
                "end": span.end_time,
                "tid": attributes["thread.id"],
                "pid": resource.get("process.pid"),
                "process": (resource["host.name"], resource["service.name"]),
                "args": args,
                "events": sorted((event.timestamp, event.name, tuple(event.attributes.items())) for event in span.events),
            }
    return found


def imported(program, path, run):
    done = subprocess.run([program, "import", "--json", "--host", "localhost", path, "-o", run], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{path.name}: import failed: {done.stderr.strip()}")
    record = json.loads(done.stdout)
    spans, open_spans, instants = {}, {}, []
    for source in record["sources"]:
        for name in source["files"]:
            processes, host = {}, ""
            with gzip.open(run / name, "rt", encoding="utf-8") as lines:
                for line in lines:
                    if line.startswith("{"):
                        event = json.loads(line)
                        if event["ph"] == "M" and event["name"] == "process_name":
                            processes[event["pid"]] = (event["args"]["host"], event["args"]["name"])
                        elif event["ph"] != "M":
                            take(event, processes, spans, open_spans, instants)
    for at, event in instants:
        args = dict(event["args"])
        args.pop("trace_id")
        spans[args.pop("span_id")]["events"].append((at, event["name"], tuple(args.items())))
    for span in spans.values():
        span["events"].sort()
    skipped = {reason: what["count"] for source in record["sources"] for reason, what in source["skipped"].items()}
    return spans, skipped


def take(event, processes, spans, open_spans, instants):
    at = event["ts"] * 1_000 + event.get("ns", 0) // 1_000
    if event["ph"] == "b":
        span = {key: event[key] for key in ("name", "cat", "pid", "tid", "args")}
        span.update(start=at, events=[], process=processes[event["pid"]])
        spans[event["args"]["span_id"]] = span
        open_spans[event["id"]] = span
    elif event["ph"] == "e":
        open_spans.pop(event["id"])["end"] = at
    elif event["ph"] == "i":
        instants.append((at, event))


def compare(truth, spans):
    wrong = []
    for number in truth.keys() ^ spans.keys():
        wrong.append(f"span {number} is {'missing' if number in truth else 'new'}")
    for number in truth.keys() & spans.keys():
        theirs, ours = dict(truth[number]), dict(spans[number])
        if theirs["pid"] is None:
            theirs.pop("pid"), ours.pop("pid")
        # What the SDK adds of itself: flags of the trace context.
        ours["args"] = {key: value for key, value in ours["args"].items() if key != "flags"}
        for link in ours["args"].get("links", []):
            link.pop("flags", None)
        for key, value in theirs.items():
            if key == "args":
                for name in value.keys() | ours[key].keys():
                    differ(wrong, f"span {number}, {name}", value.get(name), ours[key].get(name))
            else:
                differ(wrong, f"span {number}, {key}", value, ours[key])
    return wrong


def differ(wrong, what, theirs, ours):
    if theirs != ours or repr_types(theirs) != repr_types(ours):
        wrong.append(f"{what}: {theirs!r} came as {ours!r}")


def repr_types(value):
    """Types too: 1, 1.0 and true are equal in Python."""
    if isinstance(value, dict):
        return {key: repr_types(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [repr_types(inner) for inner in value]
    return type(value).__name__


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", metavar="WEFT", type=Path)
    parser.add_argument("--spans", type=int, default=300, metavar="N", help="spans per service (300)")
    parser.add_argument("--write", type=Path, metavar="DIR", help="keep the files that are made")
    options = parser.parse_args()
    batches = make(options.spans)
    truth = expected(batches)
    requests = []
    for spans in batches:
        half = len(spans) // 2
        requests += [encode_spans(part) for part in (spans[:half], spans[half:]) if part]
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        place = options.write or Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        for name, (content, others) in forms(requests).items():
            path = place / name
            path.write_bytes(content)
            spans, skipped = imported(options.program, path, Path(directory) / f"{name}.run")
            wrong = compare(truth, spans)
            if sum(skipped.values()) != others:
                wrong.append(f"{others} metrics and log records, skipped {skipped}")
            total = sum(span["end"] - span["start"] for span in spans.values())
            attributes = sum(len(span["args"]) for span in spans.values())
            events = sum(len(span["events"]) for span in spans.values())
            print(
                f"{'DIFFERENT' if wrong else 'equal'} {name}: {len(spans)} spans of {total} ns, {attributes} arguments, "
                f"{events} events; skipped {skipped}"
            )
            for words in wrong[:5]:
                print(f"    {words}")
            failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
