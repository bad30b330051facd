//! `weft top` on a real terminal (tmux), and for scripts, beside a program that knows how many calls it has made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weftline_testkit::Scratch;
use weftline_testkit::compile::{PLAIN, compile};
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, Outcome, Running};

/// A run in progress: `steady` under `weft run`.
struct Steady {
    scratch: Scratch,
    work: PathBuf,
    run: PathBuf,
    running: Running,
}

impl Steady {
    fn start(name: &str, arguments: &[&str]) -> Steady {
        Steady::start_by(name, &[], arguments)
    }

    /// With a command before the program's.
    fn start_by(name: &str, before: &[&str], arguments: &[&str]) -> Steady {
        let scratch = Scratch::new(name);
        let (work, run) = (scratch.dir("work"), scratch.join("the-run"));
        let program = compile("steady", PLAIN).into_os_string();
        let command = before.iter().map(Into::into).chain([program]).chain(arguments.iter().map(Into::into));
        let running = Job::new(command, &work).traced(&run).start();
        let steady = Steady { scratch, work, run, running };
        wait_until("the program works", || steady.count() > 100);
        steady
    }

    /// Calls that the program has made.
    fn count(&self) -> u64 {
        let bytes = fs::read(self.work.join("count.bin")).unwrap_or_default();
        bytes.try_into().map_or(0, u64::from_ne_bytes)
    }

    fn top(&self, arguments: &[&str]) -> Outcome {
        let mut command = vec![product().as_os_str().to_owned(), "top".into()];
        command.extend(arguments.iter().map(Into::into));
        command.push(self.run.clone().into());
        Job::new(command, &self.scratch.dir("verb")).run()
    }
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now();
    while !holds() {
        assert!(patience.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A terminal with a shell in it, by a tmux server of its own.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    fn open(directory: &Path, width: u32, height: u32) -> Terminal {
        let terminal = Terminal { socket: directory.join("tmux") };
        let (width, height) = (width.to_string(), height.to_string());
        let shell = "exec env -u TMUX PS1='ready> ' LC_ALL=C.UTF-8 sh";
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, shell]);
        wait_until("the shell asks", || terminal.text().contains("ready>"));
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output =
            Command::new("tmux").arg("-S").arg(&self.socket).args(arguments).output().expect("tmux is installed");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    fn key(&self, name: &str) {
        self.tmux(&["send-keys", name]);
    }

    /// Runs a command of the shell whose output is one line, and gives that line.
    fn ask(&self, command: &str, answer: &Path) -> String {
        let _ = fs::remove_file(answer);
        self.type_text(&format!("{command} > {0}.new; mv {0}.new {0}\n", answer.display()));
        wait_until("the shell answers", || answer.exists());
        fs::read_to_string(answer).expect("an answer")
    }

    #[track_caller]
    fn shows(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let mut last = String::new();
        let patience = Instant::now();
        while patience.elapsed() < Duration::from_secs(30) {
            last = self.text();
            if holds(&last) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("waited in vain for {what}:\n{last}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// The first child of a process.
fn child_of(parent: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).expect("it runs");
    let pid = children.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("a child");
    Pid::from_raw(pid).expect("a pid")
}

fn start_top(terminal: &Terminal, steady: &Steady) {
    terminal.type_text(&format!("{} top --interval 300ms {}\n", product().display(), steady.run.display()));
    terminal.shows("the first picture", |text| text.starts_with("weft top  the-run") && text.contains("COMMAND"));
}

#[test]
fn a_terminal_shows_a_run_and_is_left_clean() {
    let steady = Steady::start("top-terminal", &["300"]);
    let terminal = Terminal::open(steady.scratch.path(), 80, 24);
    let answer = steady.scratch.join("answer");
    terminal.type_text("echo before-top\n");
    let settings = terminal.ask("stty -a", &answer);
    start_top(&terminal, &steady);
    terminal.shows("process, calls and files", |text| {
        ["1 process", "*CPU%", "steady 300", "pread", "pwrite", "input.bin", "output.bin", "0 dropped", "q quit"]
            .iter()
            .all(|part| text.contains(part))
    });
    for (key, column) in [("w", "*WRITE/s"), ("e", "*EV/s"), ("m", "*RSS"), ("r", "*READ/s"), ("c", "*CPU%")] {
        terminal.type_text(key);
        terminal.shows(column, |text| text.contains(column));
    }
    terminal.type_text("/no-such-name");
    terminal.shows("the filter", |text| text.contains("filter: no-such-name_") && text.contains("no process matches"));
    terminal.key("Enter");
    terminal.key("Escape");
    terminal.shows("all processes", |text| !text.contains("filter \"") && text.contains("steady 300"));
    terminal.type_text("/STEADY");
    terminal.key("Enter");
    terminal.shows("the filtered process", |text| text.contains("filter \"STEADY\"") && text.contains("steady 300"));
    terminal.type_text("p");
    terminal.shows("the pause", |text| text.contains("PAUSED"));
    terminal.type_text("p?");
    terminal.shows("the help", |text| text.contains("quit") && text.contains("scroll") && !text.contains("PAUSED"));
    terminal.type_text("q");
    terminal.tmux(&["resize-window", "-x", "60", "-y", "15"]);
    terminal.shows("the smaller screen", |text| {
        text.lines().count() <= 15
            && text.lines().all(|line| line.chars().count() <= 60)
            && ["steady 300", "q quit", "input.bin"].iter().all(|part| text.contains(part))
    });
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    terminal.shows("the larger screen", |text| text.contains("sort: c m r w e"));
    terminal.type_text("q");
    terminal.shows("the screen as it was", |text| {
        text.contains("before-top") && text.trim_end().ends_with("ready>") && !text.contains("CPU%")
    });
    assert_eq!(terminal.ask("stty -a", &answer), settings);
    assert_eq!(
        terminal.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}"]).trim(),
        "0 1 1"
    );
}

/// Ctrl-C, SIGTERM, and Ctrl-Z with `fg`.
#[test]
fn every_way_out_leaves_the_terminal_clean() {
    let steady = Steady::start("top-ways-out", &["300"]);
    let terminal = Terminal::open(steady.scratch.path(), 80, 24);
    let answer = steady.scratch.join("answer");
    let settings = terminal.ask("stty -a", &answer);
    for (way, code) in [("C-c", "130\n"), ("TERM", "143\n"), ("C-z", "0\n")] {
        start_top(&terminal, &steady);
        match way {
            "TERM" => {
                let shell = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().parse().expect("a pid");
                kill_process(child_of(shell), Signal::TERM).expect("weft top runs");
            }
            "C-z" => {
                terminal.key("C-z");
                terminal.shows("the shell", |text| text.trim_end().ends_with("ready>") && !text.contains("CPU%"));
                assert_eq!(terminal.ask("stty -a", &answer), settings, "{way}");
                terminal.type_text("fg\n");
                terminal.shows("the picture again", |text| text.contains("*CPU%"));
                terminal.type_text("q");
            }
            key => terminal.key(key),
        }
        terminal.shows("the shell", |text| text.trim_end().ends_with("ready>") && !text.contains("CPU%"));
        assert_eq!(terminal.ask("echo $?", &answer), code, "{way}");
        assert_eq!(terminal.ask("stty -a", &answer), settings, "{way}");
    }
}

#[test]
fn a_run_that_ends_keeps_its_last_picture() {
    let steady = Steady::start("top-ends", &["300"]);
    let terminal = Terminal::open(steady.scratch.path(), 80, 24);
    start_top(&terminal, &steady);
    terminal.shows("the program", |text| text.contains("steady 300") && text.contains("input.bin"));
    kill_process(child_of(steady.running.pid()), Signal::TERM).expect("the program runs");
    terminal
        .shows("the end", |text| text.contains("ENDED") && text.contains("steady 300") && text.contains("input.bin"));
    terminal.type_text("q");
    terminal.shows("the shell", |text| text.trim_end().ends_with("ready>"));
    let outcome = steady.top(&["--once"]);
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!((outcome.status, outcome.stdout.len()), (1, 0), "{said}");
    assert!(said.contains("the run has ended") && said.lines().count() == 1, "{said}");
}

fn json(outcome: &Outcome) -> Value {
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.status, 0, "{said}");
    serde_json::from_slice(&outcome.stdout).expect("JSON")
}

fn named<'v>(list: &'v Value, end: &str) -> &'v Value {
    let found = list
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["name"].as_str().is_some_and(|name| name.ends_with(end)));
    found.unwrap_or_else(|| panic!("no {end} in {list:#}"))
}

/// What the numbers of a picture are compared with.
#[derive(Clone, Copy, PartialEq)]
enum Judge {
    /// The picture's own rate of calls: it agrees with itself, however busy the machine is.
    Itself,
    /// What the program counted meanwhile. The rate is the true one of just that time, so little is forgiven but what lies between the
    /// program's clock and the picture's.
    Program,
}

/// Checks the picture of one interval: who, what, rates, bytes per call, the share that was seen.
fn check_picture(steady: &Steady, interval: &str, least_seen: f64, judge: Judge) {
    let (before, started) = (steady.count(), Instant::now());
    let picture = json(&steady.top(&["--once", "--json", "--interval", interval]));
    let truth = (steady.count() - before) as f64 / started.elapsed().as_secs_f64();
    let near = |value: f64, expected: f64| {
        assert!((value / expected - 1.0).abs() < 0.2, "{value} is not {expected}: {picture:#}");
    };
    let number = |value: &Value| value.as_f64().expect("a number");
    assert_eq!((&picture["state"], &picture["running"]), (&"running".into(), &1.into()));
    let process = &picture["processes"][0];
    assert!(process["name"].as_str().is_some_and(|name| name.starts_with("steady ")), "{process:#}");
    let shown = number(&process["events_per_second"]);
    let calls = if judge == Judge::Program { truth } else { shown };
    near(shown, calls);
    near(number(&picture["events_per_second"]), calls);
    near(number(&process["read_bytes_per_second"]), calls / 2.0 * 4096.0);
    near(number(&process["write_bytes_per_second"]), calls / 2.0 * 512.0);
    assert!(process["cpu_percent"].as_f64().is_some_and(|percent| percent > 0.0 && percent < 110.0), "{process:#}");
    assert!(process["rss_bytes"].as_u64().is_some_and(|bytes| bytes > 100_000), "{process:#}");
    let seen = number(&picture["share_seen"]);
    assert!(seen >= least_seen && seen <= 1.0, "{seen}");
    for (call, file, read, write) in [("pread", "input.bin", 4096.0, 0.0), ("pwrite", "output.bin", 0.0, 512.0)] {
        for hot in [named(&picture["calls"], call), named(&picture["files"], file)] {
            near(number(&hot["per_second"]), calls / 2.0 * seen);
            let bytes = [&hot["read_bytes_per_second"], &hot["write_bytes_per_second"]].map(number);
            let per_call = bytes.map(|bytes| bytes / number(&hot["per_second"]));
            assert!((per_call[0] - read).abs() < 1.0 && (per_call[1] - write).abs() < 1.0, "{hot:#}");
        }
    }
}

/// A picture of four seconds beside what the program counted meanwhile.
pub(crate) fn check_rates(name: &str, arguments: &[&str], least_seen: f64) {
    check_picture(&Steady::start(name, arguments), "4s", least_seen, Judge::Program);
}

#[test]
fn a_picture_for_scripts() {
    let steady = Steady::start("top-once", &["300"]);
    check_picture(&steady, "500ms", 0.0, Judge::Itself);
    let text = steady.top(&["--once", "--interval", "300ms"]);
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(
        ["the-run  running", "steady 300", "pread", "input.bin", "0 dropped"].iter().all(|part| text.contains(part)),
        "{text}"
    );
}

/// A supervisor that is stopped lets the arena fill up, which cannot grow under a limit on file sizes: what is dropped is shown, and
/// that nobody drains.
#[test]
fn drops_are_shown() {
    let limited = ["/bin/sh", "-c", r#"ulimit -f 100; exec "$0" "$@""#];
    let steady = Steady::start_by("top-drops", &limited, &["300", "fast"]);
    let supervisor = Pid::from_raw(steady.running.pid() as i32).expect("a pid");
    kill_process(supervisor, Signal::STOP).expect("weft runs");
    let mut picture = Value::Null;
    wait_until("records are dropped", || {
        picture = json(&steady.top(&["--once", "--json", "--interval", "200ms"]));
        picture["drops"]["arena-full"].as_u64().is_some_and(|count| count > 0) && picture["state"] == "abandoned"
    });
    assert_eq!(picture["processes"][0]["dropped"], picture["drops"]["arena-full"]);
    kill_process(supervisor, Signal::CONT).expect("weft runs");
}

#[test]
fn wrong_uses_get_one_sentence() {
    let scratch = Scratch::new("top-wrong");
    let work = scratch.dir("work");
    for (arguments, status, part) in [
        (vec!["top"], 1, "weft top --once"),
        (vec!["top", "--once"], 1, "weft run -- PROGRAM"),
        (vec!["top", "--once", "nowhere"], 1, "nowhere: no such run directory"),
        (vec!["top", "--once", "."], 1, "nothing has been recorded yet"),
        (vec!["top", "--once", "--interval", "0"], 2, "use at least 50ms"),
        (vec!["top", "--json"], 2, "--once"),
    ] {
        let command = std::iter::once(product().as_os_str().to_owned()).chain(arguments.iter().map(Into::into));
        let outcome = Job::new(command, &work).run();
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert_eq!(outcome.status, status, "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
}
