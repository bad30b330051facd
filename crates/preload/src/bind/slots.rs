//! The places in loaded objects that hold the addresses of real functions.
//!
//! Only objects whose loading is finished may be touched: while another thread's `dlopen` relocates an object, pages that will be
//! read-only afterwards are still written, and making them so too early would kill the program. The loader does not say which
//! objects are finished, but it holds one of its locks from the beginning of a `dlopen` to the end. So this module counts the
//! objects and takes that lock once by a harmless call; then the counted objects are finished. Objects that were
//! added since were bound after the symbols had been changed, and need nothing.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use super::{Plan, Unlocked, page_size};
use crate::object::{self, Object, PhdrInfo};
use crate::resolve;

/// The C library itself: its calls of its own functions are not recorded, as under LD_PRELOAD.
const LEFT_ALONE: [&[u8]; 5] =
    [b"libc.so.6", b"libpthread.so.0", b"libdl.so.2", b"ld-linux-x86-64.so.2", b"ld-linux-aarch64.so.1"];

/// How often to begin again because an object was unloaded meanwhile.
const TRIES: u32 = 100;

/// The objects that are loaded: how many, and how many have been unloaded so far.
#[derive(Clone, Copy)]
struct Census {
    loaded: usize,
    unloaded: u64,
}

impl Census {
    fn take() -> Census {
        let mut census = Census { loaded: 0, unloaded: 0 };
        object::each_loaded(|info| {
            census = Census { loaded: census.loaded + 1, unloaded: info.unloaded };
            true
        });
        census
    }
}

/// Makes every slot hold what the plan says; how many hold a hook now.
pub(super) fn change(plan: &Plan) -> c_int {
    let mut bound = 0;
    for _ in 0..TRIES {
        let census = Census::take();
        if !wait_for_loader() {
            return 0;
        }
        bound = 0;
        let mut seen = 0;
        let mut is_current = true;
        object::each_loaded(|info| {
            is_current = info.unloaded == census.unloaded;
            seen += 1;
            if is_current && seen <= census.loaded {
                bound += change_in(info, plan);
            }
            is_current
        });
        if is_current {
            break;
        }
    }
    bound
}

/// Waits until every `dlopen` that is under way has finished; false when that cannot be done.
fn wait_for_loader() -> bool {
    type Find = unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void, *mut c_void) -> c_int;
    // The second is what the first called as long as it was in a library of its own, with two arguments more.
    let Some(find) = resolve::global(c"dladdr").or_else(|| resolve::global(c"_dl_addr")) else { return false };
    let mut out = [core::ptr::null_mut::<c_void>(); 4];
    // SAFETY: no object lies at this address, so nothing is found and `out`, a Dl_info, is not even written; what matters is the lock.
    unsafe {
        core::mem::transmute::<usize, Find>(find)(
            core::ptr::without_provenance(1),
            (&raw mut out).cast(),
            core::ptr::null_mut(),
            core::ptr::null_mut(),
        )
    };
    true
}

fn change_in(info: &PhdrInfo, plan: &Plan) -> c_int {
    // SAFETY: the loader's description of an object that stays loaded while its callback runs.
    let Some(object) = (unsafe { Object::of(info) }) else { return 0 };
    if LEFT_ALONE.contains(&object.soname()) || object.contains(change as *const () as usize) {
        return 0;
    }
    let read_only = object.read_only_after_relocation(page_size());
    let mut unlocked = None;
    let mut bound = 0;
    for (place, symbol) in object.places() {
        if place % align_of::<AtomicUsize>() != 0 {
            continue;
        }
        // SAFETY: an aligned place in the object that holds an address.
        let slot = unsafe { AtomicUsize::from_ptr(place as *mut usize) };
        let value = slot.load(Ordering::Relaxed);
        // Most places hold other things; a look at the value is cheaper than one at the name.
        if !plan.reals.contains(&value) && !plan.own.contains(value) {
            continue;
        }
        let name = object.name(symbol);
        let Some(index) = plan.own.find(name, object::hash(name)) else { continue };
        let Some((new, old)) = plan.change(index) else { continue };
        let mut holds_new = value == new;
        if value == old {
            if read_only.contains(&place) && unlocked.is_none() {
                unlocked = Unlocked::new(&read_only, libc::PROT_READ);
            }
            let segment = object.protection(place).unwrap_or(0);
            let is_writable =
                if read_only.contains(&place) { unlocked.is_some() } else { segment & libc::PROT_WRITE != 0 };
            holds_new = is_writable && slot.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed).is_ok();
        }
        bound += c_int::from(holds_new && plan.bound[index]);
    }
    bound
}
