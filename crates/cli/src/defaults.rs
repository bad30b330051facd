//! Defaults of options, set once for a site or a user: `/etc/weftline.toml`, `~/.config/weftline.toml`, and the environment.
//!
//! A key is the long name of an option, in the table of its verb (`[run] sample = "1s"`); a variable is `WEFT_RUN_SAMPLE`. The command line takes precedence
//! over the environment, that over the user's file, and that over the site's. A given option (`--no-sample`) overrides a default that contradicts it
//! (`sample`).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory as _, FromArgMatches as _, Parser as _};

use crate::args::Options;
use crate::usage::Usage;

/// What every site's file is called.
const SITE: &str = "/etc/weftline.toml";
/// The user's, within the directory of configurations.
const USER: &str = "weftline.toml";

/// A file of defaults is not read beyond this.
const MOST_BYTES: u64 = 1 << 20;

/// Where a default was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    File(PathBuf),
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Variable(name) => write!(f, "{name}"),
        }
    }
}

/// A default: the words that stand for it on a command line, and who set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Default {
    pub(crate) verb: String,
    pub(crate) option: String,
    pub(crate) values: Vec<String>,
    /// `option = false`: an option without a value that an earlier file set is not wanted.
    off: bool,
    pub(crate) origin: Origin,
}

/// Where the user's file is: in the first, or in `.config` of the second.
pub(crate) const CONFIG_VARIABLES: [&str; 2] = ["XDG_CONFIG_HOME", "HOME"];

/// The files in which defaults are looked for, whether they are there or not: the site's, then the user's.
pub(crate) fn files() -> Vec<PathBuf> {
    let [place, home] = CONFIG_VARIABLES.map(|name| std::env::var_os(name).filter(|value| !value.is_empty()));
    let user = place.map(PathBuf::from).or_else(|| home.map(|home| Path::new(&home).join(".config")));
    [Some(PathBuf::from(SITE)), user.map(|place| place.join(USER))].into_iter().flatten().collect()
}

/// The command line with the defaults that apply to it.
pub(crate) fn parse() -> Result<Options, clap::Error> {
    let given: Vec<OsString> = std::env::args_os().collect();
    let found = match all() {
        Ok(found) => found,
        Err(why) => return Err(Options::command().error(ErrorKind::InvalidValue, format!("{why}\n"))),
    };
    if found.is_empty() {
        return Options::try_parse_from(given);
    }
    Options::from_arg_matches(&with_defaults(&given, &found)?)
}

/// All defaults, the last of an option being the one that counts.
pub(crate) fn all() -> Result<Vec<Default>, Usage> {
    let mut found = Vec::new();
    for path in files() {
        let mut text = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text));
        match read {
            Ok(_) => found.extend(of_file(&path, &text)?),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(Usage::new(format!("{}: {error}", path.display()))),
        }
    }
    found.extend(of_environment(std::env::vars_os()));
    let mut last: BTreeMap<(String, String), Default> = BTreeMap::new();
    for default in found {
        last.insert((default.verb.clone(), default.option.clone()), default);
    }
    Ok(last.into_values().filter(|default| !default.off).collect())
}

fn of_file(path: &Path, text: &[u8]) -> Result<Vec<Default>, Usage> {
    let wrong = |what: String| Usage::new(format!("{}: {what}", path.display()));
    let text = std::str::from_utf8(text).map_err(|error| wrong(error.to_string()))?;
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| wrong(error.to_string().trim().to_owned()))?;
    let command = Options::command();
    let mut found = Vec::new();
    for (verb, options) in &table {
        let known = command.find_subcommand(verb).filter(|verb| !verb.is_hide_set());
        let known = known.ok_or_else(|| wrong(format!("[{verb}] is not a verb of weft")))?;
        let toml::Value::Table(options) = options else {
            return Err(wrong(format!("{verb} must be a table: [{verb}]")));
        };
        for (option, value) in options {
            let place = format!("{verb}.{option}");
            let argument = known.get_arguments().find(|argument| argument.get_long() == Some(option.as_str()));
            let argument = argument.ok_or_else(|| wrong(format!("{place}: weft {verb} has no option --{option}")))?;
            let values = match (value, argument.get_action()) {
                (toml::Value::Boolean(_), ArgAction::SetTrue) => Some(Vec::new()),
                (_, ArgAction::SetTrue) => None,
                (toml::Value::Array(list), ArgAction::Append) => list.iter().map(plain).collect(),
                (one, _) => plain(one).map(|one| vec![one]),
            };
            let values = values.ok_or_else(|| wrong(format!("{place}: this is not a value of --{option}")))?;
            let off = value == &toml::Value::Boolean(false);
            let origin = Origin::File(path.to_owned());
            found.push(Default { verb: verb.clone(), option: option.clone(), values, off, origin });
        }
    }
    Ok(found)
}

/// A value as a word of a command line.
fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

/// `WEFT_RUN_SAMPLE=1s`, `WEFT_RUN_NO_ARGS=1`; other variables that begin so are no options.
fn of_environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<Default> {
    let set: BTreeMap<OsString, OsString> =
        variables.filter(|(name, value)| name.as_encoded_bytes().starts_with(b"WEFT_") && !value.is_empty()).collect();
    if set.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for verb in Options::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
        for argument in verb.get_arguments() {
            let Some(option) = argument.get_long() else { continue };
            let name = variable(verb.get_name(), option);
            let Some(value) = set.get(OsStr::new(&name)).map(|value| value.to_string_lossy().into_owned()) else {
                continue;
            };
            let flag = matches!(argument.get_action(), ArgAction::SetTrue);
            let off = flag && matches!(value.as_str(), "0" | "false" | "no" | "off");
            found.push(Default {
                verb: verb.get_name().to_owned(),
                option: option.to_owned(),
                values: if flag { Vec::new() } else { vec![value] },
                off,
                origin: Origin::Variable(name),
            });
        }
    }
    found
}

/// The variable of an option.
fn variable(verb: &str, option: &str) -> String {
    format!("WEFT_{verb}_{option}").replace('-', "_").to_uppercase()
}

/// Parses a command line together with defaults of options that it does not give.
fn with_defaults(given: &[OsString], defaults: &[Default]) -> Result<ArgMatches, clap::Error> {
    let mut command = Options::command();
    let mut matches = command.clone().try_get_matches_from(given)?;
    let Some((verb, _)) = matches.subcommand().map(|(verb, own)| (verb.to_owned(), own)) else { return Ok(matches) };
    // Options stand behind the verb; what comes then may be a program with options of its own.
    let Some(at) = given.iter().position(|word| word == OsStr::new(&verb)) else { return Ok(matches) };
    let known = command.find_subcommand(&verb).cloned();
    let mut words = given.to_vec();
    for default in defaults.iter().filter(|default| default.verb == verb) {
        let id = known.as_ref().and_then(|known| {
            let found = known.get_arguments().find(|argument| argument.get_long() == Some(default.option.as_str()));
            found.map(|argument| argument.get_id().clone())
        });
        let given_already = id.is_some_and(|id| {
            let own = matches.subcommand().map(|(_, own)| own);
            own.is_some_and(|own| own.value_source(id.as_str()) == Some(ValueSource::CommandLine))
        });
        if given_already {
            continue;
        }
        let mut longer = words.clone();
        let option = format!("--{}", default.option);
        let more: Vec<OsString> = match default.values.is_empty() {
            true => vec![option.into()],
            false => default.values.iter().map(|value| format!("{option}={value}").into()).collect(),
        };
        longer.splice(at + 1..at + 1, more);
        match command.clone().try_get_matches_from(&longer) {
            Ok(found) => (matches, words) = (found, longer),
            Err(error) if error.kind() == ErrorKind::ArgumentConflict => {}
            Err(error) => {
                let why = format!("{}: default of weft {verb}: {}", default.origin, error.render());
                return Err(command.error(error.kind(), why));
            }
        }
    }
    Ok(matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<Vec<Default>, String> {
        of_file(Path::new("/x/weftline.toml"), text.as_bytes()).map_err(|error| error.to_string())
    }

    /// A command line with the defaults of a file; what `weft run` then has: samples at all, their interval, exclusions.
    fn check(text: &str, line: &str, expected: (bool, &str, &[&str])) {
        let defaults: Vec<Default> = file(text).expect(text).into_iter().filter(|default| !default.off).collect();
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let matches = with_defaults(&words, &defaults).unwrap_or_else(|error| panic!("{line}: {error}"));
        let options = Options::from_arg_matches(&matches).expect("parsed");
        let crate::args::Command::Run(run) = options.command else { panic!("{line} is not weft run") };
        let sample = format!("{:?}", run.sample);
        let exclude: Vec<&str> = run.exclude.iter().map(String::as_str).collect();
        assert_eq!((run.no_sample, sample.as_str(), exclude.as_slice()), expected, "{text} {line}");
        assert_eq!(run.command, ["ls", "--sample", "9s"], "{line}");
    }

    #[test]
    fn the_command_line_counts_first() {
        let text = "[run]\nsample = \"2s\"\nexclude = [\"/proc/**\", \"/sys/**\"]\n[report]\ntop = 5\n";
        check(text, "weft run -- ls --sample 9s", (false, "2s", &["/proc/**", "/sys/**"]));
        check(text, "weft run --sample 3s ls --sample 9s", (false, "3s", &["/proc/**", "/sys/**"]));
        check(text, "weft run --exclude a -- ls --sample 9s", (false, "2s", &["a"]));
        check(text, "weft run --no-sample -- ls --sample 9s", (true, "500ms", &["/proc/**", "/sys/**"]));
        check("[run]\nno-sample = true\n", "weft run -- ls --sample 9s", (true, "500ms", &[]));
        check("[run]\nno-sample = false\n", "weft run -- ls --sample 9s", (false, "500ms", &[]));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("[runs]\n", "/x/weftline.toml: [runs] is not a verb of weft"),
            ("run = 1\n", "/x/weftline.toml: run must be a table: [run]"),
            ("[run]\nsampel = \"1s\"\n", "/x/weftline.toml: run.sampel: weft run has no option --sampel"),
            ("[run]\nno-sample = \"yes\"\n", "/x/weftline.toml: run.no-sample: this is not a value of --no-sample"),
            ("[run]\nsample = [1]\n", "/x/weftline.toml: run.sample: this is not a value of --sample"),
        ] {
            assert_eq!(file(text).expect_err(text), expected);
        }
        assert!(file("[run\n").expect_err("no TOML").contains("/x/weftline.toml: "));
        let defaults = file("[run]\nsample = \"often\"\n").expect("a text");
        let words: Vec<OsString> = ["weft", "run", "ls"].map(Into::into).to_vec();
        let error = with_defaults(&words, &defaults).expect_err("no time").to_string();
        assert!(error.contains("/x/weftline.toml") && error.contains("often"), "{error}");
    }

    #[test]
    fn variables_are_defaults_too() {
        let set =
            [("WEFT_RUN_SAMPLE", "4s"), ("WEFT_RUN_NO_ARGS", "1"), ("WEFT_RUN_SHARE", "0"), ("WEFT_RUN_TOP", "1")];
        let found = of_environment(set.into_iter().map(|(name, value)| (name.into(), value.into())));
        let mut sorted: Vec<_> = found
            .iter()
            .map(|one| (one.option.as_str(), one.values.join(","), one.off, one.origin.to_string()))
            .collect();
        sorted.sort();
        assert_eq!(
            sorted,
            [
                ("no-args", String::new(), false, "WEFT_RUN_NO_ARGS".to_owned()),
                ("sample", "4s".to_owned(), false, "WEFT_RUN_SAMPLE".to_owned()),
                ("share", String::new(), true, "WEFT_RUN_SHARE".to_owned()),
            ]
        );
    }
}
