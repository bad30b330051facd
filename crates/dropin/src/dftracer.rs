//! The options of DFTracer: `DFTRACER_*` and the YAML file that they may name.
//!
//! A setting comes from the environment, else from the file named by `DFTRACER_CONFIGURATION`, else it has its default; either
//! source can switch a feature on or off. Nothing here fails: an invalid value gets a one-sentence warning and
//! the default, because a traced program must run whatever its variables hold.

mod variables;
mod yaml;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use variables::Setting;
pub use variables::{VARIABLES, Variable};

use crate::truth::truth;

/// Who begins to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Init {
    /// The program, by `initialize_log` or `DFTRACER_*_INIT`.
    #[default]
    Function,
    /// The preloaded library, before the program's `main`.
    Preload,
    /// The preloaded library, and what the program annotates joins it.
    Hybrid,
}

/// What a user of DFTracer can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Record at all.
    pub enable: bool,
    /// Who begins.
    pub init: Init,
    /// What file names begin with; relative to the working directory.
    pub log_file: PathBuf,
    /// Directories whose files are of interest, absolute; `None` means all files.
    pub data_dirs: Option<Vec<PathBuf>>,
    /// Compressed files.
    pub compression: bool,
    /// Record calls of the C library.
    pub io: bool,
    /// Among them those of the category POSIX.
    pub posix: bool,
    /// Among them those of the category STDIO.
    pub stdio: bool,
    /// Accepted, see [`VARIABLES`]: arguments on events.
    pub metadata: bool,
    /// Accepted: thread ids on events.
    pub tids: bool,
    /// Accepted: finish when a signal comes.
    pub bind_signals: bool,
    /// Accepted: `ERROR`, `WARN`, `INFO` or `DEBUG`.
    pub log_level: String,
    /// Accepted: `NS`, `US`, `MS` or `SEC`.
    pub time_metric: String,
    /// Accepted: bytes.
    pub write_buffer_size: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            enable: false,
            init: Init::Function,
            log_file: PathBuf::from("./trace"),
            data_dirs: None,
            compression: true,
            io: true,
            posix: true,
            stdio: true,
            metadata: false,
            tids: true,
            bind_signals: false,
            log_level: "ERROR".to_owned(),
            time_metric: "US".to_owned(),
            write_buffer_size: 16 << 20,
        }
    }
}

impl Options {
    /// What this process's environment says, and what the user should hear about it.
    pub fn from_environment() -> (Options, Vec<String>) {
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Options::read(&|name| std::env::var_os(name), &here)
    }

    /// What an environment says to a process in the directory `here`.
    pub fn read(variable: &dyn Fn(&str) -> Option<OsString>, here: &Path) -> (Options, Vec<String>) {
        let mut options = Options::default();
        let mut warnings = Vec::new();
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(path) = given(variables::CONFIGURATION) {
            let path = here.join(path);
            match yaml::read(&path) {
                Ok(file) => {
                    let found = VARIABLES.iter().filter_map(|row| Some((row, file.first_of(row.yaml)?)));
                    for (row, (key, value)) in found {
                        let source = format!("{key} in {}", path.display());
                        options.set(row.setting, false, OsStr::new(&value), &source, here, &mut warnings);
                    }
                }
                Err(error) => warnings.push(format!(
                    "{error}; DFTracer's settings are taken from the environment only ({})",
                    variables::CONFIGURATION
                )),
            }
        }
        for row in VARIABLES {
            if let Some(value) = given(row.name) {
                options.set(row.setting, row.negated, &value, row.name, here, &mut warnings);
            }
        }
        (options, warnings)
    }

    fn set(
        &mut self,
        setting: Setting,
        negated: bool,
        value: &OsStr,
        source: &str,
        here: &Path,
        warnings: &mut Vec<String>,
    ) {
        let text = value.to_string_lossy();
        let mut refuse = |wanted: &str| warnings.push(format!("{source}={text} is invalid; {wanted}"));
        let switch = match setting {
            Setting::Enable => &mut self.enable,
            Setting::Compression => &mut self.compression,
            Setting::Io => &mut self.io,
            Setting::Posix => &mut self.posix,
            Setting::Stdio => &mut self.stdio,
            Setting::Metadata => &mut self.metadata,
            Setting::Tids => &mut self.tids,
            Setting::BindSignals => &mut self.bind_signals,
            Setting::Init => {
                match text.trim().to_ascii_uppercase().as_str() {
                    "FUNCTION" => self.init = Init::Function,
                    "PRELOAD" => self.init = Init::Preload,
                    "HYBRID" => self.init = Init::Hybrid,
                    _ => refuse("use FUNCTION, PRELOAD or HYBRID"),
                }
                return;
            }
            Setting::LogFile => return self.set_log_file(Path::new(value)),
            Setting::DataDirs => return self.set_data_dirs(value, here),
            Setting::LogLevel => return self.log_level = text.trim().to_ascii_uppercase(),
            Setting::TimeMetric => return self.time_metric = text.trim().to_ascii_uppercase(),
            Setting::WriteBufferSize => {
                match text.trim().parse() {
                    Ok(size) => self.write_buffer_size = size,
                    Err(_) => refuse("use a number of bytes"),
                }
                return;
            }
            Setting::None => return,
        };
        match truth(&text) {
            Some(on) => *switch = on != negated,
            None => refuse("use 1 or 0"),
        }
    }

    /// Takes a prefix given in code; an extension of trace files is not part of it.
    pub fn set_log_file(&mut self, given: &Path) {
        let bytes = given.as_os_str().as_bytes();
        let stem = [&b".pfw.gz"[..], b".pfw"].iter().find_map(|end| bytes.strip_suffix(*end)).unwrap_or(bytes);
        self.log_file = PathBuf::from(OsString::from_vec(stem.to_vec()));
    }

    /// Takes a colon-separated list of directories; `all` among them, or nothing, means all files.
    pub fn set_data_dirs(&mut self, given: &OsStr, here: &Path) {
        let parts: Vec<&OsStr> = given
            .as_bytes()
            .split(|byte| *byte == b':')
            .filter(|part| !part.is_empty())
            .map(OsStr::from_bytes)
            .collect();
        let all = parts.is_empty() || parts.iter().any(|part| part.eq_ignore_ascii_case("all"));
        self.data_dirs = (!all).then(|| parts.iter().map(|part| normal(&here.join(part))).collect());
    }

    /// Patterns for the paths of interest, as the drain's filter takes them; none when all are. Whole components are compared, and
    /// a directory is known by the name that was given as well as by its real one.
    pub fn patterns(&self) -> Vec<String> {
        let mut patterns = Vec::new();
        for directory in self.data_dirs.iter().flatten() {
            let real = directory.canonicalize().ok().filter(|real| real != directory);
            for path in std::iter::once(directory.clone()).chain(real) {
                let escaped = escape(&path.to_string_lossy());
                let below = if escaped == "/" { "/**".to_owned() } else { format!("{escaped}/**") };
                patterns.extend([escaped, below]);
            }
        }
        patterns
    }

    /// The prefix as a directory and what names in it begin with, which is nothing behind a slash at the end.
    pub fn place(&self) -> (&Path, &OsStr) {
        let bytes = self.log_file.as_os_str().as_bytes();
        match bytes.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (Path::new(OsStr::from_bytes(&bytes[..=at])), OsStr::from_bytes(&bytes[at + 1..])),
            None => (Path::new("."), self.log_file.as_os_str()),
        }
    }

    /// Categories of calls that are not wanted: those that are off, and those that DFTracer does not know.
    pub fn unwanted_categories(&self) -> Vec<String> {
        let known = [("POSIX", self.posix), ("STDIO", self.stdio), ("NETWORK", false), ("WAIT", false)];
        known.into_iter().filter(|(_, wanted)| !wanted).map(|(category, _)| category.to_owned()).collect()
    }
}

/// A path without `.`, `..`, doubled and trailing slashes.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

fn escape(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!' | ',') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// What comes behind the prefix: `-<app>-<pid>.pfw.gz`, and `-2`, `-3`, … before the extension for the later ones of a name.
pub fn file_name(base: &OsStr, app: &str, pid: u32, number: u32, compression: bool) -> OsString {
    let mut name = base.to_owned();
    name.push(format!("-{app}-{pid}"));
    if number > 1 {
        name.push(format!("-{number}"));
    }
    name.push(if compression { ".pfw.gz" } else { ".pfw" });
    name
}

#[cfg(test)]
mod tests;
