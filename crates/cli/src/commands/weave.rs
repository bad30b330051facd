//! `weft weave`: executes a compiler with flags that weave calls of the recorder into the code.
//!
//! It replaces the compiler in a build (`CC="weft weave -- clang"`), so it runs for every use of the
//! compiler. If nothing is compiled or linked, it changes nothing.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use weftline_index::input;
use weftline_weaving::{Installation, WeaveOptions, command, setup, woven};

use crate::args::{FlagKind, WeaveArgs};
use crate::usage::Usage;
use crate::{parts, terminal};

/// Files that change what is compiled and that ccache cannot know of: it reads this list of paths.
pub(crate) const CCACHE_FILES: &str = "CCACHE_EXTRAFILES";

/// Runs the verb.
pub(crate) fn execute(args: &WeaveArgs) -> anyhow::Result<ExitCode> {
    let installation = Installation::around(parts::own_directory());
    if args.setup {
        let work = input::cache_directory().unwrap_or_else(|| std::env::temp_dir().join("weftline"));
        for plugin in setup::build(&args.command, &work.join("weave-build"), &installation)? {
            writeln!(std::io::stdout(), "{}", plugin.display())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let rules = rules(args.rules.as_deref())?;
    let options = WeaveOptions { abi: args.abi.into(), rules, all: args.all.unwrap_or(0) };
    if let Some(kind) = args.print_flags {
        return print(kind, &args.command, &options, &installation);
    }
    Ok(compile(&args.command, &options, &installation))
}

/// The list of rules by its full path: builds change directories.
fn rules(given: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let wrong =
        |path: &Path, error| Usage::error(format!("--rules {}: the file cannot be read: {error}", path.display()));
    let absolute = |path: &Path| path.canonicalize().map_err(|error| wrong(path, error));
    given.map(absolute).transpose()
}

/// Prints flags for builds that do not want a command before their compiler.
fn print(
    kind: FlagKind,
    command: &[OsString],
    options: &WeaveOptions,
    installation: &Installation,
) -> anyhow::Result<ExitCode> {
    let default = [OsString::from("clang")];
    let command = if command.is_empty() { &default } else { command };
    let which = (kind != FlagKind::Link, kind != FlagKind::Compile);
    let words = command::flags_for(command, options, installation, which)?;
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    writeln!(std::io::stdout(), "{}", words.join(" "))?;
    Ok(ExitCode::SUCCESS)
}

/// A word as a shell and make take it.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=+/.,:@%".contains(letter);
    if word.chars().all(is_plain) { word.into_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Becomes the compiler. Returns only when that failed, with the exit code that a shell would give.
fn compile(command: &[OsString], options: &WeaveOptions, installation: &Installation) -> ExitCode {
    let woven = match woven(command, options, installation) {
        Ok(woven) => woven,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "weft: {}", terminal::chain(&error.into()));
            return ExitCode::FAILURE;
        }
    };
    if woven.by_gcc {
        let _ = writeln!(
            std::io::stderr(),
            "weft: {} cannot be woven with, it runs as it is; with gcc use WEFT_FUNCTION() of weft.h, or weft::Span of weft.hpp (docs/weave.md)",
            command[0].display()
        );
    }
    let mut compiler = Command::new(&command[0]);
    compiler.args(&woven.arguments);
    if !woven.files.is_empty() {
        let known = std::env::var_os(CCACHE_FILES).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Ok(list) = std::env::join_paths(known.into_iter().chain(woven.files)) {
            compiler.env(CCACHE_FILES, list);
        }
    }
    let error = compiler.exec();
    let _ = writeln!(std::io::stderr(), "weft: cannot start {}: {error}", command[0].display());
    ExitCode::from(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        for (word, expected) in [("-O2", "-O2"), ("/a b/c", "'/a b/c'"), ("it's", r"'it'\''s'"), ("a$b", "'a$b'")] {
            assert_eq!(quoted(OsStr::new(word)), expected);
        }
    }
}
