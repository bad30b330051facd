//! One sample, and where samples go. Samplers do not write files; writers do not read `/proc`.

/// The stretch of time that a sample describes, in nanoseconds since the epoch. Gauges, which hold at an instant, describe the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Where the sample before it ended.
    pub start_ns: i64,
    /// When this one was read.
    pub end_ns: i64,
}

impl Interval {
    /// Its length; never negative, whatever a stepped clock says.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns).max(0) as u64
    }
}

/// A value of a sample: always a number, since viewers refuse a counter that has a text in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Counts, bytes, nanoseconds.
    Unsigned(u64),
    /// Differences that may be negative.
    Signed(i64),
    /// Shares and rates. One that is not finite is left out by the writer.
    Float(f64),
}

/// What is told of a subject once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fact<'a> {
    /// A number.
    Number(Value),
    /// Names, command lines.
    Text(&'a str),
}

/// What a sample is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The machine or one of its devices.
    Host,
    /// A process.
    Process(u32),
}

/// The content of a sample: names and values.
pub type Values<'a> = &'a [(&'static str, Value)];

/// The content of a metadata event: names and facts.
pub type Facts<'a> = &'a [(&'static str, Fact<'a>)];

/// Takes samples.
pub trait Sink {
    /// A counter event: values of one thing over one interval. `category` groups (`sys`, `io`, `net`, `process`, …), `name` says which one
    /// (`cpu`, `cpu-3`, `vda`).
    fn counter(&mut self, subject: Subject, category: &'static str, name: &str, at: Interval, values: Values<'_>);

    /// Something said once: the command line of a process, what a node is.
    fn metadata(&mut self, subject: Subject, name: &str, at_ns: i64, facts: Facts<'_>);
}
