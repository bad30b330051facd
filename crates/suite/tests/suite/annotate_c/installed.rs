//! Weftline as a user has it: installed by `tools/install.sh`, and programs compiled against that.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use weftline_testkit::compile::sources;
use weftline_testkit::product::{product, workspace};
use weftline_testkit::{Scratch, scratch};

/// What the product is made of besides the command.
const LIBRARIES: [&str; 5] =
    ["libweft_preload.so", "libweft.so", "libweft.a", "libdftracer_core.so", "libperfflow_runtime.so"];
/// What is installed from the checkout.
const FILES: [&str; 13] = [
    "tools/install.sh",
    "crates/capi/include/weft.h",
    "crates/capi/include/weft.hpp",
    "crates/capi/weft.pc.in",
    "crates/capi/cmake/WeftConfig.cmake",
    "crates/capi/cmake/WeftConfigVersion.cmake.in",
    "crates/capi/cmake/WeftlineConfig.cmake",
    "crates/capi/dftracer/include/dftracer/dftracer.h",
    "crates/capi/dftracer/cmake/dftracer-config.cmake",
    "crates/capi/dftracer/cmake/dftracer-config-version.cmake",
    "crates/capi/dftracer/weft-dftracer.pc.in",
    "crates/capi/perfflow/weft-perfflow.pc.in",
    "Cargo.toml",
];

/// The installation's prefix. It is made once for each state of the product and then moved to its place, which every
/// part of it must survive.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let mut key = DefaultHasher::new();
        let built = product().parent().expect("a directory");
        for library in LIBRARIES.map(|name| built.join(name)).iter().chain([&product().to_owned()]) {
            let data = fs::metadata(library)
                .unwrap_or_else(|error| panic!("{}: {error}; `make build` makes it", library.display()));
            (library, data.len(), data.mtime(), data.mtime_nsec()).hash(&mut key);
        }
        // Those of the majors that `make weave` found.
        for plugin in plugins(built) {
            let data = fs::metadata(&plugin).unwrap_or_else(|error| panic!("{}: {error}", plugin.display()));
            (plugin, data.len(), data.mtime(), data.mtime_nsec()).hash(&mut key);
        }
        for file in FILES.map(|name| workspace().join(name)) {
            fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())).hash(&mut key);
        }
        let place = scratch::base().join("installed").join(format!("{:016x}", key.finish()));
        if !place.is_dir() {
            install(&place);
        }
        place
    })
}

/// The weaver's plugins beside what was built, in order.
fn plugins(built: &Path) -> Vec<PathBuf> {
    let majors = fs::read_dir(built.with_file_name("weave")).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = majors.map(|major| major.path().join("libweft_weave.so")).collect();
    found.retain(|plugin| plugin.is_file());
    found.sort();
    found
}

fn install(place: &Path) {
    let unfinished = place.with_extension(std::process::id().to_string());
    fs::create_dir_all(&unfinished).unwrap_or_else(|error| panic!("{}: {error}", unfinished.display()));
    run(Command::new(workspace().join("tools/install.sh")).arg(product()).arg(&unfinished));
    // Tests of several processes may install at once: the first one wins, whole.
    if fs::rename(&unfinished, place).is_err() {
        assert!(place.is_dir(), "{} cannot be made", place.display());
        fs::remove_dir_all(&unfinished).unwrap_or_else(|error| panic!("{}: {error}", unfinished.display()));
    }
}

/// Runs a command that must succeed; what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{:?} is needed: {error}", command.get_program()));
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?} failed:\n{}{}", said(&output.stdout), said(&output.stderr));
    said(&output.stdout)
}

/// A directory with a library that stands in for NVIDIA's management library: two GPUs, the first 83 % busy with 3 GiB of its memory used.
pub(crate) fn gpus() -> Scratch {
    let scratch = Scratch::new("gpus");
    let source = workspace().join("crates/collect/tests/samplers/nvml_stub.c");
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o"])
        .arg(scratch.join("libnvidia-ml.so.1"))
        .arg(source));
    scratch
}

/// What a program is linked with.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Against {
    Weft,
    /// `libweft.a` inside the program.
    WeftArchive,
    Dftracer,
    Perfflow,
}

impl Against {
    fn flags(self) -> Vec<String> {
        let prefix = prefix().display();
        let compat = format!("{prefix}/lib/weftline/compat");
        let linked = |include: String, library: &str, name: &str| {
            vec![format!("-I{include}"), format!("-L{library}"), format!("-Wl,-rpath,{library}"), format!("-l{name}")]
        };
        match self {
            Against::Weft => linked(format!("{prefix}/include"), &format!("{prefix}/lib"), "weft"),
            Against::WeftArchive => {
                let mut flags = linked(format!("{prefix}/include"), &format!("{prefix}/lib"), ":libweft.a");
                flags.extend(["gcc_s", "util", "rt", "pthread", "m", "dl", "c"].map(|name| format!("-l{name}")));
                flags
            }
            Against::Dftracer => linked(format!("{compat}/include"), &format!("{compat}/lib"), "dftracer_core"),
            Against::Perfflow => linked(format!("{compat}/include"), &format!("{compat}/lib"), "perfflow_runtime"),
        }
    }
}

/// Compiles `programs/annotate/<source>` with a command such as `["gcc", "-std=c99"]`; warnings are errors. What was compiled
/// before from the same content is taken as it is.
pub(crate) fn program(source: &str, command: &[&str], against: Against) -> PathBuf {
    let path = sources().join("annotate").join(source);
    let content = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut key = DefaultHasher::new();
    (command, prefix(), content, format!("{against:?}")).hash(&mut key);
    let home = scratch::base().join("programs").join(format!("{:016x}", key.finish()));
    let program = home.join(source.replace('.', "_"));
    if !program.is_file() {
        fs::create_dir_all(&home).unwrap_or_else(|error| panic!("{}: {error}", home.display()));
        let unfinished = home.join(format!(".{}.{:?}", std::process::id(), std::thread::current().id()));
        let mut compiler = Command::new(command[0]);
        compiler.args(&command[1..]).args(["-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"]);
        compiler.arg("-o").arg(&unfinished).arg(&path).args(against.flags());
        run(&mut compiler);
        fs::rename(&unfinished, &program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    }
    program
}
