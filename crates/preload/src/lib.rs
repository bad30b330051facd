//! `libweft_preload.so`: hooks the C library's calls and records them.
//!
//! Loaded into the program with LD_PRELOAD, or late with `dlopen` by a front-end, which then starts it and binds its hooks through the
//! recorder's table ([`life`], [`bind`]); nobody links it (its exports would interpose the linker's own program). The
//! table of hooks is `weftline_calls::hooked`; [`hooks`] expands it into exported functions, and each line's shape is a
//! *recipe* in [`recipes`] or [`streams`]: what to read before the call, and what to store after it. Calls that make
//! or replace processes are written by hand in [`processes`], variadic ones in [`variadic`], those that are only watched in [`watched`].
//!
//! Every hook must keep these rules:
//! - The program's arguments go through unchanged and its result comes back unchanged; `errno` is what the real call left.
//! - It reads a pointer of the program only after the real call accepted it (not EFAULT).
//! - No allocation, no lock, no libc function besides the real one. Raw system calls only in the cold paths, and none at
//!   all once the program has put a seccomp filter on itself.
//! - Frames hold nothing that needs unwinding: a cancelled thread (`pthread_cancel` in `read`) unwinds through them.
//!
//! `no_std` where nothing unwinds, that is in the profile `inject`: no libgcc_s, no glibc newer than 2.17 needed. Under other
//! profiles the same code is compiled against std, for clippy and rust-analyzer only.
#![cfg_attr(panic = "abort", no_std)]

mod bind;
mod environment;
mod errno;
mod exclusive;
mod files;
mod foreign;
mod hooks;
mod life;
mod mappings;
mod object;
mod processes;
mod recipes;
mod resolve;
mod streams;
mod variadic;
mod watched;

#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // Unreachable by construction: hooks index checked ranges only. If it is reached, end like an assertion would.
    // SAFETY: a raw system call that does not return.
    unsafe {
        let pid = weftline_recorder::sys::getpid() as usize;
        let tid = weftline_recorder::sys::gettid() as usize;
        let _ = weftline_recorder::sys::syscall(libc::SYS_tgkill, [pid, tid, libc::SIGABRT as usize, 0, 0, 0]);
    }
    loop {
        core::hint::spin_loop();
    }
}
