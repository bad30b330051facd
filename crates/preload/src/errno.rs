//! `errno`, which belongs to the program: read after a failed call, and changed only where a hook replaces a function.

unsafe extern "C" {
    fn __errno_location() -> *mut core::ffi::c_int;
}

/// The calling thread's `errno`.
pub(crate) fn get() -> i32 {
    // SAFETY: libc returns the address of the thread's own variable.
    unsafe { *__errno_location() }
}

/// Sets it, for functions that this library implements itself.
pub(crate) fn set(value: i32) {
    // SAFETY: as above.
    unsafe { *__errno_location() = value };
}
