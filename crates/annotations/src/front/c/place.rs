//! The path of the library that contains this code.
#![allow(unsafe_code, reason = "the dynamic loader knows where a library lies")]

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The file that this code was loaded from: a library, or the program that it is linked into.
pub fn own_path() -> PathBuf {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address of a function of this library; `info` is filled in when the result is not zero, and its path is a
    // C string of the loader's.
    let loaded = unsafe {
        let known = libc::dladdr(own_path as *const libc::c_void, info.as_mut_ptr()) != 0;
        let path = info.assume_init().dli_fname;
        (known && !path.is_null()).then(|| PathBuf::from(OsStr::from_bytes(CStr::from_ptr(path).to_bytes())))
    };
    // The loader calls a program by the name that it was started with, which may say nothing about its place.
    let real = loaded.filter(|path| path.components().count() > 1).and_then(|path| path.canonicalize().ok());
    real.or_else(|| std::env::current_exe().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_path_is_this_test() {
        assert_eq!(own_path(), std::env::current_exe().expect("a path"));
    }
}
