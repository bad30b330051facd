//! However a process ends, every call that returned is in the trace.

use weftline_format::manifest::SupervisorRecord;
use weftline_testkit::run::Job;
use weftline_testkit::{Case, Scratch};

/// 1 open, 1,000 pwrite, 1 close, then the end in question.
fn ending(how: &str) -> Case {
    Case::program("ending").args([how, "1000"]).work("data.bin", 1000)
}

hazards! {
    by_return: ending("return");
    by_exit: ending("exit");
    by_underscore_exit: ending("_exit");
    by_capital_exit: ending("_Exit");
    by_quick_exit: ending("quick_exit");
    by_raw_exit_group: ending("exit_group");
    by_raw_thread_exit: ending("raw_exit");
    by_pthread_exit: ending("pthread_exit");
    by_sigkill: ending("kill");
    by_sigterm: ending("term");
    by_sigint: ending("int");
    by_sigsegv: ending("segv");
    by_sigfpe: ending("fpe");
    by_abort: ending("abort");
    by_exec: ending("exec").sees("execl", "/bin/true", 1);
    after_exec_that_fails: ending("exec_fails").fails("execl", "no-such-program", 2, 1).work("after.bin", 10);
    /// More than the buffers hold at once, and no chance to say goodbye.
    by_sigkill_after_500_000_calls:
        Case::program("ending").args(["kill", "500000"]).work("data.bin", 500_000).on_tmpfs();
    in_five_images_of_one_pid:
        (0..5).fold(Case::program("exec_chain"), |case, image| case.work(&format!("image{image}"), 100));
    with_a_thread_blocked:
        Case::program("threads_at_exit").args(["blocked"]).work("main.bin", 1000).work("thread.bin", 1000)
            .sees("pipe", "pipe:", 1);
    with_main_thread_gone: Case::program("main_thread_leaves").work("main.bin", 500).work("second.bin", 500);
    by_exec_from_a_thread:
        Case::program("exec_from_thread").work("main.bin", 200).work("thread.bin", 200).work("image.bin", 200);
    folded_characters_before_underscore_exit: characters_at_death("_exit");
    folded_characters_before_sigkill: characters_at_death("kill");
    folded_characters_before_exec: characters_at_death("exec");
}

fn characters_at_death(how: &str) -> Case {
    Case::program("characters_at_death")
        .args([how])
        .sees("fopen", "letters.txt", 1)
        .sees("setvbuf", "letters.txt", 1)
        .moves("putc", "letters.txt", 5000, 5000)
}

/// The incumbent crashed in 2 of 23 such runs; a call cut off by the exit took effect but never returned.
#[test]
fn with_threads_in_the_middle_of_calls() {
    let case = Case::program("threads_at_exit").args(["busy"]).ignore(["busy.log"]);
    for _ in 0..20 {
        let finished = case.check();
        assert_eq!(finished.count("pwrite", "main.bin").calls, 1000);
        let length = finished.work.join("busy.log").metadata().expect("the threads wrote busy.log").len();
        let traced = finished.count("write", "busy.log").calls;
        assert!(traced <= length && length - traced <= 3, "{length} calls took effect, {traced} in the trace");
    }
}

/// The call that it died in is in no trace, but the time until then is time that it lived.
#[test]
fn killed_in_a_call_a_process_lived_until_then() {
    let scratch = Scratch::new("killed-in-a-call");
    let run = scratch.join("run");
    Job::new(["/usr/bin/timeout", "-s", "KILL", "1", "/bin/sleep", "60"], &scratch.dir("work")).traced(&run).run();
    let record = SupervisorRecord::read_all(&run).0.remove(0);
    let sleep = record.processes.iter().find(|process| process.exe.ends_with("/sleep")).expect("it was traced");
    let lived = sleep.ended_ns - sleep.started_ns;
    // Looks come every 50 ms; a busy machine may miss some.
    assert!((500_000_000..1_500_000_000).contains(&lived), "{lived} ns of about a second");
}
