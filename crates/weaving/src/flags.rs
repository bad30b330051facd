//! The flags that bring the plugin and the runtime library into a compiler's work.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::installation::{Installation, PLUGIN};
use crate::line::Linking;

/// What woven code calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// `libweft.so`.
    Weft,
    /// `libperfflow_runtime.so`, as code woven by PerfFlowAspect does.
    Perfflow,
}

impl Abi {
    /// As the plugin's option spells it.
    fn name(self) -> &'static str {
        match self {
            Abi::Weft => "weft",
            Abi::Perfflow => "perfflow",
        }
    }
}

/// What the user wants woven.
#[derive(Clone, Debug)]
pub struct WeaveOptions {
    /// What woven code calls.
    pub abi: Abi,
    /// A list of functions to weave, by a path that holds in any directory.
    pub rules: Option<PathBuf>,
    /// Functions with at least so many instructions; 0: only what is annotated or named by a rule.
    pub all: u32,
}

/// Is this the flag that loads a plugin of ours?
pub fn loads_plugin(word: &OsStr) -> bool {
    word.as_bytes().strip_prefix(b"-fpass-plugin=").is_some_and(|file| file.ends_with(PLUGIN.as_bytes()))
}

/// Flags for what is compiled.
pub fn compiling(plugin: &Path, options: &WeaveOptions) -> Vec<OsString> {
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
pub fn linking(installation: &Installation, abi: Abi, how: Linking, last: bool) -> Result<Vec<OsString>> {
    let Some((directory, file)) = installation.library(abi, how)? else { return Ok(Vec::new()) };
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
