//! `weft top`: watches a run in progress.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use weftline_collect::usage::{Sampler, Usage as Used};
use weftline_drain::glance::picture::{Picture, State, Usage};
use weftline_drain::glance::window::{Frame, Window};
use weftline_drain::glance::{RunState, Seen};
use weftline_drain::{DrainError, Glance};
use weftline_format::manifest::RECORD_DIR;

use crate::args::TopArgs;
use crate::rundir;
use crate::signals::{self, Caught, Signals};
use crate::terminal::{self, Paint, Terminal};
use crate::top::draw::draw;
use crate::top::screen::{self, Screen};
use crate::top::view::{KeyAction, View, keys};

/// Calls and files are those of so long.
const WINDOW: Duration = Duration::from_secs(5);
/// Between two looks: what a busy program records is in its arena for milliseconds only.
const LOOK: Duration = Duration::from_millis(25);
/// A look may take this part of the time, so that watching costs little however much there is to see.
const LOOK_SHARE: u32 = 20;
/// The first picture comes sooner.
const FIRST: Duration = Duration::from_millis(300);
/// A run that has just been started gets so long to begin.
const PATIENCE: Duration = Duration::from_secs(3);
/// Rows of each table with `--once`.
const ROWS: usize = 10;

/// Runs the verb.
pub(crate) fn execute(args: &TopArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    if !args.once && !screen::is_there() {
        anyhow::bail!("weft top needs a terminal; in scripts use `weft top --once`");
    }
    let run = match &args.run {
        Some(run) => run.clone(),
        None => newest_in_progress()?,
    };
    anyhow::ensure!(run.is_dir(), "{}: no such run directory", run.display());
    let mut watch = Watch::new(open(&run)?, &run);
    if args.once { once(args, &mut watch, terminal.stdout()) } else { live(args, &mut watch, terminal.stdout()) }
}

/// The newest run in progress; else the newest run, to say why it cannot be watched.
fn newest_in_progress() -> anyhow::Result<PathBuf> {
    let newest = rundir::newest()?;
    // One that has only just been started is not open yet.
    let begins = !newest.join(RECORD_DIR).exists();
    Ok(if begins { newest } else { newest_open(Path::new(rundir::RUNS))?.unwrap_or(newest) })
}

/// The newest run in progress of a directory.
fn newest_open(runs: &Path) -> std::io::Result<Option<PathBuf>> {
    let is_open = |run: &Path| {
        std::fs::read_dir(run.join(RECORD_DIR)).is_ok_and(|entries| {
            entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "live"))
        })
    };
    let runs = std::fs::read_dir(runs)?.flatten().map(|entry| entry.path());
    Ok(rundir::newest_of(runs.filter(|run| is_open(run))))
}

fn open(run: &Path) -> anyhow::Result<Glance> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Glance::open(run) {
            Err(DrainError::NothingToWatch { .. }) if begins(run) && Instant::now() < deadline => {
                std::thread::sleep(LOOK);
            }
            other => return Ok(other?),
        }
    }
}

/// Whether nothing is known about the run yet.
fn begins(run: &Path) -> bool {
    rundir::is_run(run) && std::fs::read_dir(run.join(RECORD_DIR)).map_or(true, |mut entries| entries.next().is_none())
}

/// A run that is looked at.
struct Watch {
    glance: Glance,
    run: String,
    kernel: Sampler,
    window: Window,
    frame: Frame,
    last: Option<Seen>,
}

impl Watch {
    fn new(glance: Glance, run: &Path) -> Watch {
        let run = run.file_name().unwrap_or(run.as_os_str()).to_string_lossy().into_owned();
        let window = Window::new(WINDOW.as_nanos() as u64);
        Watch { glance, run, kernel: Sampler::default(), window, frame: Frame::default(), last: None }
    }

    /// Reads what is new; whether the run goes on, and how long to wait until the next look.
    fn look(&mut self) -> anyhow::Result<(bool, Duration)> {
        let before = Instant::now();
        let seen = self.glance.look()?;
        self.frame.add(&seen);
        let goes_on = seen.state != RunState::Ended;
        self.last = Some(seen);
        Ok((goes_on, LOOK.max(before.elapsed() * LOOK_SHARE)))
    }

    /// Reads the kernel's numbers for the first time; nothing from before counts.
    fn begin(&mut self) -> anyhow::Result<()> {
        self.look()?;
        self.frame = Frame::default();
        let pids: Vec<u32> = self.pids();
        self.kernel.sample(pids.into_iter());
        Ok(())
    }

    fn pids(&self) -> Vec<u32> {
        self.last.iter().flat_map(|seen| seen.processes.iter().map(|process| process.pid)).collect()
    }

    /// Ends the interval.
    fn picture(&mut self) -> Option<Picture> {
        self.window.push(std::mem::take(&mut self.frame));
        let pids = self.pids();
        let used = self.kernel.sample(pids.into_iter()).into_iter().map(|(pid, used)| {
            let Used { cpu_ns, rss_bytes, read_bytes, write_bytes } = used;
            (pid, Usage { cpu_ns, rss_bytes, read_bytes, write_bytes })
        });
        let usage = used.collect();
        self.last.as_ref().map(|seen| Picture::new(&self.run, seen, &self.window, &usage, rundir::now_ns()))
    }
}

fn once(args: &TopArgs, watch: &mut Watch, paint: Paint) -> anyhow::Result<ExitCode> {
    watch.begin()?;
    let end = Instant::now() + args.interval;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let (goes_on, pause) = watch.look()?;
        if left.is_zero() || !goes_on {
            break;
        }
        std::thread::sleep(pause.min(left));
    }
    let picture = watch.picture().context("nothing was seen")?;
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &picture)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", text(&picture, paint))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A picture as text that may go anywhere.
fn text(picture: &Picture, paint: Paint) -> String {
    let per_second = |value: f64| terminal::bytes(value.round() as u64);
    let rows = |heading: &[&str], list: Vec<Vec<String>>| {
        let mut rows = vec![heading.iter().map(|word| (*word).to_owned()).collect()];
        rows.extend(list);
        terminal::table(&rows, "  ")
    };
    let dropped: u64 = picture.drops.values().sum();
    let state = match picture.state {
        State::Running => "running",
        State::Unsupervised => "no supervisor",
        State::Abandoned => "supervisor gone",
        State::Ended => "ended",
    };
    let mut out = format!(
        "{}  {state}, {}\n{}, {} ended; {} events/s, {} of them seen; {} dropped\n",
        paint.strong(&terminal::printable(&picture.run)),
        terminal::time(picture.elapsed_ns),
        terminal::counted(picture.running as u64, "process", "processes"),
        terminal::count(picture.ended),
        terminal::count(picture.events_per_second.round() as u64),
        terminal::percent_floor(picture.share_seen),
        terminal::count(dropped)
    );
    for note in &picture.notes {
        out.push_str(&format!("{}\n", terminal::printable(note)));
    }
    let chosen = View::default().chosen(picture);
    let processes = chosen.iter().take(ROWS).map(|process| {
        vec![
            terminal::printable(&process.name),
            process.pid.to_string(),
            process.cpu_percent.map_or("-".into(), terminal::tenths),
            process.rss_bytes.map_or("-".into(), terminal::bytes),
            per_second(process.read()),
            per_second(process.write()),
            terminal::count(process.events_per_second.round() as u64),
        ]
    });
    out.push_str(&rows(&["process", "pid", "cpu %", "rss", "read/s", "write/s", "events/s"], processes.collect()));
    for (what, list) in [("call", &picture.calls), ("file", &picture.files)] {
        let hot = list.iter().take(ROWS).map(|heat| {
            vec![
                terminal::printable(&heat.name),
                terminal::percent(heat.time_share),
                terminal::count(heat.per_second.round() as u64),
                per_second(heat.read_bytes_per_second),
                per_second(heat.write_bytes_per_second),
            ]
        });
        out.push_str(&rows(&[what, "time", "calls/s", "read/s", "write/s"], hot.collect()));
    }
    out
}

fn live(args: &TopArgs, watch: &mut Watch, paint: Paint) -> anyhow::Result<ExitCode> {
    // Signals wait until the loop has time, so that the terminal is always given back.
    let signals = Signals::block();
    let screen = Screen::enter().context("cannot use the terminal")?;
    watch.begin()?;
    let mut view = View::default();
    let mut shown: Option<Picture> = None;
    let mut typed = Vec::new();
    let mut size = screen.size();
    let mut goes_on = true;
    let mut next_look = Instant::now() + LOOK.min(args.interval);
    let mut next_picture = Instant::now() + FIRST.min(args.interval);
    loop {
        let now = Instant::now();
        let mut changed = false;
        if goes_on && now >= next_look.min(next_picture) {
            let (still, pause) = watch.look()?;
            goes_on = still;
            next_look = now + pause.min(args.interval);
        }
        if goes_on && now >= next_picture {
            next_picture = now + args.interval;
            let picture = watch.picture();
            if !view.paused || shown.is_none() {
                shown = picture;
                changed = true;
            }
        }
        if !goes_on && shown.as_ref().is_none_or(|picture| picture.state != State::Ended) {
            // The last picture stays; of a run that ended before there was one, what is known.
            shown = shown.or_else(|| watch.picture()).map(|picture| Picture { state: State::Ended, ..picture });
            if let (Some(shown), Some(seen)) = (&mut shown, &watch.last) {
                shown.drops.clone_from(&seen.drops);
                (shown.running, shown.ended) = (0, seen.ended);
            }
            changed = true;
        }
        let size_now = screen.size();
        if changed || size_now != size {
            size = size_now;
            show(&screen, shown.as_ref(), &view, size, paint)?;
        }
        let until = if goes_on { next_look.min(next_picture) } else { Instant::now() + LOOK };
        // A terminal that is gone takes no farewell.
        let Ok(input) = screen.read(until.saturating_duration_since(Instant::now())) else {
            return Ok(ExitCode::SUCCESS);
        };
        let rows = shown.as_ref().map_or(0, |picture| view.chosen(picture).len());
        let pressed = if input.is_empty() && typed.is_empty() { Vec::new() } else { keys(&mut typed, &input) };
        for key in &pressed {
            match view.press(*key, rows) {
                KeyAction::Nothing => {}
                KeyAction::Quit => return Ok(ExitCode::SUCCESS),
                KeyAction::Interrupted => return Ok(ExitCode::from(130)),
                KeyAction::Suspend => screen.aside(signals::stop_self)?,
            }
        }
        if !pressed.is_empty() {
            show(&screen, shown.as_ref(), &view, size, paint)?;
        }
        while let Caught::Sent(signal) = signals.wait(Duration::ZERO) {
            match signal {
                libc::SIGTSTP => screen.aside(signals::stop_self)?,
                libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT => {
                    return Ok(ExitCode::from(128 + signal as u8));
                }
                _ => {}
            }
        }
    }
}

fn show(
    screen: &Screen,
    shown: Option<&Picture>,
    view: &View,
    size: (usize, usize),
    paint: Paint,
) -> anyhow::Result<()> {
    if let Some(picture) = shown {
        screen.draw(&draw(picture, view, size.0, size.1, paint))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the runs that go on, the one that began last, whatever it is called.
    #[test]
    fn the_newest_open_run_is_watched() {
        let place = tempfile::tempdir().expect("a directory");
        let runs = [("b", 1), ("a", 2), ("c", 3)].map(|(name, ns)| rundir::tests::begun(place.path(), name, ns));
        assert_eq!(newest_open(place.path()).expect("listed"), None);
        for run in &runs[..2] {
            std::fs::create_dir(run.join(RECORD_DIR)).expect("made");
            std::fs::write(run.join(RECORD_DIR).join("n-1-2.live"), "{}").expect("written");
        }
        assert_eq!(newest_open(place.path()).expect("listed").as_ref(), Some(&runs[1]));
    }
}
