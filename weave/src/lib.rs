//! `libweft_weave.so`: an LLVM pass that weaves calls of the recorder into functions, without changing their source except for an
//! optional annotation.
//!
//! clang loads it (`-fpass-plugin`), once for each translation unit, and calls [`weft_weave_module`] before it optimises. [`plan`] says which
//! functions are woven: those that are annotated ([`annotation`]), those that a list of rules names ([`rules`]), or all large ones. [`exits`]
//! finds the exits of a function, [`function`] inserts the calls, and [`runtime`] declares the called functions. [`llvm`] is the part of LLVM's
//! interface that is used; one build of the plugin belongs to one major version of LLVM.
//!
//! Options (`-mllvm`): `-weft-weave-abi=weft|perfflow`, `-weft-weave-rules=FILE`, `-weft-weave-all=N`. Loaded under the name of
//! PerfFlowAspect's plugin, `libWeavePass.so`, it calls PerfFlowAspect's runtime unless told otherwise.
//!
//! Limits:
//! - `longjmp` ends the function that calls it, not those that it jumps over. `exit` likewise: callers of the function never end.
//! - A call that does not return ends the function before it, unless it surely throws (`throw`, the helpers of libstdc++): nobody knows whether
//!   a `[[noreturn]]` function throws or ends the process. If that is woven too, it comes after its caller, not inside it.
//! - In C without `-fexceptions` nothing unwinds: `pthread_exit` ends the function that calls it, not its callers.
//! - Of a coroutine only the first part is woven, from its call to its first suspension; an exception out of that is no end.
//! - clang before 19 does not pass on annotations of constructors and destructors (14, 15 and 16 were tried); rules name them.
//! - Calls of a function that is declared `const` or `pure` may be joined or left out, as without weaving.

mod annotation;
mod exits;
mod function;
mod glob;
mod llvm;
mod name;
mod plan;
mod rules;
mod runtime;

use std::ffi::{c_char, c_int};
use std::path::Path;

use crate::llvm::{Module, PassBuilder};
use crate::plan::WeaveOptions;
use crate::rules::Rules;
use crate::runtime::{Abi, Runtime};

/// LLVM's `PassPluginLibraryInfo`.
#[repr(C)]
pub struct PluginInfo {
    api_version: u32,
    name: *const c_char,
    version: *const c_char,
    register: extern "C" fn(PassBuilder),
}

extern "C" fn register(builder: PassBuilder) {
    llvm::weft_shim_register(builder);
}

/// What LLVM asks a plugin for. In Rust, because rustc exports no symbols of the shim.
#[allow(unsafe_code, reason = "a name that LLVM looks for")]
// SAFETY: no other function of the process is found by this name: LLVM asks the library that it loaded.
#[unsafe(no_mangle)]
pub extern "C" fn llvmGetPassPluginInfo() -> PluginInfo {
    PluginInfo {
        api_version: llvm::weft_shim_api_version(),
        name: c"weft-weave".as_ptr(),
        version: concat!(env!("CARGO_PKG_VERSION"), " (LLVM ", env!("WEFT_LLVM_VERSION"), ")\0").as_ptr().cast(),
        register,
    }
}

/// The pass: weaves a module; 1 when it was changed.
#[allow(unsafe_code, reason = "a name that the shim calls")]
// SAFETY: only the shim declares it.
#[unsafe(no_mangle)]
extern "C" fn weft_weave_module(module: Module) -> c_int {
    match weave(module) {
        Ok(changed) => c_int::from(changed),
        Err(why) => {
            llvm::error(module, &why);
            0
        }
    }
}

/// Code for a GPU, which clang compiles along with the host's: the recorder is not there.
fn is_device(target: &str) -> bool {
    ["nvptx", "amdgcn", "amdgpu", "r600", "spir", "dxil"].iter().any(|device| target.starts_with(device))
}

fn weave(module: Module) -> Result<bool, String> {
    if is_device(&llvm::target(module)) {
        return Ok(false);
    }
    let abi = abi(&llvm::option_abi(), &llvm::own_path())?;
    let rules = match llvm::option_rules().as_str() {
        "" => Rules::default(),
        path => Rules::load(Path::new(path))?,
    };
    let options = WeaveOptions { rules, all: llvm::weft_shim_option_all() as usize };
    let woven = plan::of(module, &options);
    if woven.is_empty() {
        return Ok(false);
    }
    let mut runtime = Runtime::new(abi, module);
    let builder = llvm::LLVMCreateBuilderInContext(runtime.context);
    for woven in &woven {
        function::weave(&mut runtime, builder, woven);
    }
    llvm::LLVMDisposeBuilder(builder);
    match llvm::verify(module).filter(|_| llvm::weft_shim_option_verify() != 0) {
        Some(why) => Err(format!("the woven module is wrong: {why}")),
        None => Ok(true),
    }
}

fn abi(option: &str, own_path: &str) -> Result<Abi, String> {
    let is_old_name = Path::new(own_path).file_name().is_some_and(|name| name == "libWeavePass.so");
    match option {
        "" if is_old_name => Ok(Abi::Perfflow),
        "" | "weft" => Ok(Abi::Weft),
        "perfflow" => Ok(Abi::Perfflow),
        other => Err(format!("-weft-weave-abi is weft or perfflow, not {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_is_chosen() {
        let check =
            |option, path, expected: Option<Abi>| assert_eq!(abi(option, path).ok(), expected, "{option} {path}");
        check("", "/x/libweft_weave.so", Some(Abi::Weft));
        check("", "/x/libWeavePass.so", Some(Abi::Perfflow));
        check("weft", "/x/libWeavePass.so", Some(Abi::Weft));
        check("perfflow", "libweft_weave.so", Some(Abi::Perfflow));
        check("caliper", "libweft_weave.so", None);
    }

    #[test]
    fn devices_are_known() {
        let check = |target, expected| assert_eq!(is_device(target), expected, "{target}");
        check("nvptx64-nvidia-cuda", true);
        check("amdgcn-amd-amdhsa", true);
        check("spirv64", true);
        check("x86_64-pc-linux-gnu", false);
        check("aarch64-unknown-linux-gnu", false);
        check("", false);
    }
}
