#!/usr/bin/env python3
"""Makes result folders as the DISCS tracing tools leave them, with the truth beside them.

    examples/discs/make.py OUT [NAME…]

Each folder OUT/NAME holds what a traced run leaves; OUT/NAME.truth.json says what really happened: when (UTC, ns), who was who,
the time zone, the phases, what is damaged. Everything is drawn from a generator with a fixed seed: the same folder each time.
"""

import dataclasses
import datetime
import json
import pathlib
import random
import sys

SECOND = 10**9


@dataclasses.dataclass
class Scene:
    """What a folder is of."""

    name: str
    generation: str = "head"  # seed (2022), head (2023), explore
    workload: str = "unet3d"  # unet3d, bert, dlio, unknown
    launch: str = "launch"  # launch (launch.py), spawn (mp.spawn), mpi, plain
    gpus: int = 4
    loaders: int = 0
    start: str = "2022-08-28T02:34:30"  # UTC
    seconds: int = 240
    zone: int = 0  # seconds before UTC
    list: str = "ps"  # ps (no parents), top (parents), none
    twelve_hours: bool = False
    date_form: str = "%m/%d/%Y"
    cores: int = 0
    torn: int = 0
    dropped: bool = False  # GPUs end one after the other
    aligned: bool = True
    drift: float = 0.0  # of the boot clock, parts in a million
    long_calls: int = 0  # longer than 2.1 s, printed in 32 bits
    log_zone: int = 0  # of a log that names none
    iostat: str = ""  # json, text
    seed: int = 1


SCENES = [
    Scene("seed-launch-4", generation="seed", zone=-4 * 3600, torn=3, dropped=True, twelve_hours=True),
    Scene("seed-spawn-2", generation="seed", launch="spawn", gpus=2, cores=4, seed=2),
    Scene("head-spawn-8-loaders", launch="spawn", gpus=8, loaders=11, list="top", start="2022-08-28T03:58:30", zone=-4 * 3600, torn=2, iostat="json", seed=3),
    Scene("head-launch-1-kathmandu", gpus=1, loaders=3, zone=20700, long_calls=4, date_form="%d/%m/%Y", start="2023-03-05T10:00:00", seed=4),
    Scene("head-spawn-3-orphans", launch="spawn", gpus=3, loaders=7, zone=3600, date_form="%d.%m.%Y", iostat="text", seed=5),
    Scene("head-no-list", gpus=2, loaders=5, list="none", zone=7200, seed=6),
    Scene("dlio-mpi", workload="dlio", launch="mpi", gpus=0, loaders=4, list="top", zone=2 * 3600, start="2023-07-10T21:58:00", seed=7),
    Scene("dlio-local-log", workload="dlio", launch="mpi", gpus=0, list="ps", zone=0, seed=8),
    Scene("bert-horovod-2", workload="bert", launch="mpi", gpus=2, list="top", zone=-5 * 3600, torn=1, start="2022-12-31T23:58:30", seed=9),
    Scene("unknown-explore", generation="explore", workload="unknown", launch="plain", gpus=0, torn=2, seed=10),
    Scene("head-no-align", aligned=False, gpus=2, zone=-4 * 3600, seed=11),
    Scene("head-drift", gpus=2, drift=40.0, seconds=1500, zone=9 * 3600, seed=12),
    Scene("seed-vfs-rw", generation="vfs", gpus=1, zone=-5 * 3600, start="2022-02-05T20:20:00", long_calls=3, seed=13),
]


class Folder:
    def __init__(self, scene, path):
        self.scene, self.path = scene, path
        self.random = random.Random(scene.seed)
        self.start = int(datetime.datetime.fromisoformat(scene.start).replace(tzinfo=datetime.timezone.utc).timestamp()) * SECOND
        self.end = self.start + scene.seconds * SECOND
        self.boot = 1_380_330_127_458_684 + scene.seed * 7_919_000_003
        self.calls, self.truth_calls = [], []
        self.truth = {"scene": dataclasses.asdict(scene), "roles": {}, "phases": [], "torn": {}, "repaired": 0}
        self.people()

    # Times

    def stamp(self, utc):
        """The boot clock's reading."""
        passed = utc - self.start
        return self.boot + passed + passed // 1000 * round(self.scene.drift * 1000) // 1_000_000

    def local(self, utc):
        return datetime.datetime.fromtimestamp(utc // SECOND + self.scene.zone, datetime.timezone.utc)

    def clock(self, utc):
        return self.local(utc).strftime("%I:%M:%S %p" if self.scene.twelve_hours else "%H:%M:%S")

    # Who there is

    def people(self):
        scene, pid = self.scene, 2_041_478 + self.scene.seed * 100
        self.listed, self.workers, self.loaders, self.others = [], [], [], []
        self.comm = {}

        def add(role, parent, command, comm="python"):
            nonlocal pid
            pid += self.random.choice([1, 1, 2, 3])
            self.listed.append((pid, parent, command))
            self.comm[pid] = comm
            if role:
                self.truth["roles"][pid] = role
            return pid

        python = "python3" if scene.workload == "dlio" else "python"
        main = f"/opt/conda/bin/{python} -u main.py --data_dir /data --epochs 40"
        spawned = "/opt/conda/bin/python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7) --multiprocessing-fork"
        tracker = "/opt/conda/bin/python -c from multiprocessing.resource_tracker import main;main(4)"
        count = max(scene.gpus, 1) if scene.workload != "dlio" else 4
        if scene.workload == "unknown":
            self.others.append(add(None, 1, "/usr/bin/render --frames 100", "render"))
            self.others.append(add(None, 1, "/usr/bin/python3 /usr/bin/networkd-dispatcher --run-startup-triggers", "networkd-dispat"))
            self.others.append(add(None, 1, "tmux new -s x", "tmux: server"))
            add(None, 1, "/sbin/agetty -o -p", "agetty")
            return
        if scene.launch == "launch":
            self.master = add("master", 1, f"/opt/conda/bin/python -m torch.distributed.launch --nproc_per_node={count} main.py")
        elif scene.launch == "spawn":
            self.master = add("master", 1, main)
            add("resource tracker", self.master, tracker)
        else:
            script = "src/dlio_benchmark.py" if scene.workload == "dlio" else "run_pretraining.py"
            self.master = add("master", 1, f"mpirun -np {count} {python} {script}", "mpirun")
        for rank in range(count):
            command = {"launch": f"{main} --local_rank={rank}", "spawn": spawned}.get(scene.launch)
            command = command or f"{python} {'src/dlio_benchmark.py workload=unet3d' if scene.workload == 'dlio' else 'run_pretraining.py --horovod'}"
            self.workers.append(add(f"worker {rank + 1}", self.master, command, python))
        fathers = [self.workers[self.random.randrange(count)] for _ in range(scene.loaders)]
        if scene.loaders and len(fathers) >= count:
            fathers[:count] = self.workers
        for father in fathers:
            command = spawned if scene.launch == "spawn" else next(row[2] for row in self.listed if row[0] == father)
            self.loaders.append((add(None, father, command, python), father))
        # Numbers of loaders: by worker where parents are listed, else by pid.
        known = scene.list == "top"
        order = sorted(self.loaders, key=lambda loader: (self.workers.index(loader[1]) if known else 0, loader[0]))
        for number, (loader, _) in enumerate(order):
            self.truth["roles"][loader] = f"loader {number + 1}"
        if scene.list == "none":
            # Nobody can tell a launcher that is called python from a loader.
            self.truth["roles"].pop(self.master)

    def pids(self):
        scene = self.scene
        if scene.list == "none":
            return
        rows = []
        for pid, parent, command in self.listed:
            for thread in [pid] + ([pid + 50_000] if pid in self.workers else []):
                if scene.list == "top":
                    rows.append(f"root                {pid}             {thread}             {parent}             2                   {self.local(self.start):%H:%M}               ?                   00:00:03            {command}")
                else:
                    rows.append(f"root     {pid} {thread}  0.1  0.2  31012 10632 ?        Ssl  {self.local(self.start):%H:%M}   0:00 {command}")
        header = {"top": "UID                 PID                 SPID                PPID                C                   STIME               TTY                 TIME                CMD",
                  "ps": "USER         PID    SPID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND"}[scene.list]
        self.write(f"pids_{self.local(self.start):%m%d%H%M%S}.out", [header] + rows)

    # Calls

    def make_calls(self):
        begin, end = self.start + 10 * SECOND, self.end - 12 * SECOND
        readers = self.workers + [pid for pid, _ in self.loaders] + self.others
        if self.truth["roles"].get(getattr(self, "master", None)):
            readers.append(self.master)
        longs = self.scene.long_calls
        for pid in readers:
            brief = pid == getattr(self, "master", None)
            at = begin + self.random.randrange(SECOND)
            last = at + 2 * SECOND if brief else end
            while at < last:
                kind = self.random.choices(["read", "write", "openat", "bio"], [6, 1, 2, 1])[0]
                took = int(self.random.lognormvariate(11, 1.5)) + 300
                narrow = ("read", "write") if self.scene.generation == "vfs" else ("write", "openat")
                if longs and kind in narrow and at + 4 * SECOND < last:
                    longs -= 1
                    took = self.random.randrange(2_200_000_000, 4_200_000_000)
                    self.truth["repaired"] += 1
                file = f"case_{self.random.randrange(200):05d}_x.npy"
                size = self.random.choice([832, 4096, 65536, 2**64 - 513, 2**64 - 11])
                self.calls.append((at + took, pid, kind, took, file, size, self.random.choice("RW")))
                at += took + int(self.random.expovariate(1 / 40_000_000)) + 1000
        self.calls.sort()

    def row(self, call, kind):
        end, pid, _, took, file, size, direction = call
        stamp, comm, generation = self.stamp(end), self.comm[pid], self.scene.generation
        # The boot clock measures the latency too.
        took = stamp - self.stamp(end - took)
        short = (took + 2**31) % 2**32 - 2**31
        tid = pid + 3
        plain = size if size < 2**32 else 0
        if kind == "read":
            return {"seed": f"{stamp:<17} {pid:<6} {comm} {size:<12} {took:<12} {file}",
                    "explore": f"{stamp:<17} {pid:<6} {comm} 0 {size:<12} {file}"}.get(generation, f"{stamp:<17} {pid:<8} {0:<16} {size:<16} {took:<12} {file}")
        if kind == "write":
            return {"seed": f"{stamp:<17} {pid:<6} {comm} 0x55a9b3022a20  0        {plain:<10} {plain:<10} {short:<10} {file}",
                    "explore": f"{stamp:<17} {pid:<6} {tid:<6} {comm} {short:<10} {file}"}.get(generation, f"{stamp:<17} {pid:<8} {0:<16} {plain:<10} {short:<10} {file}")
        if kind == "openat":
            return {"explore": f"{stamp:<17} {pid:<6} {tid:<6} {comm} {short:<8} /data/{file}"}.get(generation, f"{stamp:<17} {pid:<6} {comm} {short:<8} /data/{file} {file}")
        if kind == "vfs":
            return f"{stamp:<17} {pid:<8} {comm:<16} {direction} {plain:<10} {short:<10} {file}"
        return {"seed": f"{stamp:<17} {pid:<8} {comm:<14} {pid + 1:<8} {'swapper/0':<14} sda  {direction} {plain:<12} {took}",
                "explore": f"{stamp:<17} {pid:<8} {comm:<14} sda  {direction} {plain:<12} {took // 3:<12} {took}"}.get(
            generation, f"{stamp:<17} {pid:<8} {comm:<14} sda  {direction} {plain:<12} {348712782:<12} {took}")

    HEADERS = {
        "seed": {"read": "TIMESTAMP         PID    FD   RET (B)      LAT(ns)      FILENAME",
                 "write": "TIMESTAMP         PID    FD   BUFFER ADDR   OFFSET   REQ (B)    RET (B)    LAT(ns) ",
                 "openat": "TIMESTAMP         PID    FD    LAT(ns)  FULLPATH FILENAME",
                 "bio": "TIMESTAMP         PID      COMM           DONEPID  DONECOMM       DISK T BYTES        LAT(ns)"},
        "head": {"read": "TIMESTAMP         PID      OFFSET           RET (B)          LAT(ns)      FILENAME",
                 "write": "TIMESTAMP         PID      OFFSET           RET (B)    LAT(ns)    FILENAME",
                 "openat": "TIMESTAMP         PID    COMM LAT(ns)  FULLPATH FILENAME",
                 "bio": "TIMESTAMP         PID      COMM           DISK T BYTES        SECTOR       LAT(ns)"},
        "explore": {"read": "TIMESTAMP         PID    COMM OFFSET RET (B)      FILENAME",
                    "write": "TIMESTAMP         PID    TID    COMM LAT(ns) FILENAME",
                    "openat": "TIMESTAMP         PID    TID    COMM LAT(ns) FULLPATH",
                    "bio": "TIMESTAMP         PID      COMM           DISK T BYTES        QLAT(ns)     LAT(ns)"},
        "vfs": {"vfs": "TIMESTAMP         PID      COMM             T SIZE       LAT(ns)    FILENAME"},
    }

    def traces(self):
        scene = self.scene
        self.make_calls()
        headers = self.HEADERS[scene.generation]
        for kind, header in headers.items():
            rows = []
            for call in self.calls:
                end, pid, called, took, _, size, direction = call
                if kind == "vfs" and called in ("openat", "bio") or kind != "vfs" and called != kind:
                    continue
                rows.append(self.row(call, kind))
                name = {"vfs": {"R": "read", "W": "write"}[direction], "bio": {"R": "read", "W": "write"}[direction]}.get(kind, kind)
                unknown = scene.generation == "explore" and kind == "read"
                self.truth_calls.append([pid, "block" if kind == "bio" else "POSIX", name, end if unknown else end - took, end])
            for _ in range(scene.torn if kind in ("bio", "read") else 0):
                place = self.random.randrange(len(rows) + 1)
                rows.insert(place, f"{self.stamp(self.end)}  {self.listed[0][0]}  649071482431512 sda")
                self.truth["torn"][kind] = self.truth["torn"].get(kind, 0) + 1
            name = "vfs_rw.out" if kind == "vfs" else f"trace_{kind}.out"
            self.write(name, ["Attaching 6 probes...", header] + rows)
        if scene.aligned:
            self.align()

    def align(self):
        rows, at = [], self.start - 3 * SECOND
        until = self.end if self.scene.drift else self.start + 90 * SECOND
        while at < until:
            rows.append(f"{self.stamp(at):<17} {self.local(at):%H:%M:%S}")
            step = int(self.random.expovariate(1 / 40_000_000)) + 20_000
            # Now and then something happens right around the second.
            into = at % SECOND
            if into + step > SECOND and self.random.random() < 0.2:
                step = SECOND - into + self.random.randrange(-60_000, 60_000)
            at += max(step, 20_000)
        self.write("trace_time_align.out", ["Attaching 334 probes...", "TIMESTAMP       TIME    "] + rows)

    # Samples

    def cpu(self):
        banner = f"Linux 5.4.0-122-generic (dgx1) \t{self.local(self.start).strftime(self.scene.date_form)} \t_x86_64_\t(80 CPU)"
        header = "  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle"
        rows, truth = [banner, "", self.clock(self.start) + header], []
        for second in range(1, self.scene.seconds):
            at = self.start + second * SECOND
            for core in ["all"] + list(range(self.scene.cores)):
                usr = round(self.random.uniform(0, 90), 2)
                values = [usr, 0, 1, 0.5, 0, 0, 0, 0, 0, round(98.5 - usr, 2)]
                text = "".join(f"{value:8.2f}" for value in values)
                rows.append(f"{self.clock(at)}  {core:>3}{text}")
                truth.append([at, "cpu" if core == "all" else f"cpu-{core}", usr])
        rows.append("Average:     all" + "    1.00" * 10)
        self.write("cpu.out", rows)
        self.truth["cpu"] = truth

    def gpu(self):
        scene = self.scene
        rows = ["#Date       Time        gpu        pid  type    sm   mem   enc   dec    fb   command",
                "#YYYYMMDD   HH:MM:SS    Idx          #   C/G     %     %     %     %    MB   name"]
        truth = []
        for second in range(scene.seconds):
            at = self.start + second * SECOND
            busy = 12 <= second < scene.seconds - 12
            # GPUs end one after the other, and their lines with them.
            shown = max(scene.gpus, 1) - (max(0, second - scene.seconds + 12) if scene.dropped else 0)
            for gpu in range(max(shown, 1)):
                local = self.local(at)
                stamp = f" {local:%Y%m%d}   {local:%H:%M:%S}      {gpu}"
                if busy and gpu < scene.gpus:
                    sm, fb = self.random.randrange(100), 12 + self.random.randrange(15000)
                    idle = self.random.random() < 0.1
                    shares = "    -     -     -     -" if idle else f"{sm:5d}     7     -     -"
                    rows.append(f"{stamp}    {self.workers[gpu]}     C {shares} {fb:5d}   python         ")
                    truth.append([at, f"gpu{gpu}", 0 if idle else sm, fb])
                else:
                    rows.append(f"{stamp}          -     -     -     -     -     -     -   -              ")
                    truth.append([at, f"gpu{gpu}", 0, 0])
        self.write("gpu.out", rows)
        self.truth["gpu"] = truth

    def iostat(self):
        form = self.scene.iostat
        if not form:
            return
        truth, reports, rows = [], [], [f"Linux 5.4.0 (dgx1) \t{self.local(self.start).strftime(self.scene.date_form)} \t_x86_64_\t(80 CPU)", ""]
        for second in range(1, 30):
            at = self.start + second * SECOND
            reads, util = self.random.randrange(500), round(self.random.uniform(0, 100), 2)
            truth.append([at, "sda", reads, util])
            reports.append({"timestamp": self.local(at).strftime("%Y-%m-%d %I:%M:%S %p"),
                            "disk": [{"disk_device": "sda", "r/s": float(reads), "rMB/s": 1.5, "wMB/s": 0.25, "util": util}]})
            rows += [self.local(at).strftime(f"{self.scene.date_form} %H:%M:%S"), "Device            r/s     rMB/s     wMB/s  %util",
                     f"sda            {reads:.2f}    1.50    0.25   {util:.2f}".replace(".", ","), ""]
        self.truth["iostat"] = truth
        if form == "json":
            text = json.dumps({"sysstat": {"hosts": [{"nodename": "dgx1", "date": "2022-08-27", "statistics": reports}]}}, indent="\t")
            # Killed before the brackets were closed.
            self.write("iostat.json", text.splitlines()[:-3])
        else:
            self.write("iostat.out", rows)

    # Logs

    def log(self):
        scene = self.scene
        if scene.workload == "unknown":
            return
        begin, end = self.start + 11 * SECOND + 846_000_000, self.end - 13 * SECOND
        millisecond = 10**6
        edges, at, phases = [], begin, []

        def phase(key, seconds, **more):
            nonlocal at
            till = at + int(seconds * 1000) * millisecond
            edges.append((at, True, key, more))
            edges.append((till, False, key, more))
            phases.append([key, at, till])
            at = till + 2 * millisecond

        if scene.workload != "dlio":
            phase("init", 5.3)
        key = {"unet3d": "epoch", "bert": "block", "dlio": "block"}[scene.workload]
        number = 1
        while at + 40 * SECOND < end:
            phase(key, self.random.uniform(10, 20), epoch_num=number)
            if number % 3 == 0:
                phase("eval", self.random.uniform(3, 9), epoch_num=number)
                phase("checkpoint", self.random.uniform(0.3, 2), epoch_num=number)
            number += 1
        edges.sort(key=lambda edge: (edge[0], not edge[1]))
        if scene.workload == "dlio":
            text = lambda utc: datetime.datetime.fromtimestamp(utc // SECOND + scene.log_zone, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{utc % SECOND // 1000:06d}"
            lines = [f"[OUTPUT] {text(begin - 3 * SECOND)} Running DLIO with 4 process(es)"]
            phases.insert(0, ["init", begin - 3 * SECOND, begin])
            for utc, starts, key, more in edges:
                what = "Starting" if starts else "Ending"
                lines.append(f"[OUTPUT] {text(utc)} {what} {key} {more['epoch_num']}")
                if starts and key == "block":
                    lines.append(f"[INFO] load_batch_mem {self.random.randrange(10**8)}")
            lines.append(f"[OUTPUT] {text(end)} Saved outputs in /results")
            self.write("dlio.log", lines)
        else:
            lines = ["starting"]
            for utc, starts, key, more in edges:
                entry = {"namespace": "", "time_ms": utc // millisecond, "event_type": "INTERVAL_START" if starts else "INTERVAL_END",
                         "key": key + ("_start" if starts else "_stop"), "value": None, "metadata": {"file": "/workspace/main.py", "lineno": 28, **more}}
                prefix = "[0] " if scene.workload == "bert" else ""
                lines.append(f"{prefix}:::MLLOG {json.dumps(entry)}")
            last = {"namespace": "", "time_ms": end // millisecond, "event_type": "POINT_IN_TIME", "key": "status", "value": "aborted", "metadata": {}}
            lines.append(f":::MLLOG {json.dumps(last)}")
            self.write({"unet3d": "unet3d.log", "bert": "app.log"}[scene.workload], lines)
        self.truth["phases"] = phases

    def write(self, name, lines):
        (self.path / name).write_text("\n".join(lines) + "\n")

    def make(self):
        self.path.mkdir(parents=True)
        self.pids()
        self.traces()
        self.cpu()
        self.gpu()
        self.iostat()
        self.log()
        self.truth["calls"] = self.truth_calls
        self.truth["start"] = self.start
        self.truth["workload"] = {"unknown": ""}.get(self.scene.workload, self.scene.workload)
        (self.path.parent / f"{self.scene.name}.truth.json").write_text(json.dumps(self.truth))


def main(words):
    if not words:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    out, names = pathlib.Path(words[0]), words[1:]
    for scene in SCENES:
        if not names or scene.name in names:
            Folder(scene, out / scene.name).make()
            print(out / scene.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
