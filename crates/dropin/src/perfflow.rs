//! Compatibility with PerfFlowAspect: `PERFFLOW_OPTIONS`, file names and file contents.
//!
//! The options are a list `key=value:key=value`. An invalid value gets a one-sentence warning and the default;
//! the program runs in any case, traced or not.

mod events;
mod instance;
mod number;
mod writer;

use serde::{Deserialize, Serialize};

use crate::truth::truth;

pub use instance::{INSTANCE_VARIABLE, JOB_VARIABLES, instance_path};
pub use writer::{WriteError, write};

/// The variable with the options.
pub const OPTIONS_VARIABLE: &str = "PERFFLOW_OPTIONS";

/// One part of a file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamePart {
    /// The component's name.
    Name,
    /// The path of jobs that this one runs in.
    InstancePath,
    /// The host.
    Hostname,
    /// The process.
    Pid,
}

/// How a span is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEvent {
    /// As a beginning and an end.
    #[default]
    Verbose,
    /// As one event.
    Compact,
}

/// What the file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogFormat {
    /// A list of events.
    #[default]
    Array,
    /// An object with a list of events in it.
    Object,
}

/// Which of the two PerfFlowAspects a file must look like: they differ in numbers, order and indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flavour {
    /// The Python module.
    Python,
    /// The C runtime.
    C,
}

/// What a user of PerfFlowAspect can set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// `name`: the workflow component.
    pub name: String,
    /// `log-filename-include`: parts of file names, in this order.
    pub log_filename_include: Vec<NamePart>,
    /// `log-dir`: where files go; made when it is not there.
    pub log_dir: String,
    /// `log-enable`: record at all.
    pub log_enable: bool,
    /// `cpu-mem-usage`: spans tell what processor time and memory they used.
    pub cpu_mem_usage: bool,
    /// `gpu-usage`: spans tell how busy NVIDIA's GPUs were and what memory of theirs was used.
    #[serde(default)]
    pub gpu_usage: bool,
    /// `log-event`: how a span is recorded.
    pub log_event: LogEvent,
    /// `log-format`: what the file is.
    pub log_format: LogFormat,
    /// `log-close`: end the list, so that the file is JSON as it stands. The original never does.
    #[serde(default)]
    pub log_close: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            name: "generic".to_owned(),
            log_filename_include: vec![NamePart::Hostname, NamePart::Pid],
            log_dir: "./".to_owned(),
            log_enable: true,
            cpu_mem_usage: false,
            gpu_usage: false,
            log_event: LogEvent::Verbose,
            log_format: LogFormat::Array,
            log_close: false,
        }
    }
}

/// Keys, their values and defaults, and what they do: for the documentation.
pub const KEYS: &[(&str, &str, &str, &str)] = &[
    ("name", "any text", "generic", "Name of the workflow component."),
    ("log-filename-include", "name, instance-path, hostname, pid in any order", "hostname,pid", "Parts of file names."),
    ("log-dir", "a directory", "./", "Directory of the files; created if missing."),
    ("log-enable", "True, False", "True", "False records nothing; annotated functions still run."),
    ("cpu-mem-usage", "True, False", "False", "Two counter events for each span: CPU time and memory."),
    ("gpu-usage", "True, False", "False", "Weftline's own: the counters also show NVIDIA GPUs, by NVML."),
    ("log-event", "Verbose, Compact", "Verbose", "A span is a B and an E event, or one X event."),
    ("log-format", "Array, Object", "Array", "The file is a list, or an object with a list in it."),
    (
        "log-close",
        "True, False",
        "False",
        "Weftline's own: True closes the list, so that the file is valid JSON. The original leaves it open, and its scripts append ` {}]`.",
    ),
    ("caliper-enable", "True, False", "False", "No effect: Weftline makes no Caliper regions."),
];

impl Options {
    /// Reads the value of [`OPTIONS_VARIABLE`]; also gives what the user should hear about it.
    pub fn parse(text: &str) -> (Options, Vec<String>) {
        let mut options = Options::default();
        let mut warnings = Vec::new();
        for entry in text.split(':').filter(|entry| !entry.trim().is_empty()) {
            match entry.split_once('=') {
                Some((key, value)) => options.set(key.trim(), value, &mut warnings),
                None => warnings.push(format!("{OPTIONS_VARIABLE}: `{entry}` is not key=value and is ignored")),
            }
        }
        (options, warnings)
    }

    fn set(&mut self, key: &str, value: &str, warnings: &mut Vec<String>) {
        let mut refuse = |wanted: &str| {
            warnings.push(format!("{OPTIONS_VARIABLE}: {key}={value} is invalid; use {wanted}"));
        };
        let is = |word: &str| value.trim().eq_ignore_ascii_case(word);
        match key {
            "name" => value.clone_into(&mut self.name),
            "log-dir" => value.clone_into(&mut self.log_dir),
            "log-filename-include" => {
                self.log_filename_include.clear();
                for word in value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                    match word {
                        "name" => self.log_filename_include.push(NamePart::Name),
                        "instance-path" => self.log_filename_include.push(NamePart::InstancePath),
                        "hostname" => self.log_filename_include.push(NamePart::Hostname),
                        "pid" => self.log_filename_include.push(NamePart::Pid),
                        _ => refuse("name, instance-path, hostname and pid"),
                    }
                }
            }
            "log-enable" | "cpu-mem-usage" | "gpu-usage" | "log-close" => match truth(value) {
                Some(on) if key == "log-enable" => self.log_enable = on,
                Some(on) if key == "cpu-mem-usage" => self.cpu_mem_usage = on,
                Some(on) if key == "gpu-usage" => self.gpu_usage = on,
                Some(on) => self.log_close = on,
                None => refuse("True or False"),
            },
            "log-event" if is("verbose") => self.log_event = LogEvent::Verbose,
            "log-event" if is("compact") => self.log_event = LogEvent::Compact,
            "log-event" => refuse("Verbose or Compact"),
            "log-format" if is("array") => self.log_format = LogFormat::Array,
            "log-format" if is("object") => self.log_format = LogFormat::Object,
            "log-format" => refuse("Array or Object"),
            "caliper-enable" if truth(value) == Some(false) => {}
            "caliper-enable" => warnings.push(format!("{OPTIONS_VARIABLE}: {key} has no effect here")),
            _ => warnings.push(format!("{OPTIONS_VARIABLE}: `{key}` is not an option and is ignored")),
        }
    }

    /// Name of a process's file within [`Options::log_dir`]; the later ones of the same name have `-2`, `-3`, … at the end.
    pub fn file_name(&self, instance_path: &str, host: &str, pid: u32, number: u32) -> String {
        let mut name = match self.log_format {
            LogFormat::Array => "perfflow.array".to_owned(),
            LogFormat::Object => "perfflow.object".to_owned(),
        };
        for part in &self.log_filename_include {
            match part {
                NamePart::Name => name.push_str(&format!(".{}", self.name)),
                NamePart::InstancePath => name.push_str(&format!(".{{{instance_path}}}")),
                NamePart::Hostname => name.push_str(&format!(".{host}")),
                NamePart::Pid => name.push_str(&format!(".{pid}")),
            }
        }
        if number > 1 {
            name.push_str(&format!("-{number}"));
        }
        name.push_str(".pfw");
        name.replace(['/', '\0'], "_")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &Options) {
        let (options, warnings) = Options::parse(text);
        assert_eq!(options, *expected, "{text}");
        assert!(warnings.is_empty(), "{text}: {warnings:?}");
    }

    #[test]
    fn options_count() {
        let d = Options::default;
        check("", &d());
        check("log-enable=True", &d());
        check("log-enable=FALSE:log-dir=/a/b c", &Options { log_enable: false, log_dir: "/a/b c".into(), ..d() });
        check("name=a=b", &Options { name: "a=b".into(), ..d() });
        check("cpu-mem-usage=true:log-event=compact", &{
            Options { cpu_mem_usage: true, log_event: LogEvent::Compact, ..d() }
        });
        check("log-format=OBJECT:log-event=Verbose:", &Options { log_format: LogFormat::Object, ..d() });
        check("log-filename-include=pid,instance-path,name", &{
            let log_filename_include = vec![NamePart::Pid, NamePart::InstancePath, NamePart::Name];
            Options { log_filename_include, ..d() }
        });
        check("gpu-usage=True:log-close=yes", &Options { gpu_usage: true, log_close: true, ..d() });
        check("log-close=False", &d());
        check("caliper-enable=False", &d());
        check("log-event=compact:log-event=Verbose", &d());
    }

    #[test]
    fn what_is_not_understood_is_told_and_has_its_default() {
        for (text, word) in [
            ("log-event=foo", "Verbose or Compact"),
            ("log-format=list", "Array or Object"),
            ("log-enable=maybe", "True or False"),
            ("cpu-mem-usage=", "True or False"),
            ("gpu-usage=all", "True or False"),
            ("log-close=]", "True or False"),
            ("garbage", "`garbage`"),
            ("log-evnt=Compact", "`log-evnt`"),
            ("log-filename-include=hostname,pid,rank", "rank"),
            ("caliper-enable=True", "no effect"),
        ] {
            let (options, warnings) = Options::parse(text);
            assert_eq!(options, Options::default(), "{text}");
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].contains(word), "{warnings:?}");
        }
    }

    #[test]
    fn files_are_named_in_the_given_order() {
        for (text, number, expected) in [
            ("", 1, "perfflow.array.vm.17.pfw"),
            ("log-format=object", 1, "perfflow.object.vm.17.pfw"),
            ("log-filename-include=name", 1, "perfflow.array.generic.pfw"),
            ("log-filename-include=name:name=a/b", 2, "perfflow.array.a_b-2.pfw"),
            ("log-filename-include=hostname,instance-path,pid,name", 1, "perfflow.array.vm.{ƒ2.x}.17.generic.pfw"),
            ("log-filename-include=", 1, "perfflow.array.pfw"),
        ] {
            assert_eq!(Options::parse(text).0.file_name("ƒ2.x", "vm", 17, number), expected, "{text}");
        }
    }
}
