//! An annotated training loop, well or badly fed: `training starved`.
//!
//! | word | what it does |
//! |---|---|
//! | `fed` | loads on a thread while it computes: nothing to find |
//! | `starved` | loads every batch in the loop itself |
//! | `saving` | computes nothing while it saves |
//! | `unequal` | four ranks, one of which has far more to read |
#![forbid(unsafe_code)]

use std::error::Error;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, sleep};
use std::time::Duration;

use weftline::span;

type Outcome = Result<(), Box<dyn Error>>;

const STEPS: u32 = 20;
const COMPUTE: Duration = Duration::from_millis(60);

fn main() -> Outcome {
    match std::env::args().nth(1).as_deref() {
        Some("fed") => fed(),
        Some("starved") => starved(),
        Some("saving") => saving(),
        Some("unequal") => unequal(),
        Some("rank") => rank(),
        _ => Err("training fed|starved|saving|unequal".into()),
    }
}

fn load(time: Duration) {
    let _item = span!(cat: "data", "item");
    sleep(time);
}

fn compute() {
    let _step = span!(cat: "compute", "step");
    sleep(COMPUTE);
}

/// The loader is three times as fast as the model, and four batches ahead.
fn fed() -> Outcome {
    let (send, receive) = mpsc::sync_channel(4);
    let loader = thread::spawn(move || {
        (0..STEPS).all(|step| {
            load(COMPUTE / 3);
            send.send(step).is_ok()
        })
    });
    for _ in 0..STEPS {
        {
            let _fetch = span!(cat: "dataloader", "fetch");
            receive.recv()?;
        }
        compute();
    }
    loader.join().map_err(|_| "the loader failed")?;
    Ok(())
}

fn starved() -> Outcome {
    for _ in 0..STEPS {
        {
            let _fetch = span!(cat: "dataloader", "fetch");
            load(COMPUTE);
        }
        compute();
    }
    Ok(())
}

fn saving() -> Outcome {
    for _ in 0..STEPS {
        compute();
        let _capture = span!(cat: "checkpoint", "capture");
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Ranks as torchrun starts them.
fn unequal() -> Outcome {
    std::fs::write("part", vec![7; 1 << 20])?;
    let program = std::env::current_exe()?;
    let start = |rank: u32| {
        Command::new(&program)
            .arg("rank")
            .env("RANK", rank.to_string())
            .env("LOCAL_RANK", rank.to_string())
            .env("WORLD_SIZE", "4")
            .env("MASTER_ADDR", "localhost")
            .env("MASTER_PORT", "1")
            .spawn()
    };
    let ranks = (0..4).map(start).collect::<Result<Vec<_>, _>>()?;
    for mut child in ranks {
        if !child.wait()?.success() {
            return Err("a rank failed".into());
        }
    }
    Ok(())
}

/// Every rank lasts as long; the third one reads all the time, the others sleep.
fn rank() -> Outcome {
    let (mut buffer, file) = (vec![0; 1 << 20], std::fs::File::open("part")?);
    let start = std::time::Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        if std::env::var("RANK")? == "2" {
            file.read_exact_at(&mut buffer, 0)?;
        } else {
            sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}
