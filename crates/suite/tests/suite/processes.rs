//! Every way to start a process: the child is traced, its parent is not disturbed, each keeps its own events.

use std::fs;
use std::time::{Duration, Instant};

use weftline_format::{Event, reader};
use weftline_testkit::run::{Job, weft};
use weftline_testkit::table::{Places, compare, table};
use weftline_testkit::{Case, Scratch, compile};

fn fork_ends(how: &str) -> Case {
    Case::program("fork_ends")
        .args([how])
        .work("before.bin", 1000)
        .work("child.bin", 1000)
        .work("after.bin", 1000)
        .sees("fork", "", 1)
        .sees("waitpid", "", 1)
}

fn vfork_child(how: &str) -> Case {
    Case::program("vfork_child")
        .args([how])
        .sees("open", "parent.bin", 1)
        .moves("write", "parent.bin", 20, 120)
        .sees("close", "parent.bin", 21) // twenty times in the children
        .sees("open", "child.bin", 20)
        .moves("write", "child.bin", 20, 100)
        .sees("vfork", "", 20)
}

fn exec_form(how: &str) -> Case {
    Case::program("exec_forms").args([how]).work("first.bin", 50).work("child.bin", 50)
}

hazards! {
    forked_child_exits: fork_ends("exit");
    forked_child_exits_at_once: fork_ends("_exit");
    forked_child_is_killed: fork_ends("kill");
    forked_child_works_then_execs: fork_ends("exec");
    vfork_then_exec: vfork_child("exec");
    vfork_then_exit: vfork_child("_exit");
    raw_clone: Case::program("raw_clone").args(["fork"])
        .work("before.bin", 1000).work("child.bin", 1000).work("after.bin", 1000);
    clone_sharing_memory: Case::program("raw_clone").args(["vm_vfork"])
        .work("before.bin", 1000).work("child.bin", 1000).work("after.bin", 1000);
    posix_spawn: Case::program("spawn").work("before.bin", 100).work("first.bin", 100).work("second.bin", 100)
        .work("third.bin", 100).work("after.bin", 100).moves("write", "actions.txt", 3, 45)
        .fails("posix_spawnp", "name:no-such-program-anywhere", 2, 1);
    system_and_popen: Case::program("system_popen")
        .sees("system", "", 1).sees("popen", "", 2).moves("fgets", "pipe:", 3, 8).moves("fputs", "pipe:", 1, 17)
        .sees("pclose", "pipe:", 2);
    wait_family: Case::program("waits").sees("fork", "", 5).sees("wait", "", 1).fails("wait", "", 10, 1)
        .sees("waitpid", "", 1).sees("wait3", "", 1).sees("wait4", "", 1).sees("waitid", "", 1);
    three_hundred_children_at_once:
        (0..300).fold(Case::program("many_children").args(["300"]), |case, i| case.work(&format!("child-{i:03}"), 10));
    fork_from_a_threaded_program: Case::program("fork_threaded").work("data.bin", 1)
        .sees("open", "data.bin", 2).sees("close", "data.bin", 2).moves("pread", "data.bin", 40_000, 40_000)
        .sees("open", "child.bin", 100).sees("close", "child.bin", 100).moves("pwrite", "child.bin", 1000, 64_000);
    execv: exec_form("execv");
    execve: exec_form("execve");
    execvp: exec_form("execvp");
    execvpe: exec_form("execvpe");
    fexecve: exec_form("fexecve");
    execve_with_an_empty_environment: exec_form("execve_empty");
    exec_after_clearenv: exec_form("clearenv");
    env_ignoring_the_environment: Case::command(["/usr/bin/env".into(), "-i".into(), "A=b".into(), compile::compile("ending", compile::PLAIN)])
        .args(["exit", "100"]).work("data.bin", 100);
    pid_namespaces_with_repeating_pids: Case::program("pid_namespace").work("ns1", 100).work("ns2", 200).work("ns3", 300);
    unshare_with_repeating_pids: Case::script("unshare", r#"
            for round in 1 2 3; do
                unshare --pid --fork --kill-child bash -c 'test $$ = 1 && "$0" exit 100' "$ENDING" || test $? = 7
            done"#)
        .env("ENDING", compile::compile("ending", compile::PLAIN))
        .moves("pwrite", "data.bin", 300, 19_200)
        .sees("open", "data.bin", 3).sees("close", "data.bin", 3);
}

/// Chromium's sandbox makes such children. Other threads go on recording beside them.
#[test]
fn children_with_thread_storage_of_their_own() {
    for mode in ["zero", "filled", "execs"] {
        let finished =
            Case::program("own_storage").args([mode]).ignore(["thread.bin"]).may_lose("own-storage-child").check();
        assert_eq!(finished.lost(), 3, "{mode}: mkdir and two chdir of the child");
        for name in ["before.bin", "after.bin"] {
            assert_eq!(finished.count("pwrite", name).calls, 100, "{mode}: {name}");
        }
        assert!(finished.count("pwrite", "thread.bin").calls > 0, "{mode}: the other thread");
    }
}

/// Names that threads and processes give themselves are theirs in the trace; a forked child without one is told from its parent.
#[test]
fn names_of_threads_and_processes() {
    let finished = Case::program("names").check();
    let text = |event: &Event, key: &str| {
        let found = event.args.iter().find(|(found, _)| found == key)?;
        found.1.as_str().map(str::to_owned)
    };
    let of = |name: &'static str| {
        let mut events: Vec<&Event> = finished.trace.events.iter().filter(|event| event.name == name).collect();
        events.sort_by_key(|event| event.start_ns);
        events.into_iter()
    };
    let threads: Vec<(bool, Option<String>)> =
        of("thread_name").map(|event| (event.tid == event.pid, text(event, "name"))).collect();
    let expected = [(false, "loader-1"), (false, "loader-2"), (true, "pt_data_worker_")];
    assert_eq!(threads, expected.map(|(main, name)| (main, Some(name.to_owned()))));
    let tids: Vec<i64> = of("thread_name").map(|event| event.tid).collect();
    assert_eq!(tids[0], tids[1], "both names of one thread");
    let mut processes: Vec<String> = of("process_name").filter_map(|event| text(event, "name")).collect();
    processes.sort();
    processes.dedup();
    assert_eq!(processes, ["names", "names (forked)", "pt_data_worker_"]);
}

/// `weft run` returns with its child; what a daemon does later is in the run once somebody looks again.
#[test]
fn survivor_goes_on_into_the_same_run() {
    let scratch = Scratch::new("survivor");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    let job = Job::new([compile::compile("survivor", compile::PLAIN)], &work).traced(&run);
    let outcome = job.run();
    assert_eq!((outcome.status, outcome.stderr.len()), (0, 0), "{:?}", String::from_utf8_lossy(&outcome.stderr));
    fs::write(work.join("go"), "").expect("the working directory can be written");
    let patience = Instant::now();
    while !work.join("done").exists() {
        assert!(
            patience.elapsed() < Duration::from_secs(20),
            "the daemon did not finish ({})",
            scratch.path().display()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    let recovered = weft(["recover".as_ref(), run.as_os_str()], &scratch);
    assert_eq!(recovered.status, 0, "{}", String::from_utf8_lossy(&recovered.stderr));
    let trace = reader::read_run(&run).expect("the run can be read");
    let places = Places { work, stdout: job.beside("stdout"), stderr: job.beside("stderr") };
    let expected =
        Case::command(["true"]).work("before.bin", 100).work("daemon-early.bin", 100).work("daemon-late.bin", 100);
    let wrong = compare(expected.expected(), &table(&trace, &places));
    assert!(wrong.is_empty(), "{}:\n  {}", scratch.path().display(), wrong.join("\n  "));
}
