//! Classifies events: I/O category, size, size bin, effective category, and whether to leave one out.
//!
//! All of it follows from strings (names, categories, paths), so [`Classes`] classifies every string of a run once and looks it up by id;
//! kernels do no string work per row. The table of calls (`weftline_calls`) has the meaning of calls, with DFAnalyzer's categories; the
//! [`Rules`] are data.

mod activity;
mod size;

use rustc_hash::FxHashMap;
use weftline_calls::{Activity, Flow, Operation, find};
use weftline_index::Dictionary;

pub(crate) use activity::Activities;
pub use size::{SIZE_BINS, SizeKind, bin_label, bin_of, field_integer};
pub use weftline_calls::IoCat;

/// How events are classified. All of it can be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Categories (lower case) whose events are I/O calls; those of others are [`IoCat::Other`], whatever their names.
    pub io_categories: Vec<String>,
    /// A path that contains the first text appends the second to an I/O category, in this order.
    pub suffixes: Vec<(String, String)>,
    /// Events about paths that contain one of these are left out.
    pub ignored_files: Vec<String>,
    /// Events with one of these names are left out.
    pub ignored_names: Vec<String>,
    /// Events whose name contains one of these are left out; `.` stands for any one character.
    pub ignored_patterns: Vec<String>,
}

/// Paths that belong to the system and to interpreters.
pub const IGNORED_FILES: [&str; 12] = [
    "/dev/",
    "/etc/",
    "/gapps/python",
    "/lib/python",
    "/proc/",
    "/software/",
    "/sys/",
    "/usr/lib",
    "/usr/tce/backend",
    "/usr/tce/packages",
    "/venv",
    "__pycache__",
];

/// Calls that only set DLIO up.
pub const IGNORED_NAMES: [&str; 4] =
    ["DLIOBenchmark.__init__", "DLIOBenchmark.initialize", "FileStorage.__init__", "TorchDataset.__init__"];

/// Calls of frameworks that wrap others.
pub const IGNORED_PATTERNS: [&str; 18] = [
    "Checkpointing.__init__",
    "Checkpointing.finalize",
    "Checkpointing.get_tensor",
    "DataLoader.__init__",
    "DataLoader.finalize",
    "DataLoader.get_tensor",
    "DataLoader.next",
    "Framework.get_loader",
    "Framework.init_loader",
    "Framework.is_nativeio_available",
    "Framework.trace_object",
    "Reader.__init__",
    "Reader.load_index",
    "Reader.next",
    "Reader.read_index",
    ".save_state",
    "checkpoint_end_",
    "checkpoint_start_",
];

/// What a path appends to the category of its I/O.
pub const SUFFIXES: [(&str, &str); 4] =
    [("/data", "_reader"), ("/checkpoint", "_checkpoint"), ("/lustre", "_lustre"), ("/ssd", "_ssd")];

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            io_categories: owned(&["posix", "stdio"]),
            suffixes: SUFFIXES.iter().map(|(part, suffix)| ((*part).to_owned(), (*suffix).to_owned())).collect(),
            ignored_files: owned(&IGNORED_FILES),
            ignored_names: owned(&IGNORED_NAMES),
            ignored_patterns: owned(&IGNORED_PATTERNS),
        }
    }
}

impl Rules {
    /// The same classes, but nothing is left out: what a report on all events uses.
    #[must_use]
    pub fn keeping_all(mut self) -> Rules {
        self.ignored_files.clear();
        self.ignored_names.clear();
        self.ignored_patterns.clear();
        self
    }

    fn ignores_file(&self, path: &str) -> bool {
        self.ignored_files.iter().any(|part| path.contains(part.as_str()))
    }

    fn ignores_name(&self, name: &str) -> bool {
        self.ignored_names.iter().any(|ignored| ignored == name)
            || self.ignored_patterns.iter().any(|pattern| contains_pattern(name, pattern))
    }

    /// Which suffixes a path appends, as bits.
    fn suffix_bits(&self, path: &str) -> u8 {
        let mut bits = 0;
        for (place, (part, _)) in self.suffixes.iter().take(8).enumerate() {
            bits |= u8::from(path.contains(part.as_str())) << place;
        }
        bits
    }
}

/// Whether a text contains a pattern in which `.` is any character.
pub fn contains_pattern(text: &str, pattern: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    pattern.is_empty()
        || text.windows(pattern.len()).any(|part| {
            part.iter().zip(&pattern).all(|(found, wanted)| (*wanted == '.' && *found != '\n') || found == wanted)
        })
}

/// What a call of this name does, in a category of I/O.
pub fn operation_of(name: &str) -> Operation {
    find(name).map_or(Operation::Other, |call| call.operation)
}

/// The classes of every id of a run.
#[derive(Debug, Clone)]
pub struct Classes {
    operations: Vec<Operation>,
    activities: Activities,
    open_like: Vec<bool>,
    close_like: Vec<bool>,
    ignored_name: Vec<bool>,
    ignored_file: Vec<bool>,
    file_bits: Vec<u8>,
    cats: Vec<CatClass>,
    /// Effective categories, by their id.
    labels: Vec<String>,
    suffix_texts: Vec<String>,
    label_ids: FxHashMap<String, u32>,
}

#[derive(Debug, Clone)]
struct CatClass {
    /// It is exactly one of [`Rules::io_categories`].
    is_io: bool,
    /// It contains one of them, so that paths append suffixes.
    takes_suffix: bool,
    /// Its effective categories, by suffix bits.
    effective: Vec<u32>,
}

impl Classes {
    /// Looks at all strings of a run.
    pub fn new(rules: &Rules, dictionary: &Dictionary) -> Classes {
        let mut classes = Classes {
            operations: Vec::with_capacity(dictionary.names.len()),
            activities: Activities::new(dictionary),
            open_like: Vec::with_capacity(dictionary.names.len()),
            close_like: Vec::with_capacity(dictionary.names.len()),
            ignored_name: Vec::with_capacity(dictionary.names.len()),
            ignored_file: Vec::with_capacity(dictionary.files.len()),
            file_bits: Vec::with_capacity(dictionary.files.len()),
            cats: Vec::with_capacity(dictionary.cats.len()),
            labels: Vec::new(),
            suffix_texts: rules.suffixes.iter().take(8).map(|(_, suffix)| suffix.clone()).collect(),
            label_ids: FxHashMap::default(),
        };
        for name in dictionary.names.iter() {
            classes.operations.push(operation_of(name));
            let lower = name.to_lowercase();
            classes.open_like.push(lower.contains("open"));
            classes.close_like.push(lower.contains("close"));
            classes.ignored_name.push(rules.ignores_name(name));
        }
        let mut seen = [false; 256];
        seen[0] = true;
        for file in 0..dictionary.files.len() as u32 {
            let path = dictionary.path(file);
            classes.ignored_file.push(path.is_some_and(|path| rules.ignores_file(path)));
            let bits = path.map_or(0, |path| rules.suffix_bits(path));
            seen[usize::from(bits)] = true;
            classes.file_bits.push(bits);
        }
        for cat in dictionary.cats.iter() {
            let lower = cat.to_lowercase();
            let takes_suffix = rules.io_categories.iter().any(|part| lower.contains(part.as_str()));
            let highest = if takes_suffix { seen.iter().rposition(|seen| *seen).unwrap_or(0) } else { 0 };
            let effective = (0..=highest)
                .map(|bits| if seen[bits] { classes.label(&classes.with_suffixes(&lower, bits as u8)) } else { 0 })
                .collect();
            classes.cats.push(CatClass { is_io: rules.io_categories.contains(&lower), takes_suffix, effective });
        }
        classes
    }

    fn with_suffixes(&self, lower: &str, bits: u8) -> String {
        let mut label = lower.to_owned();
        for (place, suffix) in self.suffix_texts.iter().enumerate() {
            if bits & (1 << place) != 0 {
                label.push_str(suffix);
            }
        }
        label
    }

    fn label(&mut self, label: &str) -> u32 {
        if let Some(id) = self.label_ids.get(label) {
            return *id;
        }
        let id = self.labels.len() as u32;
        self.labels.push(label.to_owned());
        self.label_ids.insert(label.to_owned(), id);
        id
    }

    /// What an I/O call does, by its name and category.
    #[inline]
    pub fn operation(&self, cat: u32, name: u32) -> Operation {
        if self.cats[cat as usize].is_io { self.operations[name as usize] } else { Operation::Other }
    }

    /// The I/O category of an event by its name and category.
    #[inline]
    pub fn io_cat(&self, cat: u32, name: u32) -> IoCat {
        self.operation(cat, name).io_cat()
    }

    /// Where the size of an event comes from.
    #[inline]
    pub fn size_kind(&self, cat: u32, name: u32) -> SizeKind {
        match (self.cats[cat as usize].is_io, self.operations[name as usize].flow()) {
            (true, Flow::None) => SizeKind::None,
            (true, _) => SizeKind::Returned,
            (false, _) if self.open_like[name as usize] => SizeKind::Summed,
            (false, _) => SizeKind::Image,
        }
    }

    /// Whether a span of a program's own says again how large a sample is that another one has read: it closes that. DFAnalyzer counts both, and so do
    /// views.
    pub(crate) fn repeats_size(&self, cat: u32, name: u32) -> bool {
        !self.cats[cat as usize].is_io && self.close_like[name as usize]
    }

    /// What a thread does during an event, if it is a call.
    #[inline]
    pub(crate) fn activity(&self, cat: u32, name: u32, file: Option<u32>) -> Option<Activity> {
        self.activities.of(name, cat, file)
    }

    /// Whether events of a category are calls, of I/O or not.
    pub(crate) fn is_of_calls(&self, cat: u32) -> bool {
        self.activities.is_of_calls(cat)
    }

    /// Whether a file has content of its own: it is no pipe, socket, terminal or file of the kernel.
    pub(crate) fn has_content(&self, file: u32) -> bool {
        self.activities.has_content(file)
    }

    /// Whether events of a category are I/O calls.
    #[inline]
    pub fn is_io(&self, cat: u32) -> bool {
        self.cats[cat as usize].is_io
    }

    /// Whether the name is to be left out.
    #[inline]
    pub fn ignores_name(&self, name: u32) -> bool {
        self.ignored_name[name as usize]
    }

    /// Whether events about the file are to be left out.
    #[inline]
    pub fn ignores_file(&self, file: Option<u32>) -> bool {
        file.is_some_and(|file| self.ignored_file[file as usize])
    }

    /// The suffixes that a file appends, as bits.
    #[inline]
    pub fn suffix_bits(&self, file: Option<u32>) -> u8 {
        file.map_or(0, |file| self.file_bits[file as usize])
    }

    /// What of a file matters to the class of an event: its suffixes, or that the event is left out.
    #[inline]
    pub fn file_class(&self, file: Option<u32>) -> u32 {
        if self.ignores_file(file) { u32::MAX } else { u32::from(self.suffix_bits(file)) }
    }

    /// The effective category: lower case, with the suffixes of the file.
    #[inline]
    pub fn effective_cat(&self, cat: u32, suffix_bits: u8) -> u32 {
        let class = &self.cats[cat as usize];
        class.effective[if class.takes_suffix { usize::from(suffix_bits) } else { 0 }]
    }

    /// What an effective category is called.
    pub fn cat_label(&self, effective: u32) -> &str {
        &self.labels[effective as usize]
    }

    /// All effective categories.
    pub fn cat_labels(&self) -> &[String] {
        &self.labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_one_wildcard() {
        let check = |text: &str, pattern: &str, expected: bool| {
            assert_eq!(contains_pattern(text, pattern), expected, "{text} {pattern}");
        };
        check("TorchDataLoader.next", "DataLoader.next", true);
        check("DataLoader_next", "DataLoader.next", true);
        check("DataLoadernext", "DataLoader.next", false);
        check("x.save_state", ".save_state", true);
        check(".save_state", "..save_state", false);
        check("é.save_state", "..save_state", true);
    }

    #[test]
    fn every_id_has_its_class() {
        let mut dictionary = Dictionary::default();
        for name in ["read", "HDF5Reader.open", "stat64", "openat"] {
            dictionary.names.intern(name);
        }
        for cat in ["POSIX", "posix", "reader", "my_posix"] {
            dictionary.cats.intern(cat);
        }
        for path in ["/data/checkpoint/x", "/etc/passwd", "/ssd/a"] {
            dictionary.files.intern(path);
            dictionary.known.push(true);
        }
        let classes = Classes::new(&Rules::default(), &dictionary);
        assert_eq!((classes.io_cat(0, 0), classes.io_cat(2, 0)), (IoCat::Read, IoCat::Other));
        assert_eq!((classes.io_cat(1, 2), classes.io_cat(1, 3)), (IoCat::Metadata, IoCat::Metadata));
        assert_eq!(classes.size_kind(0, 0), SizeKind::Returned);
        assert_eq!((classes.size_kind(2, 1), classes.size_kind(2, 0)), (SizeKind::Summed, SizeKind::Image));
        let label = |cat, file| classes.cat_label(classes.effective_cat(cat, classes.suffix_bits(file)));
        assert_eq!(label(0, Some(0)), "posix_reader_checkpoint");
        assert_eq!((label(1, Some(2)), label(2, Some(0)), label(3, Some(2))), ("posix_ssd", "reader", "my_posix_ssd"));
        assert_eq!((label(0, None), classes.effective_cat(0, 0)), ("posix", classes.effective_cat(1, 0)));
        assert!(classes.ignores_file(Some(1)) && !classes.ignores_file(Some(0)) && !classes.ignores_file(None));
    }
}
