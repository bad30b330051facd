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
    // Places all over the process may hold addresses of hooks, and thread ends are told to it: `dlclose` must not unload it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libweft_preload.so");
}
