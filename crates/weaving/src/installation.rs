//! Where the plugins and the runtime libraries of an installation lie.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::compiler::Llvm;
use crate::flags::Abi;
use crate::line::Linking;
use crate::{Result, WeaveError};

/// File name of the plugin.
pub const PLUGIN: &str = "libweft_weave.so";
/// Names a directory with plugins, one directory for each major version of LLVM, where they are not with the command.
pub const PLUGINS_VARIABLE: &str = "WEFT_WEAVE_DIR";
/// Say where a user's data is, the first one first.
pub const DATA_VARIABLES: [&str; 2] = ["XDG_DATA_HOME", "HOME"];

/// From the directory of the command: an installation, a build tree (`target/release/weft`, `target/weave`), a wheel.
const PLUGIN_PLACES: [&str; 3] = ["../lib/weftline/weave", "../weave", "../lib/weave"];
/// The same for the runtime libraries; a build tree has them beside the command.
const LIBRARY_PLACES: [&str; 2] = ["../lib", ""];
const DROP_IN_PLACES: [&str; 3] = ["../lib/weftline/compat/lib", "../lib", ""];

/// What lies around a `weft`.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The directory of the command; `None` where the system does not tell.
    command: Option<PathBuf>,
}

impl Installation {
    /// The one whose command lies in this directory.
    pub fn around(command: Option<PathBuf>) -> Installation {
        Installation { command }
    }

    fn command(&self) -> Result<&Path> {
        self.command.as_deref().ok_or(WeaveError::Nowhere)
    }

    /// Directories with plugins, the first one that has the right one counts.
    pub fn plugin_directories(&self) -> Result<Vec<PathBuf>> {
        let own = self.command()?;
        let given = std::env::var_os(PLUGINS_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        Ok(given.into_iter().chain(PLUGIN_PLACES.iter().map(|place| own.join(place))).chain(user_plugins()).collect())
    }

    /// Where a plugin may be put, the best place first: a directory that the user named, an installation that has room for plugins, the user's own.
    pub fn places_for_plugins(&self) -> Result<Vec<PathBuf>> {
        let own = user_plugins();
        let is_place = |place: &PathBuf| Some(place) == own.as_ref() || place.parent().is_some_and(Path::is_dir);
        Ok(self.plugin_directories()?.into_iter().filter(is_place).collect())
    }

    /// The major versions of LLVM for which there is a plugin.
    pub fn plugin_majors(&self) -> BTreeSet<u32> {
        let places = self.plugin_directories().unwrap_or_default();
        let entries = places.iter().filter_map(|place| place.read_dir().ok()).flatten().flatten();
        let plugins = entries.filter(|entry| entry.path().join(PLUGIN).is_file());
        plugins.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// The plugin for a compiler with this libLLVM.
    pub fn plugin(&self, compiler: &Path, llvm: &Llvm) -> Result<PathBuf> {
        let places = self.plugin_directories()?;
        let files = places.iter().map(|place| place.join(llvm.major.to_string()).join(PLUGIN));
        let compiler = compiler.to_owned();
        let mut other = None;
        for file in files.filter(|file| file.is_file()) {
            match Llvm::of(&file)? {
                Some(theirs) if theirs.is_same(llvm) => return Ok(file.canonicalize().unwrap_or(file)),
                Some(theirs) => other = Some((file, theirs.shown())),
                None => other = Some((file, "no libLLVM".to_owned())),
            }
        }
        Err(match other {
            Some((plugin, theirs)) => WeaveError::OtherPlugin { compiler, llvm: llvm.shown(), plugin, theirs },
            None => WeaveError::NoPlugin { compiler, major: llvm.major },
        })
    }

    /// The library that woven programs are linked with: its directory and its name. `None` where nothing is linked.
    pub fn library(&self, abi: Abi, how: Linking) -> Result<Option<(PathBuf, &'static str)>> {
        let (places, file): (&[&str], &'static str) = match (abi, how) {
            (_, Linking::No) => return Ok(None),
            (Abi::Weft, Linking::Dynamic) => (&LIBRARY_PLACES, "libweft.so.0"),
            (Abi::Weft, Linking::Static) => (&LIBRARY_PLACES, "libweft.a"),
            (Abi::Perfflow, Linking::Dynamic) => (&DROP_IN_PLACES, "libperfflow_runtime.so"),
            (Abi::Perfflow, Linking::Static) => return Err(WeaveError::StaticPerfflow),
        };
        let own = self.command()?;
        let found = places.iter().map(|place| own.join(place)).find(|directory| directory.join(file).is_file());
        let directory = found.and_then(|directory| directory.canonicalize().ok());
        directory
            .map(|directory| Some((directory, file)))
            .ok_or_else(|| WeaveError::NoLibrary { file, directory: own.to_owned() })
    }
}

/// Where plugins of a user lie who may not write into the installation.
fn user_plugins() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let [data, home] = DATA_VARIABLES.map(given);
    let data = data.or_else(|| Some(home?.join(".local/share")))?;
    Some(data.join("weftline/weave"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_lie_around_the_command() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| place.path().join(name);
        for directory in ["bin", "lib/weftline/compat/lib"] {
            std::fs::create_dir_all(at(directory)).expect("made");
        }
        let installation = Installation::around(Some(at("bin")));
        let missing = installation.library(Abi::Weft, Linking::Dynamic);
        assert!(matches!(missing, Err(WeaveError::NoLibrary { file: "libweft.so.0", .. })), "{missing:?}");
        for (file, abi, how) in [
            ("lib/libweft.so.0", Abi::Weft, Linking::Dynamic),
            ("lib/libweft.a", Abi::Weft, Linking::Static),
            ("lib/weftline/compat/lib/libperfflow_runtime.so", Abi::Perfflow, Linking::Dynamic),
        ] {
            std::fs::write(at(file), "").expect("written");
            let (directory, name) = installation.library(abi, how).expect("found").expect("one is linked");
            assert_eq!(directory.join(name), at(file).canonicalize().expect("there"));
        }
        assert!(installation.library(Abi::Perfflow, Linking::No).expect("nothing to find").is_none());
        let cannot = installation.library(Abi::Perfflow, Linking::Static);
        assert!(matches!(cannot, Err(WeaveError::StaticPerfflow)), "{cannot:?}");
        let nowhere = Installation::around(None).library(Abi::Weft, Linking::Static);
        assert!(matches!(nowhere, Err(WeaveError::Nowhere)), "{nowhere:?}");
    }
}
