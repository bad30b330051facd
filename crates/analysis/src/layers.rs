//! Layers: sets of events that belong to one level of a job, and the metrics derived from each.

use std::borrow::Cow;

use weftline_calls::{Operation, find};

use crate::classify::IoCat;

/// A test of an event by its effective category, its name and its I/O category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// Always true.
    Every,
    /// The category is this.
    Cat(Cow<'static, str>),
    /// The category contains this.
    CatHas(&'static str),
    /// The category is this one, or one below it (`a`, `a.b`).
    CatBelow(Cow<'static, str>),
    /// The name is one of these.
    NameIn(&'static [&'static str]),
    /// The name contains this.
    NameHas(&'static str),
    /// The name starts with this.
    NameStarts(&'static str),
    /// The I/O category is one of these.
    Io(&'static [IoCat]),
    /// The name is that of a call which does one of these.
    Does(&'static [Operation]),
    /// All hold.
    All(&'static [Test]),
    /// One of them holds.
    Any(&'static [Test]),
    /// It does not hold.
    Not(&'static Test),
}

impl Test {
    /// Whether an event passes.
    pub fn holds(&self, cat: &str, name: &str, io_cat: IoCat) -> bool {
        match self {
            Test::Every => true,
            Test::Cat(wanted) => cat == wanted,
            Test::CatHas(part) => cat.contains(part),
            Test::CatBelow(above) => {
                cat.strip_prefix(above.as_ref()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
            Test::NameIn(names) => names.contains(&name),
            Test::NameHas(part) => name.contains(part),
            Test::NameStarts(part) => name.starts_with(part),
            Test::Io(wanted) => wanted.contains(&io_cat),
            Test::Does(wanted) => find(name).is_some_and(|call| wanted.contains(&call.operation)),
            Test::All(tests) => tests.iter().all(|test| test.holds(cat, name, io_cat)),
            Test::Any(tests) => tests.iter().any(|test| test.holds(cat, name, io_cat)),
            Test::Not(test) => !test.holds(cat, name, io_cat),
        }
    }

    /// The test in words, for documents.
    pub fn describe(&self) -> String {
        let list = |tests: &[Test], word: &str| tests.iter().map(Test::describe).collect::<Vec<_>>().join(word);
        match self {
            Test::Every => "every event".to_owned(),
            Test::Cat(cat) => format!("category is `{cat}`"),
            Test::CatHas(part) => format!("category contains `{part}`"),
            Test::CatBelow(cat) => format!("category is `{cat}` or below"),
            Test::NameIn(names) => format!("name is `{}`", names.join("`, `")),
            Test::NameHas(part) => format!("name contains `{part}`"),
            Test::NameStarts(part) => format!("name starts with `{part}`"),
            Test::Io(cats) => format!("I/O is {}", cats.iter().map(|cat| cat.label()).collect::<Vec<_>>().join(" or ")),
            Test::Does(wanted) => format!("call does {wanted:?}"),
            Test::All(tests) => list(tests, " and "),
            Test::Any(tests) => format!("({})", list(tests, " or ")),
            Test::Not(test) => format!("not {}", test.describe()),
        }
    }
}

/// A metric of a part of a layer's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// The prefix of its columns.
    pub name: &'static str,
    /// Which events.
    pub test: Test,
}

/// A layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The prefix of its columns in flat views.
    pub name: Cow<'static, str>,
    /// Which events.
    pub test: Test,
    /// The layer that waits for it.
    pub parent: Option<Cow<'static, str>>,
    /// Whether it can run while another computes.
    pub asynchronous: bool,
    /// Metrics of parts of it.
    pub derived: &'static [Derived],
}

/// I/O calls.
pub const IO: Test = Test::Any(&[Test::CatHas("posix"), Test::CatHas("stdio")]);

/// Calls on names and attributes that do this.
macro_rules! metadata {
    ($($operation:ident),*) => {
        Test::All(&[Test::Io(&[IoCat::Metadata]), Test::Does(&[$(Operation::$operation),*])])
    };
}

/// The metrics of layers of I/O calls.
pub static IO_DERIVED: [Derived; 10] = [
    Derived { name: "data", test: Test::Io(&[IoCat::Read, IoCat::Write]) },
    Derived { name: "read", test: Test::Io(&[IoCat::Read]) },
    Derived { name: "write", test: Test::Io(&[IoCat::Write]) },
    Derived { name: "metadata", test: Test::Io(&[IoCat::Metadata]) },
    Derived { name: "close", test: metadata!(Close) },
    Derived { name: "open", test: metadata!(Open) },
    Derived { name: "seek", test: metadata!(Seek) },
    Derived { name: "stat", test: metadata!(StatPath, StatOpen) },
    Derived { name: "other", test: Test::Io(&[IoCat::Other]) },
    Derived { name: "sync", test: Test::Io(&[IoCat::Sync]) },
];
