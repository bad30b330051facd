//! What the user selected, and the keys that change it.

use weftline_drain::glance::picture::{Picture, Process};

/// The column that processes are sorted by, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sort {
    #[default]
    Cpu,
    Memory,
    Read,
    Write,
    Events,
}

/// What the screen shows besides numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) sort: Sort,
    /// Part of the name, or a pid.
    pub(crate) filter: String,
    /// The filter is being typed.
    pub(crate) typing: bool,
    pub(crate) paused: bool,
    pub(crate) help: bool,
    /// Processes above the first one that is shown.
    pub(crate) scroll: usize,
}

/// A key, or what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

/// What a key asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyAction {
    Nothing,
    Quit,
    Interrupted,
    Suspend,
}

impl View {
    /// Takes a key; `rows` are the processes that could be scrolled through.
    pub(crate) fn press(&mut self, key: Key, rows: usize) -> KeyAction {
        match key {
            Key::Interrupt => return KeyAction::Interrupted,
            Key::Suspend => return KeyAction::Suspend,
            Key::Escape => {
                if self.typing || !self.help {
                    self.filter.clear();
                }
                (self.typing, self.help) = (false, false);
            }
            Key::Enter => self.typing = false,
            Key::Backspace if self.typing => drop(self.filter.pop()),
            Key::Char(c) if self.typing => self.filter.push(c),
            Key::Char('q') if !self.help => return KeyAction::Quit,
            Key::Char('q') => self.help = false,
            Key::Char('c') => self.sort = Sort::Cpu,
            Key::Char('m') => self.sort = Sort::Memory,
            Key::Char('r') => self.sort = Sort::Read,
            Key::Char('w') => self.sort = Sort::Write,
            Key::Char('e') => self.sort = Sort::Events,
            Key::Char('p') => self.paused = !self.paused,
            Key::Char('?' | 'h') => self.help = !self.help,
            Key::Char('/') => {
                (self.typing, self.help) = (true, false);
                self.filter.clear();
            }
            Key::Up | Key::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            Key::Down | Key::Char('j') => self.scroll += 1,
            Key::PageUp => self.scroll = self.scroll.saturating_sub(10),
            Key::PageDown => self.scroll += 10,
            Key::Home => self.scroll = 0,
            Key::End => self.scroll = rows,
            Key::Backspace | Key::Char(_) => {}
        }
        self.scroll = self.scroll.min(rows.saturating_sub(1));
        KeyAction::Nothing
    }

    /// The processes to show, in their order.
    pub(crate) fn chosen<'p>(&self, picture: &'p Picture) -> Vec<&'p Process> {
        let wanted = self.filter.to_lowercase();
        let matches = |process: &&Process| {
            wanted.is_empty() || process.pid.to_string() == wanted || process.name.to_lowercase().contains(&wanted)
        };
        let mut rows: Vec<&Process> = picture.processes.iter().filter(matches).collect();
        let key = |process: &Process| match self.sort {
            Sort::Cpu => process.cpu_percent.unwrap_or(-1.0),
            Sort::Memory => process.rss_bytes.map_or(-1.0, |bytes| bytes as f64),
            Sort::Read => process.read(),
            Sort::Write => process.write(),
            Sort::Events => process.events_per_second,
        };
        rows.sort_by(|a, b| key(b).total_cmp(&key(a)).then_with(|| a.pid.cmp(&b.pid)));
        rows
    }
}

/// The keys in what a terminal sent. An escape at the end may begin a key whose rest comes later; then `rest` holds it.
pub(crate) fn keys(rest: &mut Vec<u8>, input: &[u8]) -> Vec<Key> {
    rest.extend_from_slice(input);
    let bytes = std::mem::take(rest);
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let left = &bytes[at..];
        let (key, length) = match left {
            [0x1b] if !input.is_empty() => {
                rest.extend_from_slice(left);
                break;
            }
            [0x1b, b'[' | b'O', tail @ ..] => match tail.iter().position(|byte| (0x40..0x7f).contains(byte)) {
                Some(end) => (sequence(&tail[..=end]), end + 3),
                None if tail.len() < 16 && !input.is_empty() => {
                    rest.extend_from_slice(left);
                    break;
                }
                None => (None, left.len()),
            },
            [0x1b, ..] => (Some(Key::Escape), 1),
            [b'\r' | b'\n', ..] => (Some(Key::Enter), 1),
            [0x7f | 0x08, ..] => (Some(Key::Backspace), 1),
            [0x03 | 0x1c, ..] => (Some(Key::Interrupt), 1),
            [0x1a, ..] => (Some(Key::Suspend), 1),
            [0..0x20, ..] => (None, 1),
            _ => match first_char(left) {
                Some(c) => (Some(Key::Char(c)), c.len_utf8()),
                None if left.len() < length_of_char(left[0]) && !input.is_empty() => {
                    rest.extend_from_slice(left);
                    break;
                }
                None => (None, 1),
            },
        };
        found.extend(key);
        at += length;
    }
    found
}

/// Bytes of a character that begins like this; 1 where none does.
fn length_of_char(first: u8) -> usize {
    match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

fn first_char(bytes: &[u8]) -> Option<char> {
    let length = (1..=bytes.len().min(4)).find(|length| std::str::from_utf8(&bytes[..*length]).is_ok())?;
    std::str::from_utf8(&bytes[..length]).ok()?.chars().next()
}

/// The key of a control sequence without its beginning.
fn sequence(tail: &[u8]) -> Option<Key> {
    match tail {
        b"A" => Some(Key::Up),
        b"B" => Some(Key::Down),
        b"H" | b"1~" | b"7~" => Some(Key::Home),
        b"F" | b"4~" | b"8~" => Some(Key::End),
        b"5~" => Some(Key::PageUp),
        b"6~" => Some(Key::PageDown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_understood() {
        let check = |parts: &[&[u8]], expected: &[Key]| {
            let mut rest = Vec::new();
            let found: Vec<Key> = parts.iter().flat_map(|part| keys(&mut rest, part)).collect();
            assert_eq!(found, expected, "{parts:?}");
            assert!(rest.is_empty(), "{rest:?}");
        };
        check(&[b"q/\r"], &[Key::Char('q'), Key::Char('/'), Key::Enter]);
        check(&[b"\x1b[A\x1bOB\x1b[5~\x1b[6~"], &[Key::Up, Key::Down, Key::PageUp, Key::PageDown]);
        check(&[b"\x1b", b"[", b"B"], &[Key::Down]);
        // Nothing came behind it: the key itself.
        check(&[b"\x1b", b""], &[Key::Escape]);
        check(&["ü€".as_bytes()], &[Key::Char('ü'), Key::Char('€')]);
        check(&[b"\xe2", b"\x82\xac"], &[Key::Char('€')]);
        check(&[b"\xff\xff\xff\xff\x07x"], &[Key::Char('x')]);
        check(&[b"\x1b[1;5C\x7f\x03\x1a"], &[Key::Backspace, Key::Interrupt, Key::Suspend]);
        check(&[b"\x1b[99999999999999999999999999999999"], &[]);
    }

    #[test]
    fn keys_change_the_view() {
        let mut view = View::default();
        for c in "/cat".chars() {
            assert_eq!(view.press(Key::Char(c), 5), KeyAction::Nothing);
        }
        view.press(Key::Backspace, 5);
        assert!(view.typing && view.filter == "ca", "{view:?}");
        view.press(Key::Enter, 5);
        view.press(Key::Char('w'), 5);
        for _ in 0..9 {
            view.press(Key::Down, 5);
        }
        assert_eq!(view, View { sort: Sort::Write, filter: "ca".into(), scroll: 4, ..View::default() });
        view.press(Key::Char('?'), 5);
        assert_eq!(view.press(Key::Char('q'), 5), KeyAction::Nothing, "leaves the help first");
        assert_eq!(view.press(Key::Char('q'), 5), KeyAction::Quit);
        view.press(Key::Escape, 0);
        assert_eq!((view.filter.as_str(), view.scroll), ("", 0));
        assert_eq!(view.press(Key::Interrupt, 5), KeyAction::Interrupted);
    }
}
