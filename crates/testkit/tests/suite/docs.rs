//! The examples of `docs/tracing.md` are run as they stand there.

use std::fs;

use weftline_testkit::Scratch;
use weftline_testkit::product::{product, workspace};
use weftline_testkit::run::Job;

/// Commands of all `console` blocks, in order.
fn commands(page: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if inside => found.extend(line.strip_prefix("$ ").map(str::to_owned)),
            _ => {}
        }
    }
    found
}

#[test]
fn every_example_works() {
    let page = fs::read_to_string(workspace().join("docs/tracing.md")).expect("docs/tracing.md");
    let commands = commands(&page);
    assert!(commands.len() >= 12, "the page has lost its examples: {commands:?}");
    let scratch = Scratch::new("docs");
    let work = scratch.dir("work");
    fs::write(work.join("data.bin"), vec![7u8; 1 << 20]).expect("data.bin");
    let bin = product().parent().expect("a directory").to_string_lossy().into_owned();
    for command in commands {
        let script = format!("PATH={bin}:$PATH; set -o pipefail; {command}");
        let outcome = Job::new(["bash", "-c", &script], &work).run();
        // `zcat | head` ends zcat by SIGPIPE, which pipefail shows as 141.
        let code = outcome.status;
        let fine = code == 0 || (code == 141 && command.contains("| head"));
        assert!(
            fine,
            "`{command}` ended with {code}:\n{}{}",
            String::from_utf8_lossy(&outcome.stdout),
            String::from_utf8_lossy(&outcome.stderr)
        );
    }
}
