//! clang of one major with its plugin, and what a woven program told.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

/// One major of LLVM.
pub(crate) struct Toolchain {
    pub(crate) major: u32,
    plugin: PathBuf,
    /// What is compiled goes here.
    pub(crate) work: TempDir,
    runtime: OnceLock<PathBuf>,
}

/// All that tools/weave.sh built plugins for. A missing compiler is an error: nothing is left out silently.
pub(crate) fn toolchains() -> Vec<Toolchain> {
    let variable = |name: &str| {
        std::env::var(name)
            .unwrap_or_else(|_| panic!("{name} is not set: these tests are run by tools/weave.sh --test"))
    };
    let (directory, majors) = (PathBuf::from(variable("WEFT_WEAVE_DIR")), variable("WEFT_WEAVE_MAJORS"));
    let of = |major: &str| Toolchain {
        major: major.parse().expect("a major"),
        plugin: directory.join(major).join("libweft_weave.so"),
        work: TempDir::new().expect("a directory"),
        runtime: OnceLock::new(),
    };
    let found: Vec<Toolchain> = majors.split_whitespace().map(of).collect();
    assert!(!found.is_empty(), "WEFT_WEAVE_MAJORS names no major");
    found
}

/// A file of tests/programs.
pub(crate) fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Runs a command that must succeed; its stderr.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{printed}", output.status);
    printed
}

impl Toolchain {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// A program of this LLVM, such as `opt`.
    pub(crate) fn tool(&self, name: &str) -> Command {
        Command::new(format!("{name}-{}", self.major))
    }

    /// The compiler for a source file, without the plugin.
    pub(crate) fn bare(&self, source: &Path) -> Command {
        let is_cpp = source.extension().is_some_and(|extension| extension == "cpp");
        let mut command = self.tool(if is_cpp { "clang++" } else { "clang" });
        command.env_remove("LD_PRELOAD");
        if is_cpp {
            command.arg("-std=c++20");
        }
        command
    }

    /// The compiler with the plugin that has this file name.
    pub(crate) fn with_plugin(&self, source: &Path, name: &str) -> Command {
        let plugin = self.plugin.with_file_name(name);
        let mut command = self.bare(source);
        command.arg(format!("-fpass-plugin={}", plugin.display()));
        command.args(["-Xclang", "-load", "-Xclang"]).arg(plugin);
        command.args(["-mllvm", "-weft-weave-verify"]);
        command
    }

    /// Weaves a source file; what the compiler said.
    pub(crate) fn weave(&self, source: &str, flags: &[&str], output: &Path) -> String {
        let source = program(source);
        succeed(self.with_plugin(&source, "libweft_weave.so").args(flags).arg("-c").arg(&source).arg("-o").arg(output))
    }

    /// The runtime of the tests.
    pub(crate) fn runtime(&self) -> &Path {
        self.runtime.get_or_init(|| {
            let (source, object) = (program("runtime.c"), self.path("runtime.o"));
            succeed(self.bare(&source).arg("-c").arg(&source).arg("-o").arg(&object));
            object
        })
    }

    /// Links objects with the runtime.
    pub(crate) fn link(&self, objects: &[PathBuf], flags: &[&str], output: &Path) {
        let mut command = self.tool("clang++");
        succeed(command.args(flags).args(objects).arg(self.runtime()).args(["-pthread", "-o"]).arg(output));
    }

    /// Weaves the sources one by one and links them.
    pub(crate) fn build(&self, sources: &[&str], flags: &[&str]) -> PathBuf {
        let objects: Vec<PathBuf> = sources
            .iter()
            .map(|source| {
                let object = self.path(&format!("{source}.o"));
                self.weave(source, flags, &object);
                object
            })
            .collect();
        let linked = self.path(&format!("{}.program", sources[0]));
        self.link(&objects, &[], &linked);
        linked
    }

    /// A woven module as text.
    pub(crate) fn text_of(&self, source: &str, flags: &[&str]) -> String {
        let output = self.path("module.ll");
        self.weave(source, &[flags, &["-S", "-emit-llvm"]].concat(), &output);
        std::fs::read_to_string(output).expect("a module")
    }

    /// Runs a tool of this LLVM that must succeed.
    pub(crate) fn run_tool(&self, name: &str, arguments: &[&str]) -> String {
        succeed(self.tool(name).args(arguments))
    }

    /// Path of the plugin.
    pub(crate) fn plugin(&self) -> &str {
        self.plugin.to_str().expect("a path")
    }
}

/// What the runtime was told, in words: blanks in names are `_`.
pub(crate) fn run(program: &Path, scenario: &str, environment: &[(&str, &str)]) -> (String, ExitStatus) {
    let mut command = Command::new("timeout");
    command.arg("20").arg(program).arg(scenario).envs(environment.iter().copied());
    let Output { status, stderr, .. } = command.output().expect("timeout of coreutils");
    let is_ours =
        |line: &&str| ["+", "-", "!", ">", "<", "[", "B:", "E:", "WRONG"].iter().any(|start| line.starts_with(start));
    let printed = String::from_utf8_lossy(&stderr);
    let words: Vec<String> = printed.lines().filter(is_ours).map(|line| line.replace(' ', "_")).collect();
    (words.join(" "), status)
}

/// The `//= SCENARIO: words` of a program, for this major.
pub(crate) fn expectations(source: &str, major: u32) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(program(source)).expect("a program");
    let found: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("//= "))
        .filter_map(|line| {
            let (scenario, words) = line.split_once(':').expect("a colon");
            let (name, holds) = match *scenario.split(' ').collect::<Vec<_>>() {
                [name] => (name, true),
                [name, "clang", ">=", least] => (name, major >= least.parse().expect("a major")),
                [name, "clang", "<", above] => (name, major < above.parse().expect("a major")),
                _ => panic!("{line}"),
            };
            holds.then(|| (name.to_owned(), words.trim().to_owned()))
        })
        .collect();
    assert!(!found.is_empty(), "{source} says nothing of what is expected");
    found
}
