//! Nothing to do: a package without a build script has no dependencies at build time, whose features are what this one is for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
