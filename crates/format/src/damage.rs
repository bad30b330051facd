//! Damage of a trace. Reading never fails because of damage: the reader reads what it can and lists the rest.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where something was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// That many bytes into the file.
    File(u64),
    /// That many bytes into the text that the whole file inflates to.
    Inflated(u64),
    /// That many bytes into the text of the member that starts `member` bytes into the file.
    Member {
        /// Where the member starts.
        member: u64,
        /// Bytes into its text.
        text: u64,
    },
}

impl Place {
    /// That many bytes further on.
    #[must_use]
    pub fn shifted(self, by: u64) -> Place {
        match self {
            Place::File(at) => Place::File(at + by),
            Place::Inflated(at) => Place::Inflated(at + by),
            Place::Member { member, text } => Place::Member { member, text: text + by },
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(at) => write!(f, "byte {at}"),
            Place::Inflated(at) => write!(f, "byte {at} of the inflated text"),
            Place::Member { member, text } => write!(f, "byte {text} of the member at {member}"),
        }
    }
}

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// A member ends with the file before its own end; its first events may have been read.
    TornMember,
    /// Compressed data that make no sense, or whose checksum is wrong.
    BadGzip,
    /// Text that is no event.
    BadLine,
    /// An event that ends with the text before its own end.
    CutEvent,
    /// An event whose time is missing or cannot be used; it is kept, and no span.
    BadTime,
    /// Members that should be between others and are not there.
    MissingSequence,
    /// A member that is there twice.
    RepeatedSequence,
    /// A member whose header tells another number of events than it holds.
    WrongCount,
}

impl What {
    /// The words for it.
    pub fn describe(self) -> &'static str {
        match self {
            What::TornMember => "torn member",
            What::BadGzip => "damaged gzip data",
            What::BadLine => "not an event",
            What::CutEvent => "cut event",
            What::BadTime => "no usable time",
            What::MissingSequence => "missing members",
            What::RepeatedSequence => "repeated member",
            What::WrongCount => "wrong event count",
        }
    }
}

/// One thing that was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// In which file, where more than one was read.
    pub file: Option<PathBuf>,
    /// Where.
    pub place: Place,
    /// What.
    pub what: What,
    /// Bytes that could not be used, of the kind that `place` counts.
    pub lost: u64,
    /// Why, in words.
    pub note: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        write!(f, "{}: {}", self.place, self.what.describe())?;
        if !self.note.is_empty() {
            write!(f, " ({})", self.note)?;
        }
        Ok(())
    }
}

/// All that was wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// The first [`Damage::LISTED`] flaws.
    pub flaws: Vec<Flaw>,
    /// Flaws that were counted but not listed.
    pub unlisted: u64,
    /// Bytes that could not be used, all flaws together.
    pub lost: u64,
}

impl Damage {
    /// A file of garbage has as many flaws as lines; more than this are not listed.
    pub const LISTED: usize = 1000;

    /// Whether nothing was wrong.
    pub fn is_empty(&self) -> bool {
        self.flaws.is_empty()
    }

    /// How many things were wrong.
    pub fn len(&self) -> u64 {
        self.flaws.len() as u64 + self.unlisted
    }

    /// Adds one. Bad text that follows bad text directly is one flaw, not many.
    pub fn add(&mut self, place: Place, what: What, lost: u64, note: impl Into<String>) {
        self.lost += lost;
        if let Some(last) = self.flaws.last_mut()
            && self.unlisted == 0
            && let Some(gap) = gap_between(last, place, what)
        {
            last.lost += gap + lost;
            self.lost += gap;
            return;
        }
        if self.flaws.len() < Damage::LISTED {
            self.flaws.push(Flaw { file: None, place, what, lost, note: note.into() });
        } else {
            self.unlisted += 1;
        }
    }

    /// Takes up what was wrong elsewhere in the same file.
    pub fn join(&mut self, other: Damage) {
        self.lost += other.lost;
        self.unlisted += other.unlisted;
        for flaw in other.flaws {
            if self.flaws.len() < Damage::LISTED {
                self.flaws.push(flaw);
            } else {
                self.unlisted += 1;
            }
        }
    }

    /// Adds what was wrong with another file.
    pub fn absorb(&mut self, other: Damage, file: &Path) {
        self.lost += other.lost;
        self.unlisted += other.unlisted;
        for mut flaw in other.flaws {
            if self.flaws.len() < Damage::LISTED {
                flaw.file.get_or_insert_with(|| file.to_owned());
                self.flaws.push(flaw);
            } else {
                self.unlisted += 1;
            }
        }
    }
}

/// The bytes between two stretches of bad text that follow each other, at most a line end.
fn gap_between(last: &Flaw, place: Place, what: What) -> Option<u64> {
    let textual = |what| matches!(what, What::BadLine | What::CutEvent);
    let (start, at) = match (last.place, place) {
        (Place::File(a), Place::File(b)) | (Place::Inflated(a), Place::Inflated(b)) => (a, b),
        (Place::Member { member: m, text: a }, Place::Member { member: n, text: b }) if m == n => (a, b),
        _ => return None,
    };
    let gap = at.checked_sub(start + last.lost)?;
    (textual(last.what) && textual(what) && gap <= 2).then_some(gap)
}
