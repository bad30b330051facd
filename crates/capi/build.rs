//! Gives the shared library its name for the loader: programs keep working with every later version 0.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libweft.so.0");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
}
