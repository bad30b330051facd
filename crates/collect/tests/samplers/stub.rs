//! A stub tree, and a sink that remembers.

use std::path::{Path, PathBuf};

use weftline_collect::roots::Roots;
use weftline_collect::sample::{Fact, Facts, Interval, Sink, Subject, Value, Values};

/// One second; the first ends at second one.
pub(crate) fn second(number: i64) -> Interval {
    Interval { start_ns: (number - 1) * 1_000_000_000, end_ns: number * 1_000_000_000 }
}

/// A directory that stands for a machine.
pub(crate) struct Stub {
    directory: tempfile::TempDir,
}

impl Stub {
    pub(crate) fn new() -> Stub {
        let directory = tempfile::tempdir().expect("temporary directory");
        let stub = Stub { directory };
        stub.make("proc");
        stub.make("sys");
        stub
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn make(&self, name: &str) {
        std::fs::create_dir_all(self.path(name)).expect("directory made");
    }

    /// Writes a file in place, so that those who keep it open see it.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directory made");
        std::fs::write(path, content).expect("file written");
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots::under(self.directory.path())
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }
}

/// A value that owns its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kept {
    Number(f64),
    Text(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) subject: Subject,
    pub(crate) category: String,
    pub(crate) name: String,
    pub(crate) at: Interval,
    pub(crate) values: Vec<(String, Kept)>,
}

/// Remembers what it is given.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) counters: Vec<Sample>,
    pub(crate) metadata: Vec<Sample>,
}

fn kept(values: Facts<'_>) -> Vec<(String, Kept)> {
    let own = |value: &Fact<'_>| match value {
        Fact::Number(Value::Unsigned(value)) => Kept::Number(*value as f64),
        Fact::Number(Value::Signed(value)) => Kept::Number(*value as f64),
        Fact::Number(Value::Float(value)) => Kept::Number(*value),
        Fact::Text(value) => Kept::Text((*value).to_owned()),
    };
    let values: Vec<(String, Kept)> = values.iter().map(|(name, value)| ((*name).to_owned(), own(value))).collect();
    for (place, (name, value)) in values.iter().enumerate() {
        assert!(!name.is_empty(), "a value without a name");
        assert!(values[..place].iter().all(|(known, _)| known != name), "{name} twice");
        if let Kept::Number(number) = value {
            assert!(number.is_finite(), "{name} is {number}");
        }
    }
    values
}

impl Sink for Memory {
    fn counter(&mut self, subject: Subject, category: &'static str, name: &str, at: Interval, values: Values<'_>) {
        let values: Vec<_> = values.iter().map(|(key, value)| (*key, Fact::Number(*value))).collect();
        let values = kept(&values);
        let group = weftline_format::metrics::group(category, name);
        for (key, _) in &values {
            let known = group.and_then(|group| group.metric(key, true));
            assert!(known.is_some(), "{category} {name} {key} has no unit in weftline_format::metrics");
        }
        self.counters.push(Sample { subject, category: category.to_owned(), name: name.to_owned(), at, values });
    }

    fn metadata(&mut self, subject: Subject, name: &str, at_ns: i64, facts: Facts<'_>) {
        let at = Interval { start_ns: at_ns, end_ns: at_ns };
        self.metadata.push(Sample { subject, category: String::new(), name: name.to_owned(), at, values: kept(facts) });
    }
}

impl Memory {
    /// The last sample of a category and name.
    pub(crate) fn last(&self, category: &str, name: &str) -> Option<&Sample> {
        self.counters.iter().rev().find(|sample| sample.category == category && sample.name == name)
    }

    /// A number of the last sample of a category and name.
    pub(crate) fn number(&self, category: &str, name: &str, value: &str) -> Option<f64> {
        self.last(category, name)?.number(value)
    }
}

impl Sample {
    pub(crate) fn number(&self, value: &str) -> Option<f64> {
        self.values.iter().find_map(|(name, kept)| match kept {
            Kept::Number(number) if name == value => Some(*number),
            _ => None,
        })
    }

    pub(crate) fn text(&self, value: &str) -> Option<&str> {
        self.values.iter().find_map(|(name, kept)| match kept {
            Kept::Text(text) if name == value => Some(text.as_str()),
            _ => None,
        })
    }
}
