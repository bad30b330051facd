//! A program that spends its time in one way, and says how much: `patterns sync 8 1`.
//!
//! The arguments are the pattern, the number of idle threads beside it, the number of ranks, and `annotated` for annotations. It prints the cost of the
//! pattern in seconds, as it measured it itself; of several ranks, the largest.
//!
//! | pattern | what it does |
//! |---|---|
//! | `sync` | writes a page and waits for the disk, again and again |
//! | `small` | writes a few bytes at a time |
//! | `reads` | reads a few bytes at a time |
//! | `random` | reads pages here and there |
//! | `opens` | opens and closes the same file |
//! | `names` | makes small files and changes their attributes again and again |
//! | `checkpoint` | stands still while it saves |
//! | `starved` | waits for every batch; a process beside it makes them |
//! | `fed` | batches come faster than it needs them |
//! | `uneven` | one rank computes three times as long as the others |
//! | `compute` | computes |
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "what it measured is its output")]

use std::error::Error;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weftline::span;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How long the pattern goes on, and how long the program computes beside it.
const PATTERN: Duration = Duration::from_millis(1100);
const COMPUTE: Duration = Duration::from_millis(400);
const BATCHES: u32 = 12;

struct Wanted {
    pattern: String,
    helpers: usize,
    ranks: usize,
    annotated: bool,
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "loader") {
        return loader(Duration::from_millis(words.get(1).ok_or("loader MILLISECONDS")?.parse()?));
    }
    let [pattern, helpers, ranks, rest @ ..] = words.as_slice() else {
        return Err("patterns PATTERN HELPERS RANKS [annotated]".into());
    };
    let wanted = Wanted {
        pattern: pattern.clone(),
        helpers: helpers.parse()?,
        ranks: ranks.parse()?,
        annotated: rest.iter().any(|word| word == "annotated"),
    };
    let cost = if wanted.ranks > 1 { launch(&wanted)? } else { play(&wanted)? };
    println!("{:.6}", cost.as_secs_f64());
    Ok(())
}

/// Ranks as torchrun starts them; the most that one of them has measured.
fn launch(wanted: &Wanted) -> Outcome<Duration> {
    let mut ranks = Vec::new();
    for rank in 0..wanted.ranks {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([&wanted.pattern, &wanted.helpers.to_string(), "1"]);
        command.args(wanted.annotated.then_some("annotated"));
        command.env("RANK", rank.to_string()).env("LOCAL_RANK", rank.to_string());
        command.env("WORLD_SIZE", wanted.ranks.to_string()).env("MASTER_ADDR", "localhost").env("MASTER_PORT", "1");
        ranks.push(command.stdout(Stdio::piped()).spawn()?);
    }
    let mut most = 0.0f64;
    for rank in ranks {
        let output = rank.wait_with_output()?;
        most = most.max(std::str::from_utf8(&output.stdout)?.trim().parse()?);
    }
    Ok(Duration::from_secs_f64(most))
}

fn play(wanted: &Wanted) -> Outcome<Duration> {
    // Threads that have nothing to do, as pools of libraries have.
    for _ in 0..wanted.helpers {
        thread::spawn(|| {
            // A call, so that they are known.
            let _ = fs::metadata("/");
            loop {
                thread::park();
            }
        });
    }
    let rank: u32 = std::env::var("RANK").ok().and_then(|rank| rank.parse().ok()).unwrap_or(0);
    match wanted.pattern.as_str() {
        "sync" => sync(rank),
        "small" => small(rank),
        "reads" => reads(rank),
        "random" => random(rank),
        "opens" => opens(rank),
        "names" => names(rank),
        "checkpoint" => checkpoint(rank, wanted.annotated),
        "starved" => batches(40, 10, wanted.annotated),
        "fed" => batches(10, 60, wanted.annotated),
        "uneven" => {
            let own = if rank == 1 { 3 } else { 1 };
            compute(COMPUTE * own * 2);
            Ok(COMPUTE * 4)
        }
        "compute" => {
            compute(PATTERN);
            Ok(Duration::ZERO)
        }
        other => Err(format!("no pattern {other}").into()),
    }
}

/// Uses the processor for as long as this takes without anybody else: so much CPU time, not wall time.
fn compute(time: Duration) {
    let mut value = 1u64;
    let start = Instant::now();
    while start.elapsed() < time {
        for _ in 0..10_000 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
    }
    std::hint::black_box(value);
}

/// Repeats something until it took as long as the pattern; how long it took alone.
fn repeat(mut what: impl FnMut(u64) -> Outcome<Duration>) -> Outcome<Duration> {
    let mut cost = Duration::ZERO;
    for round in 0.. {
        if cost >= PATTERN {
            break;
        }
        cost += what(round)?;
    }
    compute(COMPUTE);
    Ok(cost)
}

fn timed(what: impl FnOnce() -> std::io::Result<()>) -> Outcome<Duration> {
    let start = Instant::now();
    what()?;
    Ok(start.elapsed())
}

fn sync(rank: u32) -> Outcome<Duration> {
    let file = File::create(format!("log-{rank}"))?;
    let page = [7u8; 4096];
    repeat(|round| {
        file.write_all_at(&page, round % 256 * 4096)?;
        timed(|| file.sync_data())
    })
}

fn small(rank: u32) -> Outcome<Duration> {
    let file = File::create(format!("records-{rank}"))?;
    let record = [7u8; 4000];
    // Many at a time: what a look at the clock takes would be a part of the cost.
    repeat(|round| {
        timed(|| (0..64).try_for_each(|piece| file.write_all_at(&record, (round * 64 + piece) % 256 * 4000)))
    })
}

/// A file of so many MiB of nothing; no bytes of it are written, so that none are read back.
fn empty(name: &str, rank: u32, mebibytes: u64) -> Outcome<File> {
    let path = format!("{name}-{rank}");
    File::create(&path)?.set_len(mebibytes << 20)?;
    Ok(File::open(path)?)
}

fn reads(rank: u32) -> Outcome<Duration> {
    let file = empty("records", rank, 64)?;
    let mut record = [0u8; 4000];
    repeat(|round| {
        timed(|| (0..64).try_for_each(|piece| file.read_exact_at(&mut record, (round * 64 + piece) % 16_000 * 4000)))
    })
}

fn random(rank: u32) -> Outcome<Duration> {
    let file = empty("pages", rank, 256)?;
    let mut page = [0u8; 4096];
    let mut state = 1u64;
    repeat(|_| {
        timed(|| {
            (0..64).try_for_each(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                file.read_exact_at(&mut page, (state >> 48) * 4096)
            })
        })
    })
}

fn opens(rank: u32) -> Outcome<Duration> {
    // Far down, so that an open takes much longer than what notes it.
    let place = format!("settings-{rank}/{}", "d/".repeat(100));
    fs::create_dir_all(&place)?;
    let path = format!("{place}x");
    File::create(&path)?;
    repeat(|_| timed(|| (0..64).try_for_each(|_| File::open(&path).map(drop))))
}

fn names(rank: u32) -> Outcome<Duration> {
    repeat(|round| {
        let path = format!("item-{rank}-{round}");
        let mut file = None;
        let made = timed(|| File::create(&path).map(|made| file = Some(made)))?;
        let mut file = file.ok_or("no file")?;
        file.write_all(&[7; 100])?;
        let changed = timed(|| {
            drop(file);
            for mode in 0..24 {
                fs::set_permissions(&path, Permissions::from_mode(0o600 | (mode % 8)))?;
            }
            fs::remove_file(&path)
        })?;
        Ok(made + changed)
    })
}

fn checkpoint(rank: u32, annotated: bool) -> Outcome<Duration> {
    let block = vec![7u8; 1 << 20];
    let mut cost = Duration::ZERO;
    for number in 0..3 {
        {
            let _step = annotated.then(|| span!(cat: "compute", "step"));
            compute(COMPUTE / 3);
        }
        let _save = annotated.then(|| span!(cat: "checkpoint", "save"));
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .open(format!("checkpoint-{rank}-{number}.pt"))?;
        let mut saved = Duration::ZERO;
        let mut place = 0;
        while saved < PATTERN / 3 {
            saved += timed(|| file.write_all_at(&block, (place % 16) << 20))?;
            place += 1;
        }
        cost += saved;
    }
    Ok(cost)
}

/// A loop over batches that a process beside it makes; how long it waited for them.
fn batches(every: u64, step: u64, annotated: bool) -> Outcome<Duration> {
    let mut loader = Command::new(std::env::current_exe()?)
        .args(["loader", &every.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut pipe = loader.stdout.take().ok_or("no pipe")?;
    let mut cost = Duration::ZERO;
    let mut batch = [0u8; 512];
    for _ in 0..BATCHES * 2 {
        {
            let _fetch = annotated.then(|| span!(cat: "dataloader", "fetch"));
            cost += timed(|| pipe.read_exact(&mut batch))?;
        }
        let _step = annotated.then(|| span!(cat: "compute", "step"));
        compute(Duration::from_millis(step));
    }
    drop(pipe);
    loader.wait()?;
    Ok(cost)
}

/// Writes a batch every so often, until nobody reads any more.
fn loader(every: Duration) -> Outcome<()> {
    let mut out = std::io::stdout();
    for _ in 0..BATCHES * 2 {
        compute(every);
        if out.write_all(&[7; 512]).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(())
}
