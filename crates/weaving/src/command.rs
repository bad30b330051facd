//! A compiler's command with the flags that weave: what goes where among the user's own words.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::compiler::{self, Compiler};
use crate::flags::{self, WeaveOptions};
use crate::installation::Installation;
use crate::line::{self, Linking, Work};
use crate::{Result, WeaveError};

/// What to run in place of a compiler's command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Woven {
    /// All words behind the first, which stays.
    pub arguments: Vec<OsString>,
    /// Files of ours that decide what the compiler makes; a cache of objects cannot know of them by itself.
    pub files: Vec<PathBuf>,
    /// Something is compiled by gcc, which cannot weave: it runs as it is.
    pub by_gcc: bool,
}

/// The words of a command that compiles with the plugin and links with the library. A command that does neither stays as it is.
pub fn woven(command: &[OsString], options: &WeaveOptions, installation: &Installation) -> Result<Woven> {
    let arguments = command.get(1..).ok_or(WeaveError::NoCompiler)?.to_vec();
    // `ccache clang -c a.c`: the compiler's name is no file of the command line.
    let behind = compiler::position(command);
    let work = line::work(&arguments[behind..]);
    if !work.compiles && work.links == Linking::No {
        return Ok(Woven { arguments, ..Woven::default() });
    }
    match compiler::identify(command)? {
        Compiler::Clang { program, llvm } => {
            // Somebody has put the flags in already: `weft_weave` of CMake, `--print-flags`. Twice would be an error.
            let needs_plugin = work.compiles && !arguments.iter().any(|word| flags::loads_plugin(word));
            let plugin = if needs_plugin { Some(installation.plugin(&program, &llvm)?) } else { None };
            let library = flags::linking(installation, options.abi, work.links, work.files_from.is_none())?;
            Ok(with_flags(arguments, behind, work, plugin, library, options))
        }
        Compiler::Gcc => Ok(Woven { arguments, by_gcc: work.compiles, ..Woven::default() }),
    }
}

/// Flags of the plugin before all else, so that the user's own words stand behind them; the library behind all files.
fn with_flags(
    mut arguments: Vec<OsString>,
    behind: usize,
    work: Work,
    plugin: Option<PathBuf>,
    library: Vec<OsString>,
    options: &WeaveOptions,
) -> Woven {
    let at = work.files_from.map_or(arguments.len(), |at| at + behind);
    arguments.splice(at..at, library);
    let mut files = Vec::new();
    if let Some(plugin) = plugin {
        arguments.splice(behind..behind, flags::compiling(&plugin, options));
        files.push(plugin);
        files.extend(options.rules.clone());
    }
    Woven { arguments, files, by_gcc: false }
}

/// All flags for a compiler: for what it compiles, for what it links.
pub fn flags_for(
    command: &[OsString],
    options: &WeaveOptions,
    installation: &Installation,
    (compiles, links): (bool, bool),
) -> Result<Vec<OsString>> {
    let Compiler::Clang { program, llvm } = compiler::identify(command)? else {
        return Err(WeaveError::NoFlagsForGcc);
    };
    let mut words = Vec::new();
    if compiles {
        words.extend(flags::compiling(&installation.plugin(&program, &llvm)?, options));
    }
    if links {
        words.extend(flags::linking(installation, options.abi, Linking::Dynamic, false)?);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Abi;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn options() -> WeaveOptions {
        WeaveOptions { abi: Abi::Weft, rules: Some("/r.toml".into()), all: 0 }
    }

    /// Where the flags of a command go; `<` stands for those of the plugin, `>` for the library.
    fn check(command: &str, expected: &str) {
        let command = words(command);
        let arguments = command[1..].to_vec();
        let behind = compiler::position(&command);
        let work = line::work(&arguments[behind..]);
        let plugin = work.compiles.then(|| PathBuf::from("/p.so"));
        let library = if work.links == Linking::No { Vec::new() } else { words(">") };
        let woven = with_flags(arguments, behind, work, plugin.clone(), library, &options());
        let flags = flags::compiling(&PathBuf::from("/p.so"), &options());
        let mut shown = woven.arguments.clone();
        if plugin.is_some() {
            let at = shown.windows(flags.len()).position(|some| some == flags).expect("the plugin's flags");
            shown.splice(at..at + flags.len(), words("<"));
        }
        assert_eq!(shown, words(expected), "{command:?}");
        let files: &[PathBuf] = if plugin.is_some() { &["/p.so".into(), "/r.toml".into()] } else { &[] };
        assert_eq!(woven.files, files, "{command:?}");
    }

    #[test]
    fn flags_stand_around_the_users_words() {
        check("clang -O2 a.c", "< -O2 a.c >");
        check("clang -c a.c", "< -c a.c");
        check("clang a.o -o a", "a.o -o a >");
        check("ccache clang -c a.c", "clang < -c a.c");
        check("ccache clang a.c -- b.c", "clang < a.c > -- b.c");
    }

    #[test]
    fn what_neither_compiles_nor_links_needs_nothing() {
        let nowhere = Installation::around(None);
        let woven = woven(&words("no-such-compiler --version"), &options(), &nowhere).expect("nothing to find");
        assert_eq!(woven, Woven { arguments: words("--version"), ..Woven::default() });
        assert!(matches!(super::woven(&[], &options(), &nowhere), Err(WeaveError::NoCompiler)));
    }
}
