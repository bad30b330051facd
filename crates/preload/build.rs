//! Compiles the C shim of the truly variadic hooks.

fn main() {
    println!("cargo::rerun-if-changed=shim/variadic.c");
    cc::Build::new()
        .file("shim/variadic.c")
        .flag("-std=gnu11")
        .flag("-fvisibility=hidden")
        .flag("-fno-stack-protector")
        .flag("-U_FORTIFY_SOURCE")
        .opt_level(2)
        .warnings(true)
        .compile("weft_variadic");
    // Calls inside the library must not go through the hooks of another interposer, nor depend on lazy binding.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
    println!("cargo::rustc-cdylib-link-arg=-nostartfiles");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libweft_preload.so");
}
