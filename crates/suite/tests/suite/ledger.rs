//! The coverage ledger on real programs: bytes count for the process that moved them, and unknown coverage is not called complete.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use serde_json::Value;
use weftline_testkit::Scratch;
use weftline_testkit::case::excerpt;
use weftline_testkit::run::{Job, weft};

fn checked(run: &Path, scratch: &Scratch) -> Value {
    let outcome = weft(["check".as_ref(), run.as_os_str(), "--json".as_ref()], scratch);
    assert_eq!(outcome.status, 0, "{}{}", excerpt(&outcome.stdout), excerpt(&outcome.stderr));
    serde_json::from_slice(&outcome.stdout).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// The server of tmux outlives its client, which nobody waits for it: its bytes reach no ancestor.
#[test]
fn a_server_that_outlives_its_client() {
    let scratch = Scratch::new("tmux");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    fs::write(work.join("input"), vec![b'x'; 1 << 20]).expect("own directory");
    let socket = work.join("socket").into_os_string();
    let words = ["/usr/bin/tmux", "-f", "/dev/null", "-S"].map(Into::into);
    let session = ["new-session", "-d", "cat input > output; touch done"].map(Into::into);
    let job = Job::new(words.into_iter().chain([socket.clone()]).chain(session), &work);
    let outcome = job.traced(&run).run();
    assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
    // The server removes nothing; it is gone when nobody answers.
    let patience = Instant::now();
    let ask = Job::new(["/usr/bin/tmux".into(), "-S".into(), socket, "list-sessions".into()], &scratch.dir("ask"));
    while !work.join("done").exists() || ask.run().status == 0 {
        assert!(patience.elapsed() < Duration::from_secs(30), "tmux does not end in {}", work.display());
        std::thread::sleep(Duration::from_millis(10));
    }
    let checked = loop {
        let report = checked(&run, &scratch);
        if report["open"] == false {
            break report;
        }
        assert!(patience.elapsed() < Duration::from_secs(30), "still open: {report}");
        std::thread::sleep(Duration::from_millis(10));
    };
    let read = &checked["coverage"]["tree_read"];
    let (kernel, traced, before) = (number(&read["kernel"]), number(&read["traced"]), number(&read["before"]));
    // Counters that are read one after the other may contradict each other by a line of a file in /proc.
    assert!(kernel + 1024 >= before + (1 << 20), "what cat read is missing: {read}");
    assert!(traced >= 1 << 20 && traced <= kernel, "{read}");
}

/// Neither what a compiler reads nor what the recorder reads in it counts as make's.
#[test]
fn bytes_of_compilers_are_not_those_of_make() {
    let scratch = Scratch::new("make");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    let names: Vec<String> = (0..8).map(|n| format!("p{n}")).collect();
    for name in &names {
        fs::write(work.join(format!("{name}.c")), "#include <stdio.h>\nint main(void) { return puts(\"x\") < 0; }\n")
            .expect("own directory");
    }
    // Half by a shell, half by make itself.
    let makefile = format!("all: {}\np%: p%.c\n\tgcc -o $@ $<\n\tgcc -E $< > $@.i && ./$@ > $@.out\n", names.join(" "));
    fs::write(work.join("Makefile"), makefile).expect("own directory");
    let outcome = Job::new(["/usr/bin/make", "-j2"], &work).traced(&run).run();
    assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
    let checked = checked(&run, &scratch);
    let mut seen = 0;
    for line in checked["coverage"]["lines"].as_array().expect("processes") {
        let program = line["program"].as_str().expect("a name");
        if !["make", "sh -c", "gcc", "collect2"].contains(&program) {
            continue;
        }
        seen += 1;
        for way in ["read", "write"] {
            let (kernel, traced) = (number(&line[way]["kernel"]), number(&line[way]["traced"]));
            // Programs read a line here and there by themselves; a compiler reads hundreds of KiB, a recorder about one in each process.
            assert!(kernel <= traced + 2048, "{way} of {program}: {line}");
        }
    }
    assert!(seen > 8 * 4, "{seen} processes: {checked}");
}

/// What another user executes cannot reach the shared memory: the summary says so.
#[test]
fn another_user_is_named() {
    assert!(geteuid().is_root(), "becoming another user needs root");
    let scratch = Scratch::new("su");
    let run = scratch.join("run").into_os_string();
    let command = ["su", "-s", "/bin/sh", "nobody", "-c", "id -un; cat /etc/hostname > /dev/null"].map(Into::into);
    let words = ["run".into(), "-o".into(), run, "--".into()].into_iter().chain(command);
    let outcome = weft(words, &scratch);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!((outcome.status, &*outcome.stdout), (0, &b"nobody\n"[..]), "{said}");
    let untraced = said.lines().find(|line| line.contains("untraced")).unwrap_or_default();
    assert!(untraced.contains("sh:") && untraced.contains("user change"), "{said}");
}
