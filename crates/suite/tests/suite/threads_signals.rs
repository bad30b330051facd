//! Threads that come and go, are cancelled, are interrupted by signals; handlers that record while others record.

use std::fs;

use weftline_testkit::Case;

fn cancelled(call: &str) -> Case {
    Case::program("cancelled")
        .args([call])
        .work("after.bin", 10)
        .sees("mkfifo", "fifo", 1)
        .sees("open", "thread.bin", 5)
        .moves("pwrite", "thread.bin", 50, 3200)
        .sees("close", "thread.bin", 5)
}

hazards! {
    two_thousand_short_threads: Case::program("threads_churn").work("shared.bin", 1)
        .sees("open", "shared.bin", 2000).moves("pread", "shared.bin", 2000, 2000).sees("close", "shared.bin", 2000);
    cancelled_in_read: cancelled("read");
    cancelled_in_fgets: cancelled("fgets");
    cancelled_in_open: cancelled("open");
    a_kilohertz_of_signals: Case::program("timer_signals").work("data.bin", 20_000)
        .moves("read", "pipe:", 50, 5000).moves("write", "pipe:", 50, 5000);
    handlers_that_jump_away: Case::program("longjmp_handler").work("before.bin", 100).work("after.bin", 100);
    small_stacks: Case::program("small_stacks")
        .sees("open", "handler.bin", 100).moves("write", "handler.bin", 100, 100).sees("close", "handler.bin", 100)
        .sees("open", "thread.bin", 20).moves("pwrite", "thread.bin", 200, 12_800).sees("close", "thread.bin", 20);
}

/// A handler that interrupts the exchange of a full buffer cannot have one: its record is counted instead of kept.
/// Main's number of calls depends on the machine's speed, so the program leaves it in a file.
#[test]
fn handler_does_io_while_main_does() {
    let case = Case::program("handler_io").ignore(["calls"]).may_lose("in-signal-handler");
    for _ in 0..3 {
        let finished = case.check();
        let truth = fs::read(finished.work.join("calls")).expect("the program leaves its count");
        let truth = u32::from_le_bytes(truth.try_into().expect("four bytes"));
        assert_eq!(finished.count("pread", "data.bin").calls, u64::from(truth), "main's own calls");
        assert_eq!(
            finished.count("write", "handler.log").calls + finished.lost(),
            500,
            "the handler's, kept or counted"
        );
        assert!(
            finished.lost() < 50,
            "{} of 500 lost: only a handler in the middle of an exchange of buffers may",
            finished.lost()
        );
    }
}
