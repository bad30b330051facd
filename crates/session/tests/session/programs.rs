//! The programs that the cases run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weftline::front::{self, Argument, EventHead, EventKind, Payload, Usage};
use weftline::locate;
use weftline_calls::Call;
use weftline_dropin::dftracer;
use weftline_dropin::perfflow::{self, Flavour};
use weftline_recorder::process;
use weftline_recorder::thread::{self, Fields};
use weftline_session::{Begun, Plan, begin, finish};

/// Plays the program `name` in a directory.
pub(crate) fn play(name: &str, directory: &Path) -> ExitCode {
    let dft = |options: dftracer::Options| {
        let log_file = directory.join("log");
        start(Plan::Dftracer(dftracer::Options { log_file, ..options }));
    };
    let defaults = dftracer::Options::default;
    match name {
        "tells" => {
            dft(defaults());
            tell("work", 1);
            tell("work", 2);
        }
        "tells plainly" => {
            dft(dftracer::Options { compression: false, ..defaults() });
            tell("work", 1);
        }
        "tells calls" => {
            dft(dftracer::Options { stdio: false, ..defaults() });
            for call in [Call::fread, Call::read, Call::poll, Call::recv] {
                thread::record(call, 1, 2, &Fields::NONE);
            }
            // A span of the program's own, whatever it calls its category.
            emit(EventKind::Span, "mine", "STDIO", 0, &[]);
            tell("work", 1);
        }
        "says nothing" => dft(defaults()),
        "comes again" => {
            for round in 1..=3 {
                dft(defaults());
                tell("work", round);
                assert_eq!(finish().expect("finished").files.len(), 1);
                tell("not recorded", round);
                assert!(finish().expect("nothing to finish").files.is_empty());
            }
        }
        "joins itself" => {
            dft(defaults());
            let log_file = directory.join("other");
            let plan = Plan::Dftracer(dftracer::Options { log_file, ..defaults() });
            assert_eq!(begin(locate::find(), plan, None).expect("joined"), Begun::Joined);
            tell("work", 1);
        }
        "is killed" => {
            dft(defaults());
            tell("work", 1);
            kill_self();
        }
        "forks" => {
            dft(defaults());
            tell("parent", 0);
            let children: Vec<i32> = (1..=3)
                .map(|child| {
                    fork(|| {
                        tell("child", child);
                        // Exits as any program does.
                        std::process::exit(0);
                    })
                })
                .collect();
            children.into_iter().for_each(wait);
            tell("parent", 9);
        }
        "has silent and killed children" => {
            dft(defaults());
            tell("parent", 0);
            wait(fork(|| std::process::exit(0)));
            wait(fork(|| {
                tell("killed", 1);
                kill_self();
            }));
        }
        "child outlives" => {
            dft(defaults());
            tell("parent", 0);
            let parent = std::process::id();
            let wait_for = |condition: &dyn Fn() -> bool| {
                let deadline = Instant::now() + Duration::from_secs(60);
                while !condition() {
                    assert!(Instant::now() < deadline, "waits in vain");
                    std::thread::sleep(Duration::from_millis(2));
                }
            };
            fork(|| {
                tell("child", 1);
                std::fs::write(directory.join("told"), "").expect("written");
                let parent_is_gone = || !Path::new(&format!("/proc/{parent}")).exists();
                wait_for(&|| parent_is_gone() && directory.join("go").exists());
                tell("child", 2);
                std::process::exit(0);
            });
            // The recorder of a program without hooks does not see a child before it tells something.
            wait_for(&|| directory.join("told").exists());
        }
        "child finishes and goes on" => {
            dft(defaults());
            tell("parent", 0);
            wait(fork(|| {
                tell("child", 1);
                assert_eq!(finish().expect("finished").files.len(), 1);
                dft(defaults());
                tell("child", 2);
                std::process::exit(0);
            }));
        }
        "ends suddenly" => {
            dft(defaults());
            tell("work", 1);
            // What the hook of `_exit` does.
            process::note_end(3);
            process::run_at_end(true);
            exit_now();
        }
        "ends suddenly in a child" => {
            dft(defaults());
            tell("parent", 0);
            wait(fork(|| {
                tell("child", 1);
                process::note_end(0);
                process::run_at_end(true);
                exit_now();
            }));
            tell("parent", 1);
        }
        "is threaded" => {
            dft(defaults());
            let (sender, all) = std::sync::mpsc::channel();
            for thread in 1..=4 {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    tell("thread", thread);
                    sender.send(()).expect("somebody counts");
                    loop {
                        tell("thread", thread);
                    }
                });
            }
            (1..=4).for_each(|_| all.recv().expect("a thread"));
        }
        "forks while it finishes" => forks_while_it_finishes(directory),
        "cannot begin" => {
            let plain = directory.join("plain");
            std::fs::write(&plain, "").expect("written");
            let plan = Plan::Dftracer(dftracer::Options { log_file: plain.join("log"), ..defaults() });
            let error = begin(locate::find(), plan, None).expect_err("no directory");
            assert!(error.to_string().contains("plain"), "{error}");
            tell("not recorded", 1);
            // And nothing stands in the way of a better try.
            dft(defaults());
            tell("work", 1);
        }
        "verbose" => {
            perf(directory, "log-dir=LOGS/a/b", Flavour::Python);
            verbose(2);
        }
        "compact object" => {
            perf(directory, "log-event=compact:log-format=object:log-filename-include=name,pid:name=part", Flavour::C);
            emit(EventKind::Span, "foo", "x.cpp", 0, &[]);
            emit(EventKind::AsyncBegin, "bar", "x.cpp", 7, &[("scope", Argument::Text(b"s"))]);
            emit(EventKind::AsyncEnd, "bar", "x.cpp", 7, &[("scope", Argument::Text(b"s"))]);
            emit(EventKind::FlowStart, "flow", "flow", 100, &[]);
        }
        "uses" => {
            perf(directory, "cpu-mem-usage=True", Flavour::Python);
            let table = locate::recording().expect("on");
            let from = front::wanted_usage(table).expect("usage is wanted");
            let start = front::now(table);
            std::thread::sleep(Duration::from_millis(10));
            // How much of the processor a test gets is not in its hands; what the file says of it is.
            let to = Usage { process_user: from.process_user + 20_000_000, ..front::usage(table) };
            tell_at(EventKind::Span, "spin", "m", 0, start, &[("", Argument::Usage(from, to))]);
        }
        "fixed name" => {
            perf(directory, "log-filename-include=name", Flavour::Python);
            verbose(1);
            let children: Vec<i32> = (0..2)
                .map(|_| {
                    fork(|| {
                        verbose(1);
                        std::process::exit(0);
                    })
                })
                .collect();
            children.into_iter().for_each(wait);
        }
        "run" => {
            for round in 1..=2 {
                start(Plan::Run { directory: directory.join("run"), io: false });
                tell("work", round);
                let published = finish().expect("finished");
                assert!(published.files.is_empty() && published.open.is_none());
            }
        }
        other => panic!("no program {other}"),
    }
    ExitCode::SUCCESS
}

fn start(plan: Plan) {
    let own = std::env::current_exe().expect("this binary");
    match begin(locate::find(), plan, Some(&own)).expect("begun") {
        Begun::Started { messages, .. } => assert!(messages.is_empty(), "{messages:?}"),
        Begun::Joined => panic!("nothing else records"),
    }
}

fn perf(directory: &Path, options: &str, flavour: Flavour) {
    std::env::set_current_dir(directory).expect("there");
    let (options, warnings) = perfflow::Options::parse(options);
    assert!(warnings.is_empty(), "{warnings:?}");
    start(Plan::Perfflow { options, flavour, instance_path: "1.2".to_owned() });
}

fn verbose(depth: u32) {
    emit(EventKind::Begin, "foo", "__main__", 0, &[]);
    if depth > 1 {
        verbose(depth - 1);
    }
    emit(EventKind::End, "foo", "__main__", 0, &[]);
}

/// A span of a microsecond or so.
fn tell(name: &str, index: i64) {
    emit(EventKind::Span, name, "app", 0, &[("index", Argument::Int(index))]);
}

fn emit(kind: EventKind, name: &str, category: &str, id: u64, arguments: &[(&str, Argument<'_>)]) {
    if let Some(table) = locate::recording() {
        tell_at(kind, name, category, id, front::now(table), arguments);
    }
}

fn tell_at(kind: EventKind, name: &str, category: &str, id: u64, start: u64, arguments: &[(&str, Argument<'_>)]) {
    let Some(table) = locate::recording() else { return };
    let text = |text: &str| front::intern(table, text.as_bytes());
    let mut payload = Payload::<512>::new();
    for (key, value) in arguments {
        assert!(payload.add(text(key), *value));
    }
    let spans = matches!(kind, EventKind::Span | EventKind::AsyncSpan);
    let end = if spans { front::now(table) } else { start };
    let head = EventHead { kind, name: text(name), category: text(category), start, end, id };
    front::emit(table, &head, payload.as_bytes());
}

/// One thread begins and finishes, again and again, while another forks children that exit: no child may wait for a lock whose holder
/// stayed in the parent.
fn forks_while_it_finishes(directory: &Path) {
    let log_file: PathBuf = directory.join("log");
    let worker = std::thread::spawn(move || {
        for round in 0..20 {
            start(Plan::Dftracer(dftracer::Options { log_file: log_file.clone(), ..dftracer::Options::default() }));
            tell("work", round);
            finish().expect("finished");
        }
    });
    while !worker.is_finished() {
        wait(fork(|| {
            tell("child", 1);
            std::process::exit(0);
        }));
    }
    worker.join().expect("the worker ends well");
}

#[expect(unsafe_code, reason = "processes, as programs make and end them")]
mod processes {
    /// The child's pid. The child never returns.
    pub(super) fn fork(child: impl FnOnce()) -> i32 {
        // SAFETY: the child only uses what survives a fork: its own thread and memory.
        match unsafe { libc::fork() } {
            0 => {
                child();
                exit_now();
            }
            pid => {
                assert!(pid > 0);
                pid
            }
        }
    }

    pub(super) fn wait(pid: i32) {
        let mut status = 0;
        // SAFETY: waits for a child; `status` is room for how it ended.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        let killed_as_planned = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
        assert!(status == 0 || killed_as_planned, "a child ended with {status:#x}");
    }

    pub(super) fn kill_self() {
        // SAFETY: ends this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }

    pub(super) fn exit_now() -> ! {
        // SAFETY: ends this process.
        unsafe { libc::_exit(0) }
    }
}
use processes::{exit_now, fork, kill_self, wait};
