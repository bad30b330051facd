//! The plugin and the runtime library of this installation, and the flags that bring them into a compiler's work.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::compiler::Llvm;
use super::line::Linking;
use crate::args::WeaveAbi;

/// File name of the plugin.
pub(crate) const PLUGIN: &str = "libweft_weave.so";
/// Names a directory with plugins, one directory for each major version of LLVM, where they are not with the command.
pub(crate) const PLUGINS_VARIABLE: &str = "WEFT_WEAVE_DIR";
/// Say where a user's data is, the first one first.
pub(crate) const DATA_VARIABLES: [&str; 2] = ["XDG_DATA_HOME", "HOME"];

/// From the directory of the command: an installation, a build tree (`target/release/weft`, `target/weave`), a wheel.
const PLUGIN_PLACES: [&str; 3] = ["../lib/weftline/weave", "../weave", "../lib/weave"];
/// The same for the runtime libraries; a build tree has them beside the command.
const LIBRARY_PLACES: [&str; 2] = ["../lib", ""];
const DROP_IN_PLACES: [&str; 3] = ["../lib/weftline/compat/lib", "../lib", ""];

/// What the user wants woven.
#[derive(Debug)]
pub(crate) struct WeaveOptions {
    pub(crate) abi: WeaveAbi,
    pub(crate) rules: Option<PathBuf>,
    /// Functions with at least so many instructions; 0: only what is annotated or named by a rule.
    pub(crate) all: u32,
}

/// The directory of the running command.
pub(crate) fn own_directory() -> anyhow::Result<PathBuf> {
    let command = std::env::current_exe().context("cannot find out where weft itself lies")?;
    let command = command.canonicalize().unwrap_or(command);
    Ok(command.parent().map(Path::to_owned).unwrap_or(command))
}

/// Where plugins of a user lie who may not write into the installation.
pub(crate) fn user_plugins() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let [data, home] = DATA_VARIABLES.map(given);
    let data = data.or_else(|| Some(home?.join(".local/share")))?;
    Some(data.join("weftline/weave"))
}

/// Directories with plugins, the first one that has the right one counts. `--setup` writes into the first of them that it may.
pub(crate) fn plugin_directories() -> anyhow::Result<Vec<PathBuf>> {
    let own = own_directory()?;
    let given = std::env::var_os(PLUGINS_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    Ok(given.into_iter().chain(PLUGIN_PLACES.iter().map(|place| own.join(place))).chain(user_plugins()).collect())
}

/// The major versions of LLVM for which there is a plugin.
pub(crate) fn plugin_majors() -> BTreeSet<u32> {
    let places = plugin_directories().unwrap_or_default();
    let entries = places.iter().filter_map(|place| place.read_dir().ok()).flatten().flatten();
    let plugins = entries.filter(|entry| entry.path().join(PLUGIN).is_file());
    plugins.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The plugin for a compiler with this libLLVM.
pub(crate) fn plugin(compiler: &Path, llvm: &Llvm) -> anyhow::Result<PathBuf> {
    let places = plugin_directories()?;
    let files = places.iter().map(|place| place.join(llvm.major.to_string()).join(PLUGIN));
    let mut other = None;
    for file in files.filter(|file| file.is_file()) {
        match Llvm::of(&file)? {
            Some(theirs) if theirs.is_same(llvm) => return Ok(file.canonicalize().unwrap_or(file)),
            Some(theirs) => other = Some((file, theirs.shown())),
            None => other = Some((file, "no libLLVM".to_owned())),
        }
    }
    match other {
        Some((file, theirs)) => bail!(
            "{} uses {}, and {} was built for {theirs}: they would not survive each other; `weft weave --setup -- {}` builds one that fits",
            compiler.display(),
            llvm.shown(),
            file.display(),
            compiler.display(),
        ),
        None => bail!(
            "there is no plugin for LLVM {}, which {} is; `weft weave --setup -- {}` builds it",
            llvm.major,
            compiler.display(),
            compiler.display()
        ),
    }
}

/// Is this the flag that loads a plugin of ours?
pub(crate) fn loads_plugin(word: &OsStr) -> bool {
    word.as_bytes().strip_prefix(b"-fpass-plugin=").is_some_and(|file| file.ends_with(PLUGIN.as_bytes()))
}

/// Flags for what is compiled.
pub(crate) fn compiling(plugin: &Path, options: &WeaveOptions) -> Vec<OsString> {
    let with = |begin: &str, path: &Path| -> OsString {
        let mut flag = OsString::from(begin);
        flag.push(path);
        flag
    };
    // Loaded as well by the front end, which alone hands options (-mllvm) to plugins that are there when it parses them.
    let mut flags =
        vec![with("-fpass-plugin=", plugin), "-Xclang".into(), "-load".into(), "-Xclang".into(), plugin.into()];
    // By -Xclang: a plain -mllvm also reaches the assembler and the linker's LTO, which know nothing of the plugin.
    let mut option = |flag: OsString| flags.extend(["-Xclang".into(), "-mllvm".into(), "-Xclang".into(), flag]);
    option(format!("-weft-weave-abi={}", options.abi.name()).into());
    if let Some(rules) = &options.rules {
        option(with("-weft-weave-rules=", rules));
    }
    if options.all > 0 {
        option(format!("-weft-weave-all={}", options.all).into());
    }
    flags
}

/// Flags for what is linked. `last`: they stand behind all files, so that the linker can leave the library out where nothing needs it.
pub(crate) fn linking(abi: WeaveAbi, how: Linking, last: bool) -> anyhow::Result<Vec<OsString>> {
    let (places, file): (&[&str], &str) = match (abi, how) {
        (_, Linking::No) => return Ok(Vec::new()),
        (WeaveAbi::Weft, Linking::Dynamic) => (&LIBRARY_PLACES, "libweft.so.0"),
        (WeaveAbi::Weft, Linking::Static) => (&LIBRARY_PLACES, "libweft.a"),
        (WeaveAbi::Perfflow, Linking::Dynamic) => (&DROP_IN_PLACES, "libperfflow_runtime.so"),
        (WeaveAbi::Perfflow, Linking::Static) => {
            bail!(
                "--abi perfflow needs libperfflow_runtime.so, which cannot be linked with -static; use the default ABI or leave -static out"
            )
        }
    };
    let own = own_directory()?;
    let found = places.iter().map(|place| own.join(place)).find(|directory| directory.join(file).is_file());
    let Some(directory) = found.and_then(|directory| directory.canonicalize().ok()) else {
        bail!("{file}, which woven programs need, is not with {}; install weft with `make install`", own.display())
    };
    let shown = directory.display();
    if how == Linking::Static {
        let system =
            ["gcc_eh", "util", "rt", "pthread", "m", "dl", "c"].map(|name| OsString::from(format!("-l{name}")));
        return Ok([OsString::from(format!("{shown}/{file}"))].into_iter().chain(system).collect());
    }
    let mut flags = vec![format!("-L{shown}"), format!("-Wl,-rpath,{shown}")];
    // By its full name: a build tree has no `libweft.so` that links would find under that name alone.
    let library = format!("-l:{file}");
    match last {
        true => flags.push(format!("-Wl,--push-state,--as-needed,{library},--pop-state")),
        false => flags.push(library),
    }
    Ok(flags.into_iter().map(OsString::from).collect())
}
