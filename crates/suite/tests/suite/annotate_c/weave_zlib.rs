//! Code that nobody here wrote: Debian's source package of zlib, woven as a whole, passes its own tests and tells what it did.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use weftline_format::Phase;
use weftline_format::reader;
use weftline_testkit::product::workspace;
use weftline_testkit::run::Job;
use weftline_testkit::{Scratch, scratch};

use super::installed::{prefix, run};
use super::is_annotation;
use super::weave::assert_nested;

/// Runs a line of a shell that must succeed, with `weft` of the installation on PATH.
fn works(line: &str, directory: &Path) {
    let path = format!("{}:{}", prefix().join("bin").display(), std::env::var("PATH").expect("PATH"));
    let mut job = Job::new(["bash", "-c", line], directory);
    job.environment.push(("PATH".into(), Some(path.into())));
    job.limit = Duration::from_secs(150);
    let outcome = job.run();
    let said = |stream: &[u8]| String::from_utf8_lossy(stream).into_owned();
    assert_eq!(outcome.status, 0, "{line}:\n{}{}", said(&outcome.stdout), said(&outcome.stderr));
}

#[test]
fn zlib() {
    let sources = scratch::base().join("sources");
    run(Command::new(workspace().join("tools/debian-source.sh")).arg("zlib").arg(&sources));
    let scratch = Scratch::new("weave-zlib");
    let work = scratch.join("zlib");
    run(Command::new("cp").arg("-r").arg(sources.join("zlib")).arg(&work));

    // Its configure asks the compiler many things; its tests compress, inflate and compare.
    works("CC='weft weave --all=5 -- clang' ./configure > configured && make -s test > tested", &work);
    let tested = fs::read_to_string(work.join("tested")).expect("what the tests said");
    for line in ["zlib test OK", "zlib shared test OK", "zlib 64-bit test OK"] {
        assert!(tested.contains(line), "{tested}");
    }

    // Small input: with nearly every function woven a megabyte makes a million spans.
    works("head -c 60000 deflate.c > input && weft run -q -o run -- ./minigzip input", &work);
    works("gzip -dc input.gz | cmp - <(head -c 60000 deflate.c)", &work);
    let trace = reader::read_run(&work.join("run")).expect("a run");
    assert_nested(&trace);
    let count = |name: &str| {
        let is_it = |event: &&weftline_format::Event| {
            event.phase == Phase::Complete && event.name == name && is_annotation(event)
        };
        trace.events.iter().filter(is_it).count()
    };
    assert_eq!((count("main"), count("deflateInit2_"), count("deflateEnd")), (1, 1, 1));
    assert!(count("deflate") >= 1 && count("longest_match") > 100, "the compressor itself");
    works("weft check run", &work);
}
