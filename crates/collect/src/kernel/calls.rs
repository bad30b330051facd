//! The reported system calls, with their numbers on this machine. Their meaning and the positions of their arguments are in the
//! table of calls (`weftline_calls::kernel`); the kernel side (`bpf/weft.bpf.c`, `CALL_*`) gets each row as one number.

use libc::c_long;
use weftline_calls::kernel::{EVERYWHERE, KernelCall, X86_64};
use weftline_calls::kernel_calls;

macro_rules! define_numbers {
    (
        everywhere { $( $number:ident $name:ident $( . $method:ident $places:tt )* ; )* }
        x86_64 { $( $old_number:ident $old:ident $( . $old_method:ident $old_places:tt )* ; )* }
    ) => {
        const NUMBERS: &[c_long] = &[ $( libc::$number, )* ];
        #[cfg(target_arch = "x86_64")]
        const OLD_NUMBERS: &[c_long] = &[ $( libc::$old_number, )* ];
        #[cfg(not(target_arch = "x86_64"))]
        const OLD_NUMBERS: &[c_long] = &[];
    };
}
kernel_calls!(define_numbers);

/// All calls that the kernel side reports, by number.
pub(super) fn all() -> impl Iterator<Item = (u32, &'static KernelCall)> {
    let everywhere = NUMBERS.iter().zip(EVERYWHERE);
    everywhere.chain(OLD_NUMBERS.iter().zip(X86_64)).map(|(number, call)| (*number as u32, call))
}

/// The row as the kernel side takes it.
pub(super) fn rule(call: &KernelCall) -> u32 {
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    flag(call.reported, 1)
        | 2
        | flag(call.returns_file, 4)
        | flag(call.needs_file, 8)
        | u32::from(call.path) << 4
        | u32::from(call.second_path) << 8
        | u32::from(call.file) << 12
        | u32::from(call.second_file) << 16
}

/// The argument at a place.
pub(super) fn argument(place: u8, args: &[u64; 6]) -> Option<u64> {
    usize::from(place).checked_sub(1).and_then(|at| args.get(at)).copied()
}

/// The rows by number.
pub(super) struct Table {
    by_number: Vec<Option<&'static KernelCall>>,
}

impl Table {
    pub(super) fn new() -> Table {
        let mut by_number = vec![None; usize::from(u16::MAX) + 1];
        for (number, call) in all() {
            by_number[number as usize] = Some(call);
        }
        Table { by_number }
    }

    pub(super) fn get(&self, number: u16) -> Option<&'static KernelCall> {
        self.by_number[usize::from(number)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_the_kernel_side() {
        let mut seen = std::collections::HashSet::new();
        for (number, call) in all() {
            let name = call.info.name;
            assert!(number < 512, "{name}: the kernel side knows 512 calls");
            assert!(seen.insert(number), "{name} is told twice");
            for place in [call.path, call.second_path, call.file, call.second_file, call.size, call.offset] {
                assert!(place <= 6, "{name}: a call has six arguments");
            }
            assert!(call.second_path == 0 || call.path > 0, "{name}: a second path without a first");
            assert!(!(call.returns_file && call.second_file > 0), "{name}: the new file takes the second one's place");
        }
        assert_eq!(seen.len(), EVERYWHERE.len() + if cfg!(target_arch = "x86_64") { X86_64.len() } else { 0 });
    }
}
