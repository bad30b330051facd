//! Gives the library the name that woven programs ask for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libperfflow_runtime.so");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
}
