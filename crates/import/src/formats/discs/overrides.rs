//! What a user says against the inference.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::config::Zone;

/// Facts that are told rather than found. Whatever is left out is found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// What was run.
    pub workload: Option<String>,
    /// The host that the folder is of.
    pub host: Option<String>,
    /// The time zone of local times; `--tz` is stronger.
    pub tz: Option<Zone>,
    /// The day of the first time that has none, as `2022-08-27`.
    pub date: Option<String>,
    /// What processes are called, by pid. A name such as `worker 2` or `loader 7` gives the role too.
    pub roles: BTreeMap<String, String>,
    /// What processes are called, by a text within their command line; the first that fits counts.
    pub commands: Vec<CommandName>,
    /// Phases, by the key of an application log without `_start` and `_stop`: `block = "training"`.
    pub phases: BTreeMap<String, String>,
}

/// A name for processes with a text in their command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandName {
    /// The text.
    pub contains: String,
    /// What they are called: `master`, `worker`, `loader`, `resource tracker`, or any other name.
    pub name: String,
}
