//! The caller's strings: C strings and byte ranges, trusted only to be readable.
#![allow(unsafe_code, reason = "the caller's pointers")]

use std::ffi::{CStr, c_char};

use crate::front::{self, Table};

/// Longest name, category or key; more is cut off.
const LONGEST_NAME: usize = 1024;

/// The bytes of a C string; `None` for NULL.
///
/// # Safety
/// `text` must be NULL or a C string that lives as long as `'a`.
#[inline(always)]
pub unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: the caller's word.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// The same with the zero at its end.
///
/// # Safety
/// As for [`bytes`].
pub unsafe fn c_string<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's word.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Name id of a name, category or key.
#[inline(always)]
pub fn name(table: &Table, name: &[u8]) -> u32 {
    front::intern(table, if name.len() > LONGEST_NAME { shortened(name) } else { name })
}

#[cold]
fn shortened(name: &[u8]) -> &[u8] {
    // Not in the middle of a character.
    let end = (LONGEST_NAME - 3..=LONGEST_NAME).rev().find(|end| name.get(*end).is_none_or(|byte| byte & 0xC0 != 0x80));
    name.get(..end.unwrap_or(LONGEST_NAME)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &[u8], kept: usize) {
        assert_eq!(shortened(name).len(), kept);
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        check(&[b'x'; 5000], 1024);
        check("é".repeat(600).as_bytes(), 1024);
        check(format!("x{}", "é".repeat(600)).as_bytes(), 1023);
        check(format!("xx{}", "𝄞".repeat(600)).as_bytes(), 1022);
        check(&[0x80; 3000], 1024);
    }
}
