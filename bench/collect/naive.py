"""A minimal sampler in Python: reads the files of the kernel that weft reads, one line of JSON per thing and tick. Started by bench.py."""

import json
import os
import re
import sys
import time

HOST = ("stat", "meminfo", "loadavg", "diskstats", "net/dev", "pressure/cpu", "pressure/memory", "pressure/io", "vmstat")
PROCESS = ("stat", "schedstat", "io")


def read(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def matching(pattern: re.Pattern) -> list[int]:
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and pattern.search((read(f"/proc/{pid}/comm") or "").strip())]


def main() -> None:
    interval, seconds, how = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    host = () if how.startswith("only:") else HOST
    how = how.removeprefix("only:")
    pattern = re.compile(how[1:]) if how.startswith("/") else None
    pids = [int(pid) for pid in how.split(",") if pid] if pattern is None else []
    end = time.monotonic() + seconds
    with open(sys.argv[4], "w") as out:
        while (began := time.monotonic()) < end:
            ts = time.time_ns()
            for name in host:
                if text := read(f"/proc/{name}"):
                    fields = {line.split(None, 1)[0]: line.split()[1:] for line in text.splitlines() if line}
                    out.write(json.dumps({"ts": ts, "name": name, "args": fields}) + "\n")
            for pid in matching(pattern) if pattern else pids:
                for name in PROCESS:
                    if text := read(f"/proc/{pid}/{name}"):
                        out.write(json.dumps({"ts": ts, "pid": pid, "name": name, "args": text.split()}) + "\n")
            out.flush()
            time.sleep(max(0.0, interval - (time.monotonic() - began)))


if __name__ == "__main__":
    main()
