//! Builds the shim against one LLVM and links the plugin to that LLVM's own shared library.
//!
//! `WEFT_LLVM_CONFIG` names the `llvm-config` of the LLVM to build for; tools/weave.sh sets it for every major. clang must be linked to the
//! same library: a second copy of LLVM in the process would have its own options, passes and types.

use std::path::Path;
use std::process::Command;

/// The oldest LLVM whose plugin interface and utilities the shim knows.
const FLOOR: u32 = 14;

fn main() {
    println!("cargo:rerun-if-env-changed=WEFT_LLVM_CONFIG");
    println!("cargo:rerun-if-changed=shim/shim.cc");
    let program = std::env::var("WEFT_LLVM_CONFIG").unwrap_or_else(|_| "llvm-config".to_owned());
    if let Err(why) = build(&program) {
        // The one way for a build script to fail with a sentence.
        println!("cargo:error={why}");
        std::process::exit(1);
    }
}

fn build(program: &str) -> Result<(), String> {
    let ask = |question: &str| {
        let output = Command::new(program).args([question, "--link-shared"]).output();
        let output = output.map_err(|error| {
            format!("{program} cannot be run ({error}): install llvm-N-dev, or set WEFT_LLVM_CONFIG to its llvm-config")
        })?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(format!("{program} {question}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    };
    let version = ask("--version")?;
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let major = major.ok_or_else(|| format!("{program} --version says {version:?}, which is no version"))?;
    if major < FLOOR {
        return Err(format!("{program} is of LLVM {version}; the oldest that can be built for is {FLOOR}"));
    }
    let directory = ask("--libdir")?;
    // Before 19 the shared library has the major in its name; from 19 on both spellings exist, on Debian at least.
    let library = [format!("LLVM-{major}"), "LLVM".to_owned()]
        .into_iter()
        .find(|name| Path::new(&directory).join(format!("lib{name}.so")).exists())
        .ok_or_else(|| format!("there is no shared libLLVM of LLVM {version} in {directory}"))?;

    let mut shim = cc::Build::new();
    shim.cpp(true).std("c++17").flag("-fno-exceptions").define("NDEBUG", None).warnings(true);
    if !ask("--cxxflags")?.contains("-frtti") {
        shim.flag("-fno-rtti");
    }
    // As system headers, whose warnings are not ours.
    shim.flag("-isystem").flag(ask("--includedir")?).file("shim/shim.cc").compile("weft_weave_shim");

    println!("cargo:rustc-link-search=native={directory}");
    println!("cargo:rustc-link-lib=dylib={library}");
    // Without this a function that this LLVM does not have is noticed only inside clang.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
    // clang finds its library by a path of its own; `weft weave` compares both.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{directory}");
    println!("cargo:rustc-env=WEFT_LLVM_VERSION={version}");
    Ok(())
}
