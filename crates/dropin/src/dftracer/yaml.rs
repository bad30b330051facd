//! DFTracer's YAML file as a flat list: `features.io.posix` and its value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use saphyr_parser::{Event, Parser, ScanError};
use thiserror::Error;

/// Why a file gives no settings.
#[derive(Debug, Error)]
pub(crate) enum YamlError {
    #[error("{} cannot be read: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} is not YAML: {source}", path.display())]
    Syntax { path: PathBuf, source: ScanError },
}

/// The settings of a file: dotted keys to values; the values of a list are joined by colons, as variables write them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings(BTreeMap<String, String>);

impl Settings {
    /// The first of these keys that the file has, and its value.
    pub(crate) fn first_of(&self, keys: &[&str]) -> Option<(String, String)> {
        keys.iter().find_map(|key| self.0.get_key_value(*key)).map(|(key, value)| (key.clone(), value.clone()))
    }
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Settings, YamlError> {
    let text = std::fs::read_to_string(path).map_err(|source| YamlError::Io { path: path.to_owned(), source })?;
    parse(&text).map_err(|source| YamlError::Syntax { path: path.to_owned(), source })
}

/// Where in the document the parser is.
enum Level {
    /// In a mapping: the key whose value comes next, if it has been read.
    Mapping(Option<String>),
    Sequence,
}

fn parse(text: &str) -> Result<Settings, ScanError> {
    let mut found = Settings::default();
    let mut levels: Vec<Level> = Vec::new();
    for event in Parser::new_from_str(text) {
        match event?.0 {
            Event::MappingStart(..) => levels.push(Level::Mapping(None)),
            Event::SequenceStart(..) => levels.push(Level::Sequence),
            Event::MappingEnd | Event::SequenceEnd => {
                levels.pop();
                value_ends(&mut levels);
            }
            Event::Scalar(value, ..) => match levels.last_mut() {
                Some(Level::Mapping(key @ None)) => *key = Some(value.into_owned()),
                Some(_) => {
                    found.add(key_of(&levels), &value);
                    value_ends(&mut levels);
                }
                None => {}
            },
            // Nothing in this file needs to be said twice; what an alias stands for is left out.
            Event::Alias(_) => value_ends(&mut levels),
            _ => {}
        }
    }
    Ok(found)
}

impl Settings {
    fn add(&mut self, key: String, value: &str) {
        match self.0.get_mut(&key) {
            Some(list) => {
                list.push(':');
                list.push_str(value);
            }
            None => {
                self.0.insert(key, value.to_owned());
            }
        }
    }
}

/// A value was read: the mapping around it waits for its next key.
fn value_ends(levels: &mut [Level]) {
    if let Some(Level::Mapping(key)) = levels.last_mut() {
        // A mapping or list as a key has no name; its value is then taken for a key and nothing comes of it.
        *key = None;
    }
}

fn key_of(levels: &[Level]) -> String {
    let keys = levels.iter().filter_map(|level| match level {
        Level::Mapping(key) => key.as_deref(),
        Level::Sequence => None,
    });
    keys.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = parse(text).expect(text);
        let expected = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(found, Settings(expected), "{text}");
    }

    #[test]
    fn documents_become_lists() {
        check("", &[]);
        check("enable: true\n", &[("enable", "true")]);
        check(
            "a:\n  b: 1\n  c: {d: x, e: 'y z'}\nf: 2\n",
            &[("a.b", "1"), ("a.c.d", "x"), ("a.c.e", "y z"), ("f", "2")],
        );
        check("dirs:\n  - /a\n  - /b\nx: 1\n", &[("dirs", "/a:/b"), ("x", "1")]);
        check("dirs: /a:/b # both\n", &[("dirs", "/a:/b")]);
        check("a: &one 1\nb: *one\nc: 3\n", &[("a", "1"), ("c", "3")]);
        check("a:\nb: 2\n", &[("a", ""), ("b", "2")]);
        check("- 1\n- 2\n", &[("", "1:2")]);
        check("just words\n", &[]);
    }

    #[test]
    fn broken_documents_are_errors() {
        for text in ["a: [1, 2", "a: 'x", "a: b: c", "a: }"] {
            parse(text).expect_err(text);
        }
    }
}
