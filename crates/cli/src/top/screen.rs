//! The terminal: raw mode, the alternate screen, keys. Leaving it, also by a panic, restores everything.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The other screen, no cursor, and no line that goes on in the next one.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// What the terminal was set to, while it is ours.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal, taken over. Dropping it gives it back.
pub(crate) struct Screen(());

/// Whether there is a terminal to draw on and to read keys from.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn enter() -> io::Result<Screen> {
        let usual = std::panic::take_hook();
        // The release build aborts on a panic, so no destructor would run.
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            usual(panic);
        }));
        take()?;
        Ok(Screen(()))
    }

    /// Gives the terminal back while `f` runs.
    pub(crate) fn aside(&self, f: impl FnOnce()) -> io::Result<()> {
        give_back();
        f();
        take()
    }

    /// Columns and lines.
    pub(crate) fn size(&self) -> (usize, usize) {
        terminal_size::terminal_size().map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)))
    }

    /// Draws all lines at once; there must be as many as the terminal has. Each is wiped before it is written: behind a line that fills
    /// the terminal the cursor stays on its last character, which wiping the rest would take away.
    pub(crate) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut text = String::from("\x1b[H");
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                text.push_str("\r\n");
            }
            text.push_str("\x1b[K");
            text.push_str(line);
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// What was typed, waiting so long for it; nothing when the time is over. An error says that the terminal is gone.
    pub(crate) fn read(&self, patience: Duration) -> io::Result<Vec<u8>> {
        let stdin = io::stdin();
        let mut waited = [PollFd::new(&stdin, PollFlags::IN)];
        let patience = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        match poll(&mut waited, Some(&patience)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut buffer = [0; 256];
        match rustix::io::read(&stdin, &mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(buffer[..length].to_vec()),
            Err(Errno::INTR | Errno::AGAIN) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
        // What was there before is behind the one of `enter`, which does nothing to a terminal that is given back.
    }
}

fn take() -> io::Result<()> {
    let stdin = io::stdin();
    let before = tcgetattr(&stdin)?;
    let mut raw = before.clone();
    raw.make_raw();
    tcsetattr(&stdin, OptionalActions::Drain, &raw)?;
    if let Ok(mut kept) = BEFORE.lock() {
        *kept = Some(before);
    }
    let mut out = io::stdout().lock();
    out.write_all(ENTER.as_bytes())?;
    out.flush()
}

/// Does nothing when the terminal is not ours.
fn give_back() {
    let Some(before) = BEFORE.lock().ok().and_then(|mut kept| kept.take()) else { return };
    // If the terminal is gone, there is nothing to restore. Output first: it was made for the raw mode.
    let mut out = io::stdout();
    let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
    let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &before);
}
