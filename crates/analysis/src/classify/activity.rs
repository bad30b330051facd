//! What a thread does during an event, by the ids of a run.

use weftline_calls::{Activity, Family, FileKind, find};
use weftline_index::Dictionary;

/// In the order of their numbers.
const KINDS: [FileKind; 6] =
    [FileKind::Content, FileKind::Pipe, FileKind::Socket, FileKind::Terminal, FileKind::Kernel, FileKind::Unknown];

/// Activities by name, category and file.
#[derive(Debug, Clone)]
pub(crate) struct Activities {
    /// By name: what a thread does during a call on each kind of file.
    names: Vec<[Option<Activity>; KINDS.len()]>,
    /// Categories of hooked calls.
    of_calls: Vec<bool>,
    files: Vec<FileKind>,
}

impl Activities {
    pub(crate) fn new(dictionary: &Dictionary) -> Activities {
        let of_name = |name: &str| {
            find(name).map_or([None; KINDS.len()], |call| KINDS.map(|kind| Activity::of(call.operation, kind)))
        };
        Activities {
            names: dictionary.names.iter().map(of_name).collect(),
            of_calls: dictionary.cats.iter().map(is_of_calls).collect(),
            files: dictionary.files.iter().map(|path| FileKind::of(path.as_bytes())).collect(),
        }
    }

    /// What a thread does during an event; nothing where it is no call, or one that takes no time of its own.
    #[inline]
    pub(crate) fn of(&self, name: u32, cat: u32, file: Option<u32>) -> Option<Activity> {
        if !self.of_calls[cat as usize] {
            return None;
        }
        let kind = file.map_or(FileKind::Unknown, |file| self.files[file as usize]);
        self.names[name as usize][kind as usize]
    }

    /// Whether events of a category are calls.
    pub(crate) fn is_of_calls(&self, cat: u32) -> bool {
        self.of_calls[cat as usize]
    }

    /// Whether a file has content of its own: it is no pipe, socket, terminal or file of the kernel.
    #[inline]
    pub(crate) fn has_content(&self, file: u32) -> bool {
        self.files[file as usize] == FileKind::Content
    }
}

/// Whether events of a category are hooked calls.
fn is_of_calls(cat: &str) -> bool {
    let lower = cat.to_lowercase();
    lower.contains("posix")
        || lower.contains("stdio")
        || Family::CALLS.iter().any(|family| family.category().eq_ignore_ascii_case(cat))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_the_order_of_their_numbers() {
        for (number, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }

    #[test]
    fn calls_are_told_by_name_and_category() {
        let mut dictionary = Dictionary::default();
        let names = ["read", "waitpid", "mine"].map(|name| dictionary.names.intern(name));
        let cats = ["POSIX", "PROCESS", "app"].map(|cat| dictionary.cats.intern(cat));
        let files = ["/data/x", "pipe:[1]"].map(|file| dictionary.files.intern(file));
        let activities = Activities::new(&dictionary);
        let check = |name: usize, cat: usize, file: Option<usize>, expected: Option<Activity>| {
            assert_eq!(activities.of(names[name], cats[cat], file.map(|file| files[file])), expected);
        };
        check(0, 0, Some(0), Some(Activity::FileIo));
        check(0, 0, Some(1), Some(Activity::Pipe));
        check(1, 1, None, Some(Activity::Child));
        check(0, 2, Some(0), None);
        check(2, 0, Some(0), None);
        assert!(activities.has_content(files[0]) && !activities.has_content(files[1]));
    }
}
