//! Prints the verdict on runs.
#![allow(clippy::print_stdout, reason = "an example")]
use weftline_analysis::findings::{Config, findings};
use weftline_index::{OpenOptions, Run};
fn main() {
    for path in std::env::args().skip(1) {
        let run = Run::open(&[path.clone().into()], &OpenOptions { no_index: true, ..OpenOptions::default() })
            .expect("opened");
        let verdict = findings(&run, &Config::default()).expect("judged");
        println!("== {path}");
        for f in &verdict.findings {
            println!(
                "{:8} {:.2} {} | {} | stake {:.3} s {:.2} | {:?}",
                f.severity,
                f.score,
                f.rule,
                f.what,
                f.at_stake.seconds(),
                f.at_stake.share,
                f.place.files.first()
            );
        }
        for s in &verdict.skipped {
            println!("skipped {s:?}");
        }
    }
}
