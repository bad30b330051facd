//! The symbols by which the loader finds the real functions.
//!
//! A symbol's value is an offset from its object. While it is bound, the value is the distance to the hook, wrapping around the address
//! space if necessary: the loader adds the two without a check. The tables are read-only pages of a private mapping, which
//! become this process's own when they are written (libc's: 19 pages).

use core::ffi::c_int;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

use super::{KNOWN, Plan, Unlocked};
use crate::object::Object;
use crate::resolve;

/// Makes every symbol lead where the plan says; how many lead to a hook now.
pub(super) fn change(plan: &Plan) -> c_int {
    resolve::objects().iter().enumerate().map(|(definer, object)| change_in(definer, object, plan)).sum()
}

fn change_in(definer: usize, object: &Object, plan: &Plan) -> c_int {
    let of_object = |(index, hook): (usize, &'static super::Hook)| {
        let symbol = hook.symbol.load(Ordering::Relaxed);
        let is_here = symbol != 0 && hook.definer.load(Ordering::Relaxed) as usize == definer;
        is_here.then_some((symbol, index))
    };
    let symbols = || KNOWN.iter().enumerate().filter_map(of_object);
    // SAFETY: entries of the object's symbol table, which stays mapped; only this module writes them, and the values are aligned.
    let value =
        |symbol: usize| unsafe { AtomicU64::from_ptr((symbol + offset_of!(libc::Elf64_Sym, st_value)) as *mut u64) };
    let offset = |address: usize| address.wrapping_sub(object.base) as u64;

    let to_change = |(symbol, index): &(usize, usize)| {
        plan.change(*index).is_some_and(|(new, _)| value(*symbol).load(Ordering::Relaxed) != offset(new))
    };
    let first = symbols().filter(to_change).map(|(symbol, _)| symbol).min();
    let last = symbols().filter(to_change).map(|(symbol, _)| symbol).max();
    if let (Some(first), Some(last)) = (first, last) {
        let Some(protection) = object.protection(first) else { return 0 };
        let Some(_unlocked) = Unlocked::new(&(first..last + size_of::<libc::Elf64_Sym>()), protection) else {
            return 0;
        };
        for (symbol, index) in symbols().filter(to_change) {
            if let Some((new, old)) = plan.change(index) {
                let _ = value(symbol).compare_exchange(offset(old), offset(new), Ordering::Release, Ordering::Relaxed);
            }
        }
    }
    symbols().filter(|(_, index)| plan.bound[*index]).count() as c_int
}
