//! The formats: one line each. Documentation and `weft import --list` are made of it.

use crate::config::Config;
use crate::custom::Custom;
use crate::formats;
use crate::input::{Head, Input};
use crate::sink::Sink;
use crate::survey::Survey;
use crate::{ImportError, Result};

/// How sure detection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It is something else.
    No,
    /// It could be, as many other texts could.
    Possible,
    /// Its lines look like it.
    Likely,
    /// A magic number, or a header that nothing else has.
    Certain,
}

/// One format.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// What `--kind` calls it.
    pub kind: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// What of it comes into a run.
    pub carries: &'static str,
    /// The name of a file that its tests hold, for the example in the documents.
    pub example: &'static str,
    /// Whether a file is of this format.
    pub detect: fn(&Head<'_>) -> Confidence,
    /// Takes from a file what the others need. None where there is no such thing.
    pub survey: Option<fn(&mut Input<'_>, &mut Survey) -> Result<()>>,
    /// Gives its events.
    pub read: fn(&mut Input<'_>, &Survey, &mut dyn Sink) -> Result<()>,
}

/// All of them, in the order of the documents.
pub const FORMATS: &[Format] = &[
    formats::darshan::FORMAT,
    formats::perfetto::FORMAT,
    formats::otlp::FORMAT,
    formats::strace::FORMAT,
    formats::tracekit::FORMAT,
    formats::nginx::FORMAT,
    formats::discs::bpftrace::FORMAT,
    formats::discs::align::FORMAT,
    formats::discs::pids::FORMAT,
    formats::discs::mpstat::FORMAT,
    formats::discs::vmstat::FORMAT,
    formats::discs::ifstat::FORMAT,
    formats::discs::pmon::FORMAT,
    formats::discs::iostat::FORMAT,
    formats::discs::mllog::FORMAT,
    formats::discs::dlio::FORMAT,
];

/// A format of a file: one of ours, or one of the user's.
#[derive(Debug, Clone, Copy)]
pub enum Chosen<'a> {
    /// One of [`FORMATS`].
    Known(&'static Format),
    /// One that `--config` describes.
    Custom(&'a Custom),
}

impl Chosen<'_> {
    /// What `--kind` calls it.
    pub fn kind(&self) -> &str {
        match self {
            Chosen::Known(format) => format.kind,
            Chosen::Custom(format) => &format.name,
        }
    }

    /// Takes from a file what the others need.
    pub fn survey(&self, input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
        match self {
            Chosen::Known(Format { survey: Some(look), .. }) => look(input, survey),
            _ => Ok(()),
        }
    }

    /// Gives a file's events.
    pub fn read(&self, input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
        match self {
            Chosen::Known(format) => (format.read)(input, survey, sink),
            Chosen::Custom(format) => format.read(input, survey, sink),
        }
    }
}

/// The format of a file, if it has one: what the user describes comes first.
pub fn choose<'a>(head: &Head<'_>, config: Option<&'a Config>) -> Option<Chosen<'a>> {
    let custom = config.and_then(|config| config.formats.iter().find(|format| format.fits(head)));
    custom.map(Chosen::Custom).or_else(|| {
        let (format, sure) = detect(head)?;
        (sure > Confidence::Possible).then_some(Chosen::Known(format))
    })
}

/// The format of a name, among ours and the user's.
pub fn by_name<'a>(kind: &str, config: Option<&'a Config>) -> Result<Chosen<'a>> {
    let custom = config.map_or(&[][..], |config| &config.formats);
    if let Some(format) = custom.iter().find(|format| format.name == kind) {
        return Ok(Chosen::Custom(format));
    }
    by_kind(kind).map(Chosen::Known).map_err(|error| match error {
        ImportError::NoKind { kind, known } => {
            let names = custom.iter().map(|format| format.name.as_str());
            ImportError::NoKind { kind, known: names.chain([known.as_str()]).collect::<Vec<_>>().join(", ") }
        }
        error => error,
    })
}

/// The format of a file: the most certain one, the first of several that are equally so.
pub fn detect(head: &Head<'_>) -> Option<(&'static Format, Confidence)> {
    let found = FORMATS.iter().map(|format| (format, (format.detect)(head)));
    let best = found.reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.filter(|(_, confidence)| *confidence > Confidence::No)
}

/// The format of a name.
pub fn by_kind(kind: &str) -> Result<&'static Format> {
    FORMATS.iter().find(|format| format.kind == kind).ok_or_else(|| ImportError::NoKind {
        kind: kind.to_owned(),
        known: FORMATS.iter().map(|format| format.kind).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_names_of_their_own() {
        for (place, format) in FORMATS.iter().enumerate() {
            assert!(FORMATS[..place].iter().all(|other| other.kind != format.kind), "{} twice", format.kind);
            assert!(format.kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
        }
        assert!(by_kind("nonsense").is_err_and(|error| error.to_string().contains("nginx")));
    }

    #[test]
    fn nothing_is_taken_for_a_format() {
        let junk: [&[u8]; 5] = [b"", b"\n\n", b"hello\nworld\n", &[0; 4096], b"{\"a\":1}\n"];
        for bytes in junk {
            let found = detect(&Head { name: "x", bytes });
            assert!(found.is_none_or(|(_, sure)| sure == Confidence::Possible), "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
