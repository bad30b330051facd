//! The settings of `weft collect`: from its options, or else from the variables of Tracekit's collector.

use std::path::PathBuf;
use std::time::Duration;

use weftline_collect::collector::Options;
use weftline_collect::follow::{Follow, Group, pattern};
use weftline_collect::roots::Roots;
use weftline_format::secrets::Arguments;

use crate::args::{CollectArgs, parse_interval};
use crate::rundir;

/// The default time between samples.
pub(crate) const INTERVAL: Duration = Duration::from_millis(500);

/// Variables and what each says.
pub(crate) const VARIABLES: [(&str, &str); 10] = [
    ("RUN_ID", "The run's id (`--run-id`)."),
    ("NODE_ID", "The node's id (`--node-id`)."),
    ("STAGE", "The stage of a workflow (`--stage`)."),
    ("VM_IP", "The host to measure the round trip to (`--peer`)."),
    ("PROC_INTERVAL_MS", "Time between samples in milliseconds (`--interval`)."),
    ("PROC_MATCH", "Follow processes with a name or command line that matches this pattern (`--match`)."),
    ("PROC_PID_DIR", "Follow processes that files in this directory name (`--pid-dir`)."),
    ("PROC_SAMPLING", "0: ignore `PROC_MATCH` and `PROC_PID_DIR`."),
    ("PROC_REFRESH", "0: follow only processes that exist at the start."),
    ("STOP_ALL", "1: `--stop` stops the collectors of all runs in `weft-runs`, as `--all` does."),
];

/// Everything that was asked for.
#[derive(Debug)]
pub(super) struct CollectOptions {
    pub(super) output: Option<PathBuf>,
    pub(super) run_id: Option<String>,
    pub(super) node: String,
    pub(super) stage: Option<String>,
    pub(super) stop_all: bool,
    interval: Duration,
    follow: Follow,
    peer: Option<String>,
    duration: Option<Duration>,
    host: bool,
    arguments: Arguments,
}

/// Puts options and variables together; what is wrong, in one sentence.
pub(super) fn of(args: &CollectArgs, variable: &dyn Fn(&str) -> Option<String>) -> Result<CollectOptions, String> {
    // Make passes variables on that are set to nothing.
    let variable = |name: &str| {
        debug_assert!(VARIABLES.iter().any(|(known, _)| *known == name), "{name} is in no document");
        variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let flag = |name: &str| match variable(name).as_deref() {
        None => Ok(None),
        Some("0") => Ok(Some(false)),
        Some("1") => Ok(Some(true)),
        Some(other) => Err(format!("{name}={other}: use 0 or 1")),
    };
    let interval = match (args.interval, variable("PROC_INTERVAL_MS")) {
        (Some(interval), _) => interval,
        (None, Some(text)) => {
            parse_interval(&format!("{text}ms")).map_err(|why| format!("PROC_INTERVAL_MS={text}: {why}"))?
        }
        (None, None) => INTERVAL,
    };
    let mut follow = Follow {
        trees: args.tree.clone(),
        groups: args.container.iter().cloned().map(Group::Container).collect(),
        pid_dir: args.pid_dir.clone(),
        fixed: flag("PROC_REFRESH")? == Some(false),
        matching: None,
    };
    follow.groups.extend(args.cgroup.iter().cloned().map(Group::Path));
    let asked = !follow.nobody() || args.matching.is_some();
    let by_variables = flag("PROC_SAMPLING")? != Some(false);
    if !asked && by_variables {
        follow.pid_dir = variable("PROC_PID_DIR").map(PathBuf::from);
    }
    let named = match (&args.matching, variable("PROC_MATCH")) {
        (Some(text), _) => Some(("--match", text.clone())),
        (None, Some(text)) if by_variables && (!asked || args.pid_dir.is_some()) => Some(("PROC_MATCH", text)),
        _ => None,
    };
    if let Some((name, text)) = named {
        let wrong = |error: &dyn std::fmt::Display| {
            format!("{name} '{text}': {}", error.to_string().lines().last().unwrap_or_default())
        };
        follow.matching = Some(pattern(&text).map_err(|error| wrong(&error))?);
    }
    let run_id = args.run_id.clone().or_else(|| variable("RUN_ID"));
    if let Some(id) = run_id.as_deref().filter(|id| id.contains('/') || id.starts_with('.')) {
        return Err(format!("the run id '{id}' cannot be a directory name"));
    }
    Ok(CollectOptions {
        output: args.output.clone(),
        run_id,
        node: args.node_id.clone().or_else(|| variable("NODE_ID")).unwrap_or_else(rundir::host),
        stage: args.stage.clone().or_else(|| variable("STAGE")),
        stop_all: args.all || flag("STOP_ALL")? == Some(true),
        interval,
        follow,
        peer: args.peer.clone().or_else(|| variable("VM_IP")),
        duration: args.duration,
        host: !args.no_host,
        arguments: Arguments::unless(args.privacy.no_args),
    })
}

impl CollectOptions {
    /// Whether the processes and groups that were named are there.
    pub(super) fn verify(&self) -> weftline_collect::error::Result<()> {
        self.follow.verify(&Roots::default())
    }

    /// What the collector is to do in a run directory.
    pub(super) fn options(self, run: PathBuf) -> Options {
        let until_gone = !self.follow.trees.is_empty() && self.follow.only_trees();
        Options {
            run,
            interval: self.interval,
            follow: self.follow,
            duration: self.duration,
            until_gone,
            host: self.host,
            exit_records: true,
            own_record: true,
            roots: Roots::default(),
            node: self.node,
            stage: self.stage,
            peer: self.peer,
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            arguments: self.arguments,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Command, Options as Line};

    fn options(line: &str, variables: &[(&str, &str)]) -> Result<CollectOptions, String> {
        let line = format!("weft collect {line}");
        let Command::Collect(args) = Line::try_parse_from(line.split_whitespace()).expect(&line).command else {
            panic!("{line}")
        };
        of(&args, &|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn options_come_before_variables() {
        let tracekit = [
            ("RUN_ID", "r1"),
            ("NODE_ID", "cloud1"),
            ("STAGE", "edge"),
            ("VM_IP", "10.0.0.2"),
            ("PROC_INTERVAL_MS", "200"),
            ("PROC_PID_DIR", "pids"),
            ("PROC_MATCH", "^ffmpeg$"),
            ("STOP_ALL", "1"),
        ];
        for (line, variables, expected) in [
            ("", &[][..], "no process every 500ms id None stage None peer None all false"),
            (
                "",
                &tracekit,
                "processes named in pids and matching /^ffmpeg$/ every 200ms id Some(\"r1\") stage Some(\"edge\") peer Some(\"10.0.0.2\") all true",
            ),
            (
                "--interval 1s --tree 5 --run-id x",
                &tracekit,
                "process 5 and its descendants every 1s id Some(\"x\") stage Some(\"edge\") peer Some(\"10.0.0.2\") all true",
            ),
            (
                "--match java",
                &tracekit[..1],
                "processes matching /java/ every 500ms id Some(\"r1\") stage None peer None all false",
            ),
            (
                "--pid-dir p",
                &[("PROC_MATCH", "x")],
                "processes named in p and matching /x/ every 500ms id None stage None peer None all false",
            ),
            (
                "",
                &[("PROC_MATCH", "x"), ("PROC_SAMPLING", "0"), ("PROC_INTERVAL_MS", "")],
                "no process every 500ms id None stage None peer None all false",
            ),
        ] {
            let found = options(line, variables).expect(line);
            let found = format!(
                "{} every {:?} id {:?} stage {:?} peer {:?} all {}",
                found.follow.describe(),
                found.interval,
                found.run_id,
                found.stage,
                found.peer,
                found.stop_all
            );
            assert_eq!(found, expected, "{line} {variables:?}");
        }
        assert!(options("", &[("PROC_REFRESH", "0")]).expect("fine").follow.fixed);
    }

    #[test]
    fn wrong_variables_are_named() {
        for (name, value) in [
            ("PROC_INTERVAL_MS", "0"),
            ("PROC_INTERVAL_MS", "soon"),
            ("PROC_MATCH", "("),
            ("STOP_ALL", "yes"),
            ("PROC_REFRESH", "2"),
            ("RUN_ID", "../x"),
        ] {
            let wrong = options("", &[(name, value)]).expect_err(value);
            assert!(wrong.contains(name) || name == "RUN_ID", "{wrong}");
        }
    }
}
