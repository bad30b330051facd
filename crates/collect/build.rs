//! Compiles `bpf/weft.bpf.c` for the kernel's virtual machine where the feature `kernel` is on. Only clang is needed: the
//! sources declare what they use.

use std::path::PathBuf;
use std::process::{Command, exit};

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=WEFT_CLANG");
    if std::env::var_os("CARGO_FEATURE_KERNEL").is_none() {
        return;
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| fail(&format!("cargo did not set {name}")));
    let architecture = match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => fail(&format!(
            "kernel tracepoints are written for x86-64 and arm64, not for {other}: build without the feature `kernel`"
        )),
    };
    let object = PathBuf::from(variable("OUT_DIR")).join("weft.bpf.o");
    let clang = std::env::var("WEFT_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let status = Command::new(&clang)
        .args(["-target", "bpfel", "-g", "-O2", "-Wall", "-Wextra", "-Werror"])
        .arg(format!("-D__TARGET_ARCH_{architecture}"))
        .args(["-c", "bpf/weft.bpf.c", "-o"])
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{clang} could not compile crates/collect/bpf/weft.bpf.c ({status})")),
        Err(error) => fail(&format!(
            "the feature `kernel` needs clang, and `{clang}` does not run ({error}): install it (Debian: apt-get install clang), \
             name another one in WEFT_CLANG, or build without the feature"
        )),
    }
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    exit(1)
}
