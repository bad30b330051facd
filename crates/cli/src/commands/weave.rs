//! `weft weave`: executes a compiler with flags that weave calls of the recorder into the code.
//!
//! It replaces the compiler in a build (`CC="weft weave -- clang"`), so it runs for every use of the
//! compiler. If nothing is compiled or linked, it changes nothing.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::args::{FlagKind, WeaveArgs};
use crate::terminal;
use crate::usage::Usage;
use crate::weaving::compiler::{self, Compiler};
use crate::weaving::flags::{self, WeaveOptions};
use crate::weaving::line::{self, Linking, Work};
use crate::weaving::setup;

/// Files that change what is compiled and that ccache cannot know of: it reads this list of paths.
pub(crate) const CCACHE_FILES: &str = "CCACHE_EXTRAFILES";

/// Runs the verb.
pub(crate) fn execute(args: &WeaveArgs) -> anyhow::Result<ExitCode> {
    if args.setup {
        for plugin in setup::build(&args.command)? {
            writeln!(std::io::stdout(), "{}", plugin.display())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let options = WeaveOptions { abi: args.abi, rules: rules(args.rules.as_deref())?, all: args.all.unwrap_or(0) };
    if let Some(kind) = args.print_flags {
        return print(kind, &args.command, &options);
    }
    Ok(compile(&args.command, &options))
}

/// The list of rules by its full path: builds change directories.
fn rules(given: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let wrong =
        |path: &Path, error| Usage::error(format!("--rules {}: the file cannot be read: {error}", path.display()));
    let absolute = |path: &Path| path.canonicalize().map_err(|error| wrong(path, error));
    given.map(absolute).transpose()
}

/// Prints flags for builds that do not want a command before their compiler.
fn print(kind: FlagKind, command: &[OsString], options: &WeaveOptions) -> anyhow::Result<ExitCode> {
    let default = [OsString::from("clang")];
    let Compiler::Clang { program, llvm } = compiler::identify(if command.is_empty() { &default } else { command })?
    else {
        anyhow::bail!("gcc cannot weave; use the macros of weft.h and weft.hpp")
    };
    let mut words = Vec::new();
    if kind != FlagKind::Link {
        words.extend(flags::compiling(&flags::plugin(&program, &llvm)?, options));
    }
    if kind != FlagKind::Compile {
        words.extend(flags::linking(options.abi, Linking::Dynamic, false)?);
    }
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
fn compile(command: &[OsString], options: &WeaveOptions) -> ExitCode {
    let words = match woven(command, options) {
        Ok(words) => words,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "weft: {}", terminal::chain(&error));
            return ExitCode::FAILURE;
        }
    };
    let mut compiler = Command::new(&command[0]);
    compiler.args(&words.arguments);
    if !words.files.is_empty() {
        let known = std::env::var_os(CCACHE_FILES).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Ok(list) = std::env::join_paths(known.into_iter().chain(words.files)) {
            compiler.env(CCACHE_FILES, list);
        }
    }
    let error = compiler.exec();
    let _ = writeln!(std::io::stderr(), "weft: cannot start {}: {error}", command[0].display());
    ExitCode::from(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}

/// A compiler's words with ours, and the files that took part.
struct Words {
    arguments: Vec<OsString>,
    files: Vec<PathBuf>,
}

fn woven(command: &[OsString], options: &WeaveOptions) -> anyhow::Result<Words> {
    let arguments = command[1..].to_vec();
    // `ccache clang -c a.c`: the compiler's name is no file of the command line.
    let behind = compiler::position(command);
    let work = line::work(&arguments[behind..]);
    if !work.compiles && work.links == Linking::No {
        return Ok(Words { arguments, files: Vec::new() });
    }
    match compiler::identify(command)? {
        Compiler::Clang { program, llvm } => {
            // Somebody has put the flags in already: `weft_weave` of CMake, `--print-flags`. Twice would be an error.
            let needs_plugin = work.compiles && !arguments.iter().any(|word| flags::loads_plugin(word));
            let plugin = if needs_plugin { Some(flags::plugin(&program, &llvm)?) } else { None };
            with_flags(arguments, behind, work, plugin, options)
        }
        Compiler::Gcc => {
            if work.compiles {
                let _ = writeln!(
                    std::io::stderr(),
                    "weft: {} cannot weave, so it compiles without; with gcc use WEFT_FUNCTION() of weft.h, or weft::Span of weft.hpp (docs/weave.md)",
                    command[0].display()
                );
            }
            Ok(Words { arguments, files: Vec::new() })
        }
    }
}

/// Flags of the plugin before all else, so that the user's own words stand behind them; the library behind all files.
fn with_flags(
    mut arguments: Vec<OsString>,
    behind: usize,
    work: Work,
    plugin: Option<PathBuf>,
    options: &WeaveOptions,
) -> anyhow::Result<Words> {
    let library = flags::linking(options.abi, work.links, work.files_from.is_none())?;
    let at = work.files_from.map_or(arguments.len(), |at| at + behind);
    arguments.splice(at..at, library);
    let mut files = Vec::new();
    if let Some(plugin) = plugin {
        arguments.splice(behind..behind, flags::compiling(&plugin, options));
        files.push(plugin);
        files.extend(options.rules.clone());
    }
    Ok(Words { arguments, files })
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
