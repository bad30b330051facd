#!/usr/bin/env python3
"""Records real programs with strace, imports each trace, and compares it with an independent reading of the same text.

    tools/strace/compare.py WEFT [WORK]

WEFT is the command (`make build`: target/release/weft), WORK a directory for traces. Compared are, for each trace:
calls, errors and durations by thread and name, bytes by name and by file; for traces with `strace -C` also strace's own table. A trace with files
at descriptors (`-y`) is imported a second time without them: following descriptors must give the same files.
"""

import collections
import errno
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

THREADS = """
import threading, os, time
def work(i):
    name = f"t{i}.bin"
    with open(name, "wb", buffering=0) as file:
        for _ in range(20): file.write(b"x" * 1000)
    with open(name, "rb", buffering=0) as file:
        while file.read(333): pass
    fd = os.open(name, os.O_RDWR)
    os.pwrite(fd, b"y" * 77, 4096); os.pread(fd, 55, 100)
    other = os.dup(fd); os.close(fd); os.write(other, b"z"); os.close(other)
    time.sleep(0.01)
threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

PROGRAMS = {
    "cp": ["cp", "big", "big2"],
    "dd": ["dd", "if=big", "of=big3", "bs=64k", "status=none"],
    "python": [sys.executable, "-c", THREADS],
    "pipeline": ["sh", "-c", "cat big | gzip -1 | wc -c; ls /nonexist; (sleep 5 & kill -9 $!; wait); cd /tmp; cat < /etc/hostname"],
    "tar": ["sh", "-c", "tar cf - big big2 | tar tf - "],
}
OPTIONS = {
    "ttt": ["-f", "-ttt", "-T"],
    "files": ["-f", "-tt", "-T", "-y"],
    "all": ["-f", "-ttt", "-T", "-yy", "-s", "4096", "-v"],
    "ns": ["-f", "--absolute-timestamps=format:unix,precision:ns", "--syscall-times=ns", "-C"],
    "sum": ["-f", "-ttt", "-T", "-C"],
    "untimed": ["-f", "-tt"],
    "steps": ["-r", "-T"],
    "many": ["-ff", "-ttt", "-T", "-y"],
    "frames": ["-f", "-tt", "-T", "-i", "-n", "-r"],
}
READS = {"read", "pread64", "readv", "preadv", "recvfrom", "recvmsg"}
WRITES = {"write", "pwrite64", "writev", "sendto", "sendmsg", "copy_file_range", "sendfile"}

PREFIX = re.compile(
    rb"^(?:\[pid +(?P<a>\d+)\] |(?P<b>\d{1,7}) +)?(?:\d\d:\d\d:\d\d(?:\.\d+)? |\d{9,}\.\d+ | *\d+\.\d{6} )?(?:\(\+ *[\d.]+\) )?(?:\[ *[0-9a-f]+\] ){0,2}"
)
CALL = re.compile(rb"^([\w?]+)\((.*)\)\s+= (-?\d+|\?|0x[0-9a-f]+)(<.*?>)?(?: (E[A-Z0-9_]+)\b)?.*?(?: <(\d+\.\d+)>)?$", re.S)
FILE = re.compile(rb"^\d+<(/[^<>]*)(?:<[^<>]*>)?>")


def nanoseconds(text):
    whole, part = text.split(b".")
    return int(whole) * 10**9 + int(part.ljust(9, b"0"))


class Sums:
    def __init__(self):
        self.calls = collections.Counter()
        self.took = collections.Counter()
        self.errors = collections.Counter()
        self.bytes = collections.Counter()
        self.files = collections.Counter()
        self.endless = collections.Counter()
        self.restarted = collections.Counter()
        self.unfinished = 0


def expected(path, sums, tid):
    halves = {}
    for line in path.read_bytes().splitlines():
        found = PREFIX.match(line)
        who = int(found["a"] or found["b"] or tid)
        text = line[found.end() :]
        if half := re.match(rb"^<\.\.\. (\w+) resumed>", text):
            if who not in halves:
                continue
            text = halves.pop(who) + text[half.end() :]
        elif text.endswith(b"<unfinished ...>"):
            sums.unfinished += who in halves
            halves[who] = text[: -len(b"<unfinished ...>")].rstrip()
            continue
        if text.startswith(b"+++") and who in halves:
            sums.unfinished += 1
            del halves[who]
        call = CALL.match(text)
        if not call:
            continue
        name, args, value, _, error, took = call.groups()
        name = name.decode()
        sums.calls[who, name] += 1
        if value == b"?" and not error:
            sums.endless[name] += 1
        elif value == b"?":
            sums.restarted[name] += 1
        if took:
            sums.took[who, name] += nanoseconds(took)
        if error and value != b"?":
            sums.errors[name, getattr(errno, error.decode(), 0)] += 1
        if name in READS | WRITES and not error and value.isdigit():
            sums.bytes[name] += int(value)
            if name in READS and (file := FILE.match(args)):
                sums.files[file[1].decode()] += int(value)
    sums.unfinished += len(halves)


def imported(program, sources, sums):
    with tempfile.TemporaryDirectory() as scratch:
        run = pathlib.Path(scratch, "run")
        record = json.loads(subprocess.run([program, "import", "--json", "--host", "host", *sources, "-o", run], check=True, capture_output=True).stdout)
        for path in run.glob("*.pfw.gz"):
            names = {}
            for line in gzip.open(path, "rt"):
                if not line.startswith("{"):
                    continue
                event = json.loads(line)
                args = event.get("args", {})
                if event["ph"] == "M" and event["name"] == "FH":
                    names[args["value"]] = args["name"]
                if event["ph"] not in "Xi" or event["cat"] == "signal" or {"code", "signal"} & args.keys():
                    continue
                if args.get("unfinished"):
                    sums.unfinished += 1
                    continue
                name, who = event["name"], event["tid"]
                sums.calls[who, name] += 1
                if "error" in args:
                    sums.restarted[name] += 1
                elif "ret" not in args:
                    # Its end is that of the second half: `-T` does not tell it.
                    sums.endless[name] += 1
                    continue
                if event["ph"] == "X":
                    # `ns` holds what whole microseconds leave of both ends.
                    rest = event.get("ns", 0)
                    sums.took[who, name] += event["dur"] * 1000 + rest_of(rest)
                if "errno" in args:
                    sums.errors[name, args["errno"]] += 1
                if name in READS | WRITES and args.get("ret", -1) >= 0:
                    sums.bytes[name] += args["ret"]
                    if name in READS and ":[" not in names.get(args.get("fhash"), ":["):
                        sums.files[names[args["fhash"]]] += args["ret"]
        return record


def rest_of(ns):
    """Two remainders below a microsecond, of start and end, in one number."""
    start, end = ns // 1000, ns % 1000
    return end - start


def table(path):
    """Calls and errors by strace's own table (`-C`)."""
    calls = {}
    for line in path.read_text(errors="replace").splitlines():
        row = re.match(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(\d+ +)?([a-z]\w+)$", line)
        if row and row[3] != "total":
            calls[row[3]] = (int(row[1]), int(row[2] or 0))
    return calls


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    work = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)
    (work / "big").write_bytes(bytes(range(256)) * 8192)
    wrong = compared = 0

    def check(what, ours, theirs):
        nonlocal wrong, compared
        compared += len(theirs) if hasattr(theirs, "__len__") else 1
        if ours != theirs:
            wrong += 1
            print(f"{what}: differs")
            if isinstance(theirs, dict):
                for key in [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)][:5]:
                    print(f"    {key}: {ours.get(key)} instead of {theirs.get(key)}")
            else:
                print(f"    {ours} instead of {theirs}")

    for name, command in PROGRAMS.items():
        for option, flags in OPTIONS.items():
            out = work / f"{name}.{option}"
            out.mkdir(exist_ok=True)
            trace = out / "trace"
            for old in out.iterdir():
                old.unlink()
            subprocess.run(["strace", *flags, "-o", trace, *command], cwd=work, capture_output=True, stdin=subprocess.DEVNULL)
            for damaged in (work / "big2", work / "big3"):
                if damaged.exists() and name in ("cp", "dd"):
                    assert damaged.read_bytes() == (work / "big").read_bytes()
            sources = sorted(out.iterdir())
            theirs, ours = Sums(), Sums()
            for source in sources:
                tid = int(source.suffix[1:]) if option == "many" else 1
                expected(source, theirs, tid)
            record = imported(program, sources, ours)
            what = f"{name} {option}"
            check(f"{what} calls", ours.calls, theirs.calls)
            check(f"{what} errors", ours.errors, theirs.errors)
            check(f"{what} calls without a result", ours.endless, theirs.endless)
            check(f"{what} calls made again", ours.restarted, theirs.restarted)
            check(f"{what} bytes", ours.bytes, theirs.bytes)
            check(f"{what} unfinished", ours.unfinished, theirs.unfinished)
            if "-T" in flags or "-C" in flags:
                check(f"{what} durations", ours.took, theirs.took)
            if "-y" in flags or "-yy" in flags:
                check(f"{what} bytes by file", ours.files, theirs.files)
            if "-C" in flags:
                rows = table(trace)
                by_name = collections.Counter()
                for (_, call), count in ours.calls.items():
                    by_name[call] += count
                failed = collections.Counter()
                for (call, _), count in ours.errors.items():
                    failed[call] += count
                # strace counts no call that never returned, and takes one that is made again for an error.
                mine = {
                    call: (by_name[call] - ours.endless[call], failed[call] + ours.restarted[call]) for call in rows
                }
                check(f"{what} strace's table", mine, rows)
            if option == "files":
                bare = out / "bare"
                text = re.sub(rb"(?<=\d)<(?:/[^<>]*|pipe:\[\d+\]|socket:\[\d+\]|anon_inode:[^<>]*)>(?:\(deleted\))?", b"", trace.read_bytes())
                text = re.sub(rb"AT_FDCWD</[^<>]*>", b"AT_FDCWD", text)
                bare.write_bytes(text)
                followed = Sums()
                imported(program, [bare], followed)
                # Paths without `-y` are as the program gave them: links are not followed, and what was open before is unknown.
                real = lambda path: str((work / path).resolve()) if not path.startswith("/proc") else path
                mine, known = collections.Counter(), collections.Counter()
                for path, count in followed.files.items():
                    mine[real(path)] += count
                for path, count in theirs.files.items():
                    known[real(path)] += count
                check(f"{what} files as followed", {path: mine[path] for path in mine}, {path: known[path] for path in mine})
                missing = sum(known.values()) - sum(mine.values())
                print(f"{what}: {sum(mine.values())} of {sum(known.values())} bytes have a followed file, {missing} have none")
            skipped = {reason: kept["count"] for entry in record["sources"] for reason, kept in entry["skipped"].items()}
            print(f"{what}: {sum(ours.calls.values())} calls, {len(sources)} files, skipped {skipped}")
    print(f"{compared} values compared, {wrong} tables differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    if shutil.which("strace") is None:
        sys.exit("strace is missing")
    sys.exit(main())
