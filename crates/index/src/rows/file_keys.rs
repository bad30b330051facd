//! Finds the file of an event: the meaning of its hash at that place in the trace.
//!
//! Hashes of DFTracer 1 collide, across files and within one: a definition applies up to the next one, and only in its own file. So the
//! key of a file is its hash together with the path that it means here. If a hash is used before its file defines it, the key holds the trace file, and
//! the path is resolved later ([`crate::pipeline`]). Our own hashes are long enough to mean the same everywhere.

use crate::dictionary::Strings;

/// Between a hash and what it means. No hash contains it: they are digits, or text that DFTracer made of digits.
const BETWEEN: char = '\0';
/// Behind that: it is the number of a file, not a path.
const OPEN: char = '\u{1}';

/// The meaning of a key's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning<'k> {
    /// Whatever the hash means anywhere.
    Everywhere,
    /// This path.
    Path(&'k str),
    /// What the file of that number says elsewhere.
    Open(usize),
}

/// The hash of a key, and what it means.
pub(crate) fn meaning_of(key: &str) -> (&str, Meaning<'_>) {
    let Some((hash, meaning)) = key.split_once(BETWEEN) else { return (key, Meaning::Everywhere) };
    let file = meaning.strip_prefix(OPEN).and_then(|number| number.parse().ok());
    (hash, file.map_or(Meaning::Path(meaning), Meaning::Open))
}

/// The key of a hash that means a path.
pub(crate) fn key_of(hash: &str, path: &str) -> String {
    format!("{hash}{BETWEEN}{path}")
}

/// The key of a hash that is used before its file defines it.
pub(crate) fn open_key(hash: &str, file: usize) -> String {
    format!("{hash}{BETWEEN}{OPEN}{file}")
}

/// The keys that a collector has met.
#[derive(Default)]
pub(crate) struct FileKeys {
    pub keys: Strings,
    /// The hashes of this stretch of a file, and the key of each.
    here: Strings,
    meant: Vec<u32>,
    file: usize,
    own: bool,
}

impl FileKeys {
    pub(super) fn begin(&mut self, file: usize) {
        self.file = file;
        if !self.here.is_empty() {
            self.here = Strings::default();
            self.meant.clear();
        }
    }

    pub(super) fn set_own(&mut self, own: bool) {
        self.own = own;
    }

    /// The key of a hash that stands here.
    #[inline]
    pub(super) fn key(&mut self, hash: &str) -> u32 {
        if self.own {
            return self.keys.intern(hash);
        }
        let place = self.here.intern(hash) as usize;
        if let Some(key) = self.meant.get(place) {
            return *key;
        }
        // A key of its own for each stretch: what stood before differs.
        self.keys.push(&open_key(hash, self.file));
        let key = self.keys.len() as u32 - 1;
        self.meant.push(key);
        key
    }

    /// The key of a hash that means the same everywhere.
    pub(super) fn everywhere(&mut self, hash: &str) -> u32 {
        self.keys.intern(hash)
    }

    /// From here on a hash means a path. The file in which it does; nothing where that is so everywhere.
    pub(super) fn define(&mut self, hash: &str, path: &str) -> Option<usize> {
        if self.own {
            return None;
        }
        let key = self.keys.intern(&key_of(hash, path));
        let place = self.here.intern(hash) as usize;
        match self.meant.get_mut(place) {
            Some(meant) => *meant = key,
            None => self.meant.push(key),
        }
        Some(self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_what_they_were_made_of() {
        let check = |key: &str, expected| assert_eq!(meaning_of(key), expected, "{key:?}");
        check("42", ("42", Meaning::Everywhere));
        check(&key_of("42", "/p/one"), ("42", Meaning::Path("/p/one")));
        check(&key_of("42", ""), ("42", Meaning::Path("")));
        check(&open_key("42", 7), ("42", Meaning::Open(7)));
    }

    #[test]
    fn a_definition_counts_from_where_it_stands() {
        let mut files = FileKeys::default();
        files.begin(3);
        let before = files.key("42");
        assert_eq!(files.define("42", "/one"), Some(3));
        let one = files.key("42");
        files.define("42", "/two");
        let two = files.key("42");
        let keys: Vec<_> = [before, one, two].map(|key| files.keys.get(key).to_owned()).into();
        assert_eq!(keys, [open_key("42", 3), key_of("42", "/one"), key_of("42", "/two")]);
        files.begin(3);
        assert_ne!(files.key("42"), before, "another stretch, behind other definitions");
        files.begin(4);
        files.set_own(true);
        assert_eq!((files.define("42", "/one"), files.key("42")), (None, files.keys.intern("42")));
    }
}
