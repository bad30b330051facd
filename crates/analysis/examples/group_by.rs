//! `group_by RUN... --by cat,name,pid,file,bucket,host [--time 1s] [--no-index] [--where-name X] [--limit N]`
//!
//! Prints the groups in order (at most N), how many there are, the events in them, and a checksum over the texts of all keys and all
//! values, which does not depend on the order of files or threads. `make bench-analysis` measures it.
#![allow(clippy::print_stdout, reason = "a program")]

use std::hash::Hasher as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use weftline_analysis::group::{GroupBy, Grouped, Key, KeyValue, Sums};
use weftline_index::{OpenOptions, Run};

struct Asked {
    runs: Vec<PathBuf>,
    question: GroupBy,
    options: OpenOptions,
    limit: usize,
}

fn width(text: &str) -> Option<i64> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[digits..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        _ => return None,
    };
    text[..digits].parse::<i64>().ok()?.checked_mul(unit).filter(|width| *width > 0)
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked {
        runs: Vec::new(),
        question: GroupBy::new([Key::Cat, Key::Name]),
        options: OpenOptions::default(),
        limit: 30,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--by" => {
                let keys: Result<Vec<Key>, _> = value()?.split(',').map(Key::parse).collect();
                asked.question.keys = keys.map_err(|error| error.to_string())?;
            }
            "--time" => {
                let text = value()?;
                asked.question.width_ns =
                    width(&text).ok_or_else(|| format!("`{text}` is no time such as 1s or 500ms"))?;
            }
            "--no-index" => asked.options.no_index = true,
            "--rest" => asked.question.rest = true,
            "--threads" => asked.options.threads = value()?.parse().ok(),
            "--where-name" => {
                let name = value()?;
                asked.question.filter.names = Some(Arc::new(move |found: &str| found == name));
            }
            "--limit" => asked.limit = value()?.parse().map_err(|error| format!("--limit: {error}"))?,
            other if other.starts_with("--") => return Err(format!("unknown option {other}")),
            run => asked.runs.push(run.into()),
        }
    }
    if asked.runs.is_empty() { Err("no run was named".to_owned()) } else { Ok(asked) }
}

/// A sum over all groups, so that their order does not matter.
fn checksum(found: &Grouped<Sums>) -> u64 {
    let mut sum = 0u64;
    let of = |text: &str| {
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write(text.as_bytes());
        hasher.finish()
    };
    // A text is hashed once, not once per group.
    let texts: Vec<Vec<u64>> = (0..found.keys.len())
        .map(|place| {
            found.labels(place).map_or_else(Vec::new, |labels| labels.texts.iter().map(|text| of(text)).collect())
        })
        .collect();
    for (words, cell) in found.groups.iter() {
        let mut hasher = rustc_hash::FxHasher::default();
        let mut words = words.iter();
        for (place, key) in found.keys.iter().enumerate() {
            for word in words.by_ref().take(key.words()) {
                hasher.write_u64(texts[place].get(*word as usize).copied().unwrap_or(u64::from(*word)));
            }
        }
        hasher.write_u64(cell.count);
        hasher.write_u64(cell.dur as u64);
        hasher.write_u64(cell.dur_min as u64);
        hasher.write_u64(cell.dur_max as u64);
        hasher.write_u64(cell.size as u64);
        sum = sum.wrapping_add(hasher.finish());
    }
    sum
}

fn print(found: &Grouped<Sums>, limit: usize) {
    let mut words: Vec<(&[u32], &Sums)> = found.groups.iter().collect();
    let shown = limit.min(words.len());
    if shown > 0 && shown < words.len() {
        words.select_nth_unstable_by(shown - 1, |left, right| left.0.cmp(right.0));
        words.truncate(shown);
    }
    let mut rows: Vec<_> = words[..shown].iter().map(|(words, cell)| (found.values(words), *cell)).collect();
    rows.sort_by(|left, right| left.0.cmp(&right.0));
    for (values, cell) in rows {
        for value in values {
            match value {
                KeyValue::Null => print!("-\t"),
                KeyValue::Int(number) => print!("{number}\t"),
                KeyValue::Text(text) => print!("{text}\t"),
            }
        }
        println!("{}\t{}\t{}\t{}\t{}", cell.count, cell.dur, cell.dur_min, cell.dur_max, cell.size);
    }
}

fn answer() -> Result<(), String> {
    let asked = asked()?;
    let began = Instant::now();
    let run = Run::open(&asked.runs, &asked.options).map_err(|error| error.to_string())?;
    let opened = began.elapsed();
    let found: Grouped<Sums> = asked.question.run(&run).map_err(|error| error.to_string())?;
    let grouped = began.elapsed();
    print(&found, asked.limit);
    let checksum = checksum(&found);
    println!("groups {}", found.groups.len());
    println!("events {}", found.events());
    println!("checksum {checksum:016x}");
    println!(
        "seconds open {:.3} group {:.3} print {:.3}",
        opened.as_secs_f64(),
        (grouped - opened).as_secs_f64(),
        (began.elapsed() - grouped).as_secs_f64()
    );
    Ok(())
}

fn main() -> ExitCode {
    match answer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("group_by: {why}");
            ExitCode::from(2)
        }
    }
}
