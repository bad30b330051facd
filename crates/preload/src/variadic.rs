//! The exported ends of the C shim (`shim/variadic.c`), and the Rust ends that it calls.

use core::ffi::{c_char, c_int, c_void};

use libc::FILE;
use weftline_calls::Call;
use weftline_recorder::clock;

use crate::hooks::{Outcome, Recipe, real};
use crate::{life, streams};

/// Exports a symbol that jumps to a hidden C function: registers and stack stay as the caller made them, so every argument
/// arrives bit for bit.
macro_rules! jumps {
    ($($name:ident => $target:ident;)*) => { $(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!("jmp {target}", target = sym $target);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!("b {target}", target = sym $target);
        }
    )*
        unsafe extern "C" { $( fn $target(); )* }
    };
}

jumps! {
    fprintf => weft_c_fprintf;
    __fprintf_chk => weft_c_fprintf_chk;
    printf => weft_c_printf;
    __printf_chk => weft_c_printf_chk;
    dprintf => weft_c_dprintf;
    __dprintf_chk => weft_c_dprintf_chk;
    fscanf => weft_c_fscanf;
    __isoc99_fscanf => weft_c_isoc99_fscanf;
    __isoc23_fscanf => weft_c_isoc23_fscanf;
    scanf => weft_c_scanf;
    __isoc99_scanf => weft_c_isoc99_scanf;
    __isoc23_scanf => weft_c_isoc23_scanf;
    execl => weft_c_execl;
    execlp => weft_c_execlp;
    execle => weft_c_execle;
}

/// Times the real `v` function and records it under the name that the program called.
fn timed(call: Call, recipe: impl Recipe, run: impl FnOnce() -> c_int) -> c_int {
    if !life::recording() {
        return run();
    }
    let start = clock::ticks();
    let ret = run();
    recipe.store(call, start, clock::ticks(), ret.number(), ret.bits());
    ret
}

/// A `va_list` as C passes it on both architectures: by address.
type Arguments = *mut c_void;
type Text = *const c_char;

/// Defines what the shim calls.
macro_rules! ends {
    ($($name:ident ( $($arg:ident : $ty:ty),* ) $recipe:expr => $call:ident by $real:ident;)*) => {
        /// Hooks that call another real function than their own, and which (with its NUL).
        pub(crate) const CALLED_INSTEAD: &[(&str, &str)] = &[ $( (stringify!($call), concat!(stringify!($real), "\0")) ),* ];
    $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
            let real = real!($real($($ty),*) -> c_int);
            // SAFETY: the program's own arguments, for the real function that takes them as a va_list.
            timed(Call::$call, $recipe, || unsafe { real($($arg),*) })
        }
    )* };
}

ends! {
    weft_vfprintf(stream: *mut FILE, format: Text, args: Arguments) streams::write_bytes(stream) => fprintf by vfprintf;
    weft_vfprintf_chk(stream: *mut FILE, flag: c_int, format: Text, args: Arguments) streams::write_bytes(stream) => __fprintf_chk by __vfprintf_chk;
    weft_vprintf(format: Text, args: Arguments) streams::write_standard() => printf by vprintf;
    weft_vprintf_chk(flag: c_int, format: Text, args: Arguments) streams::write_standard() => __printf_chk by __vprintf_chk;
    weft_vdprintf(fd: c_int, format: Text, args: Arguments) streams::write_formatted(fd) => dprintf by vdprintf;
    weft_vdprintf_chk(fd: c_int, flag: c_int, format: Text, args: Arguments) streams::write_formatted(fd) => __dprintf_chk by __vdprintf_chk;
    weft_vfscanf(stream: *mut FILE, format: Text, args: Arguments) streams::scan(stream) => fscanf by vfscanf;
    weft_isoc99_vfscanf(stream: *mut FILE, format: Text, args: Arguments) streams::scan(stream) => __isoc99_fscanf by __isoc99_vfscanf;
    weft_isoc23_vfscanf(stream: *mut FILE, format: Text, args: Arguments) streams::scan(stream) => __isoc23_fscanf by __isoc23_vfscanf;
    weft_vscanf(format: Text, args: Arguments) streams::scan_standard() => scanf by vscanf;
    weft_isoc99_vscanf(format: Text, args: Arguments) streams::scan_standard() => __isoc99_scanf by __isoc99_vscanf;
    weft_isoc23_vscanf(format: Text, args: Arguments) streams::scan_standard() => __isoc23_scanf by __isoc23_vscanf;
}
