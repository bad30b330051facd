//! Expands the table of `weftline_calls::hooked` into exported functions.

use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

use libc::{AT_FDCWD, FILE, aiocb, dev_t, gid_t, iovec, mode_t, off64_t, pid_t, siginfo_t, size_t, ssize_t, uid_t};
use weftline_calls::{Call, hooked_calls};
use weftline_recorder::clock;
use weftline_recorder::layout::NO_OFFSET;
use weftline_recorder::thread::{self, Fields};

use crate::{errno, life, recipes, resolve, streams};

/// What `creat` adds.
const CREAT_FLAGS: c_int = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
/// What the `mkstemp` family adds.
const TEMP_FLAGS: c_int = libc::O_CREAT | libc::O_RDWR | libc::O_EXCL;

/// A result as the C library returns it.
pub(crate) trait Outcome: Copy {
    /// The result as a number, or -errno. For pointers: 0 or -errno.
    fn number(self) -> i64;
    /// The bits of a pointer result, for recipes that need it.
    fn bits(self) -> usize;
}

macro_rules! integer_outcome {
    ($($ty:ty),*) => { $(
        impl Outcome for $ty {
            #[inline(always)]
            fn number(self) -> i64 {
                if self == -1 { -i64::from(errno::get()) } else { self as i64 }
            }
            #[inline(always)]
            fn bits(self) -> usize {
                self as usize
            }
        }
    )* };
}
integer_outcome!(i32, i64, isize);

impl Outcome for size_t {
    fn number(self) -> i64 {
        self as i64
    }
    fn bits(self) -> usize {
        self
    }
}

impl Outcome for () {
    fn number(self) -> i64 {
        0
    }
    fn bits(self) -> usize {
        0
    }
}

impl<T> Outcome for *mut T {
    fn number(self) -> i64 {
        if self.is_null() || self as isize == -1 { -i64::from(errno::get()) } else { 0 }
    }
    fn bits(self) -> usize {
        self as usize
    }
}

/// What a shape does around the real call: made before it, asked after it.
pub(crate) trait Recipe: Sized {
    /// The event's fields; `None` when there is nothing to record.
    fn after(self, ret: i64, bits: usize) -> Option<Fields>;

    /// Stores the event. Only character-level calls do this differently.
    #[inline(always)]
    fn store(self, call: Call, start: u64, end: u64, ret: i64, bits: usize) {
        if let Some(fields) = self.after(ret, bits) {
            thread::record(call, start, end, &fields);
        }
    }
}

/// A real function as a callable, typed by its hook.
macro_rules! real {
    ($name:ident ( $($ty:ty),* ) -> $ret:ty) => {{
        static REAL: crate::resolve::Real = {
            const NAME: &str = concat!(stringify!($name), "\0");
            match core::ffi::CStr::from_bytes_with_nul(NAME.as_bytes()) {
                Ok(name) => crate::resolve::Real::new(name),
                Err(_) => panic!("a name with a NUL in it"),
            }
        };
        // SAFETY: the resolver found the function of exactly this name, and the table gives its C signature.
        unsafe { core::mem::transmute::<usize, unsafe extern "C" fn($($ty),*) -> $ret>(REAL.get()) }
    }};
}
pub(crate) use real;

macro_rules! define_hooks {
    (
        table { $( $family:ident { $(
            $name:ident ( $($arg:ident : $ty:ty),* ) -> $ret:ty => $shape:ident ( $($given:expr),* ) is $operation:ident $canonical:ident $( [$detail:ident] )? ;
        )* } )* }
        by_hand $hand:tt
        watched $watched:tt
    ) => { $( $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            let real = real!($name($($ty),*) -> $ret);
            if !life::recording() {
                // SAFETY: the program's own arguments, for the function that it called.
                return unsafe { real($($arg),*) };
            }
            let recipe = shapes::$shape($($given as _),*);
            let start = clock::ticks();
            // SAFETY: the program's own arguments, for the function that it called.
            let ret = unsafe { real($($arg),*) };
            let end = clock::ticks();
            recipe.store(Call::$name, start, end, ret.number(), ret.bits());
            ret
        }
    )* )* };
}

/// All recipes under one roof, for the expansion.
mod shapes {
    pub(super) use super::recipes::*;
    pub(super) use super::streams::*;
}

hooked_calls!(define_hooks);

// `resolve` is used by the expansion of `real!`.
const _: fn() -> Option<&'static core::ffi::CStr> = resolve::own_path;
