//! Programs that people use behave the same under `weft run`, and the trace agrees with the kernel about their bytes.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use weftline_testkit::Case;

/// 20,000 lines in an order that sorting has to work on; the same every time.
fn lines() -> String {
    let mut state = 1u32;
    let mut text = String::new();
    for _ in 0..20_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(&format!("{:08x} a line of some length to sort\n", state));
    }
    text
}

#[test]
fn dd() {
    Case::script(
        "dd",
        r#"
            dd if=input of=copy bs=4096 conv=fsync status=none
            dd if=input of=part bs=1000 count=77 skip=3 status=none
            dd if=input bs=512 status=none | dd of=piped bs=333 status=none
            cat part"#,
    )
    .file("input", lines())
    .check_bytes(&["input", "copy", "part", "piped"], &[]);
}

#[test]
fn sort() {
    Case::script(
        "sort",
        r#"
            mkdir tmp
            sort -o sorted input
            sort --parallel=2 -S 200k -T tmp -r input > reversed
            sort -u sorted sorted | uniq -c | wc -l"#,
    )
    .file("input", lines())
    .check_bytes(&["input", "sorted", "reversed", "tmp/"], &[]);
}

#[test]
fn tar_and_gzip() {
    Case::script(
        "tar",
        r#"
            tar --sort=name --mtime=@0 -cf a.tar input other
            tar -tvf a.tar
            mkdir out; tar -xf a.tar -C out; cmp input out/input
            gzip -n -k -1 a.tar; gzip -l a.tar.gz; zcat a.tar.gz | cmp - a.tar; gzip -dc a.tar.gz > again.tar
            tar -czf b.tar.gz --sort=name --mtime=@0 input; gzip -t b.tar.gz"#,
    )
    .file("input", lines())
    .file("other", "another file\n")
    .check_bytes(&["a.tar", "a.tar.gz", "again.tar", "out/input"], &[]);
}

#[test]
fn git() {
    Case::script(
        "git",
        r#"
            git init -q -b main repository; cd repository
            cp ../input file; git add file; git commit -qm first
            echo more >> file; mkdir dir; echo nested > dir/nested; git add .; git commit -qm second
            git checkout -qb side HEAD~1; echo side > side; git add side; git commit -qm third
            git merge -q -m merged main; git log --oneline --graph; git status --short; git diff HEAD~1 --stat
            git gc -q; git fsck --strict; git clone -q . ../clone; git -C ../clone log -1 --format=%H"#,
    )
    .env("HOME", "/nonexistent")
    .env("GIT_CONFIG_NOSYSTEM", "1")
    .env("GIT_CONFIG_COUNT", "1")
    .env("GIT_CONFIG_KEY_0", "pack.threads")
    .env("GIT_CONFIG_VALUE_0", "1")
    .env("GIT_AUTHOR_NAME", "A")
    .env("GIT_AUTHOR_EMAIL", "a@b")
    .env("GIT_AUTHOR_DATE", "1000000000 +0000")
    .env("GIT_COMMITTER_NAME", "A")
    .env("GIT_COMMITTER_EMAIL", "a@b")
    .env("GIT_COMMITTER_DATE", "1000000000 +0000")
    .file("input", lines())
    // The index holds inode numbers and times.
    .ignore(["repository/.git/index", "clone/.git/index"])
    .check_bytes(&["input", "repository/file", "repository/.git/objects/"], &[]);
}

#[test]
fn sqlite3() {
    Case::script(
        "sqlite3",
        r#"
            sqlite3 base.db 'create table t(a integer primary key, b text);
                with recursive n(x) as (select 1 union all select x+1 from n where x < 5000)
                insert into t select x, hex(x*7919) from n; create index i on t(b);'
            sqlite3 base.db 'select count(*), sum(a), max(b) from t; delete from t where a % 3 = 0; vacuum;'
            sqlite3 base.db '.dump' | tail -3
            sqlite3 base.db 'pragma journal_mode=wal; update t set b = b || a; pragma integrity_check;'"#,
    )
    .check_bytes(&[], &["base.db"]);
}

#[test]
fn gcc() {
    Case::script(
        "gcc",
        r#"
            gcc -O2 -Wall -c one.c -o one.o; gcc -O2 -c two.c -o two.o; gcc one.o two.o -o both; ./both
            gcc -O2 -pipe -flto one.c two.c -o lto; ./lto; rm lto
            gcc -c broken.c || echo "gcc failed with $?""#,
    )
    .file("one.c", "#include <stdio.h>\nint two(int);\nint main(void) { printf(\"%d\\n\", two(20)); return 0; }\n")
    .file("two.c", "int two(int x) { return 2 * x + 2; }\n")
    .file("broken.c", "int x = ;\n")
    .check();
}

#[test]
fn cargo() {
    let make = |work: &Path| {
        std::fs::create_dir_all(work.join("small/src")).expect("the working directory can be written");
        std::fs::write(
            work.join("small/Cargo.toml"),
            "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
        )
        .expect("own file");
        std::fs::write(
            work.join("small/src/main.rs"),
            "fn main() { println!(\"{}\", (1..=10u64).product::<u64>()); }\n",
        )
        .expect("own file");
    };
    Case::script(
        "cargo",
        "cd small; cargo build --quiet --offline; ./target/debug/small; sha256sum target/debug/small",
    )
    .env("CARGO_INCREMENTAL", "0")
    .env("CARGO_TARGET_DIR", "target")
    .prepare(make)
    .ignore(["small/target"])
    .limit(Duration::from_secs(120))
    .check();
}

#[test]
fn ffmpeg() {
    Case::script("ffmpeg", r#"
            common="-hide_banner -nostdin -loglevel error"
            ffmpeg $common -f lavfi -i testsrc=size=160x120:rate=10:duration=2 -f lavfi -i sine=frequency=440:duration=2 \
                -fflags +bitexact -flags:v +bitexact -flags:a +bitexact -c:v mpeg4 -c:a pcm_s16le -threads 2 out.avi
            ffmpeg $common -i out.avi -an -f framemd5 - | tail -3
            ffmpeg $common -i out.avi -fflags +bitexact -flags:a +bitexact -vn sound.wav"#)
        .check_bytes(&["out.avi", "sound.wav"], &[]);
}

#[test]
fn redis() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
    Case::script("redis", r#"
            redis-server --bind 127.0.0.1 --port $PORT --save '' --appendonly yes --dir . --logfile server.log &
            server=$!; trap 'kill $server 2>/dev/null || true' EXIT
            until redis-cli -p $PORT ping > /dev/null 2>&1; do sleep 0.02; done
            redis-benchmark -p $PORT -n 2000 -c 10 -q -t set,get,lpush > /dev/null
            redis-cli -p $PORT set answer 42; redis-cli -p $PORT get answer; redis-cli -p $PORT llen mylist
            redis-cli -p $PORT bgrewriteaof; redis-cli -p $PORT shutdown nosave || true; wait $server; echo "ended with $?""#)
        .env("PORT", port.to_string()).ignore(["server.log", "appendonlydir"]).check();
}

#[test]
fn bash_scripts() {
    Case::script(
        "bash",
        r#"
            set -o pipefail
            seq 1 1000 > numbers; while read -r n; do echo $((n * n)); done < numbers > squares
            cat <<<"here string" > here; cat here numbers | grep -c 7 || true
            find . -type f -print0 | sort -z | xargs -0 -n 2 wc -c
            (cd /; pwd); x=$(awk '{ s += $1 } END { print s }' squares); echo "sum $x"
            for i in 1 2 3 4; do (sleep 0.0$i; echo "job $i" > job.$i) & done; wait; cat job.*
            trap 'echo trapped' USR1; kill -USR1 $$
            exec 5> five; echo to five >&5; exec 5>&-; cat five; sed -n '1~300p' numbers | tee teed
            cp numbers copied; mv copied moved; ln moved hard; diff numbers hard && echo same
            mkfifo fifo; (echo through > fifo) & cat fifo; wait; false || exit 3"#,
    )
    .check_bytes(&["here", "five", "copied", "teed"], &[]);
}

const PYTHON_JOB: &str = r#"
import multiprocessing, os, subprocess, sys, threading

def piece(n):
    fd = os.open(f"out/{n}.bin", os.O_CREAT | os.O_WRONLY)
    for _ in range(10):
        os.write(fd, b"x" * 100)
    os.close(fd)
    return n * n

def endless(n):
    piece(n)
    ready.release()
    while True:
        threading.Event().wait(1)

if __name__ == "__main__":
    way = sys.argv[1]
    os.makedirs("out", exist_ok=True)
    if way == "subprocess":
        for n in range(10):
            subprocess.run([sys.executable, "-c", f"import job; job.piece({n})"], check=True, close_fds=bool(n % 2))
        print(subprocess.check_output("echo from the shell", shell=True))
    elif way == "daemons":
        ready = multiprocessing.Semaphore(0)
        for n in range(10):
            multiprocessing.Process(target=endless, args=(n,), daemon=True).start()
        for n in range(10):
            ready.acquire()
    else:
        multiprocessing.set_start_method(way)
        with multiprocessing.Pool(2) as pool:
            print(pool.map(piece, range(10)))
"#;

/// Ten pieces of work in worker processes which the parent ends as it likes (`Pool` sends SIGTERM).
fn python(way: &'static str) {
    let case = Case::command(["/usr/bin/python3", "job.py", way])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .file("job.py", PYTHON_JOB)
        .within("out")
        .sees("mkdir", "out", 1);
    (0..10)
        .fold(case, |case, n| {
            let name = format!("out/{n}.bin");
            case.sees("open", &name, 1).moves("write", &name, 10, 1000).sees("close", &name, 1)
        })
        .check();
}

#[test]
fn python_multiprocessing_fork() {
    python("fork");
}

#[test]
fn python_multiprocessing_spawn() {
    python("spawn");
}

#[test]
fn python_multiprocessing_forkserver() {
    python("forkserver");
}

#[test]
fn python_daemon_workers_alive_at_the_end() {
    python("daemons");
}

#[test]
fn python_subprocess() {
    python("subprocess");
}

/// A program in the current directory, started through a script, found by its relative name.
#[test]
fn script_by_relative_name() {
    let make = |work: &Path| {
        let path = work.join("script.sh");
        std::fs::write(&path, "#!/bin/sh\necho \"$0 $*\"\ncat <input >output\n").expect("own file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("own file");
    };
    Case::command(["./script.sh", "a", "b c"])
        .file("input", "text")
        .prepare(make)
        .check_bytes(&["input", "output"], &[]);
}
