//! Resolves hashes to paths, strings and hosts.

use std::collections::HashMap;

use crate::event::{Event, Phase, Value};
use crate::view::EventView;

/// The names that a trace defines (`FH`, `SH`, `HH` lines). Hashes are kept as text: ours and DFTracer's are 16 digits,
/// those of DFTracer 1 are decimal numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    paths: HashMap<String, String>,
    strings: HashMap<String, String>,
    hosts: HashMap<String, String>,
}

impl Names {
    /// The path of a hash.
    pub fn path(&self, hash: &str) -> Option<&str> {
        self.paths.get(hash).map(String::as_str)
    }

    /// The string of a hash.
    pub fn string(&self, hash: &str) -> Option<&str> {
        self.strings.get(hash).map(String::as_str)
    }

    /// The host of a hash.
    pub fn host(&self, hash: &str) -> Option<&str> {
        self.hosts.get(hash).map(String::as_str)
    }

    /// All paths with their hashes, in no order.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &str)> {
        self.paths.iter().map(|(hash, path)| (hash.as_str(), path.as_str()))
    }

    /// The path that an event is about: its `fhash`, or the `fname` of old DFTracer traces.
    pub fn path_of<'n>(&'n self, event: &'n Event) -> Option<&'n str> {
        match event.arg("fhash") {
            Some(Value::Str(hash)) => self.path(hash),
            Some(hash) => self.path(&number_text(hash)?),
            None => event.arg("fname").and_then(Value::as_str),
        }
    }

    /// Takes up what an event defines.
    pub(crate) fn learn(&mut self, event: &EventView<'_>) {
        if event.phase != Phase::Metadata {
            return;
        }
        let names = match &*event.name {
            "FH" => &mut self.paths,
            "SH" => &mut self.strings,
            "HH" => &mut self.hosts,
            _ => return,
        };
        let hash = match event.arg("value") {
            Some(Value::Str(hash)) => Some(hash),
            Some(hash) => number_text(&hash),
            None => None,
        };
        if let (Some(hash), Some(name)) = (hash, event.arg_str("name"))
            && !names.contains_key(&hash)
        {
            names.insert(hash, name.into_owned());
        }
    }

    /// Takes up the names of another trace.
    pub fn absorb(&mut self, other: Names) {
        self.paths.extend(other.paths);
        self.strings.extend(other.strings);
        self.hosts.extend(other.hosts);
    }
}

fn number_text(hash: &Value) -> Option<String> {
    match hash {
        Value::Int(v) => Some(v.to_string()),
        Value::UInt(v) => Some(v.to_string()),
        _ => None,
    }
}
