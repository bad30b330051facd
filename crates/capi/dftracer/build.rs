//! Gives the library the name that programs linked with DFTracer's own library ask for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libdftracer_core.so.4.3.0");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
}
