//! Binds the hooks late: for a process that was started without LD_PRELOAD and loaded this library with `dlopen`.
//!
//! Calls reach a function of the C library through two kinds of places, and both are changed to point to its hook:
//! - The *symbol* in the table of the object that defines the function ([`exports`]). The loader looks it up there whenever it
//!   binds something: calls of loaded objects that were not made yet (lazy binding), all objects that `dlopen` brings
//!   later, their constructors included, and `dlsym`. So neither `dlopen` nor `dlsym` needs a hook, which would
//!   change what they do (both look at who calls them), and no hook has to look for new objects.
//! - The *slots* of loaded objects in which the loader has already stored the function's address ([`slots`]): the GOT, the table
//!   of the PLT, and initialised data such as SQLite's table of system calls.
//!
//! A place is changed only if it holds exactly the real function, and changed back only if it holds exactly the hook. So no state is
//! kept, objects that were unloaded in between do no harm, and values that others stored there stay. Only one
//! symbol is changed per function, the first one after the program itself: our hook calls another interposer's wrapper,
//! which finds its own next function (RTLD_NEXT) as before. Objects of other namespaces (`dlmopen`) have a C
//! library of their own and are not changed; pointers that a program has copied elsewhere keep their value.
//!
//! Binding and unbinding may run while other threads call, bind lazily, load and unload: each place changes by one atomic
//! store. A thread that is inside the loader's lazy binding at that moment may store the previous function;
//! a hook that is reached after unbinding still calls the real function. If the kernel refuses to make a page
//! writable (sealed memory, a security module), its places stay unchanged.
//!
//! Binding takes the loader's locks, so call it only where a program could call `dlopen`. Hooks never call it.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use weftline_calls::{CALLS, Operation, WATCHED, hooked_calls};
use weftline_recorder::table::binding;
use weftline_recorder::{process, sys, thread};

use crate::exclusive::Exclusive;
use crate::object::{self, Object};
use crate::{processes, resolve, variadic};

mod exports;
mod slots;

/// Room for all functions that this library exports.
const MOST: usize = 512;
const _: () = assert!(CALLS.len() + WATCHED.len() + 64 <= MOST, "more hooks than room");

/// What is known of a hook's real function.
struct Hook {
    /// Its address; 0 before the first binding, or when there is none.
    real: AtomicUsize,
    /// Its entry in the symbol table of the object that defines it …
    symbol: AtomicUsize,
    /// … which is this one of [`resolve::objects`].
    definer: AtomicU32,
}

/// By index in this library's own symbol table: that is the list of hooks.
static KNOWN: [Hook; MOST] =
    [const { Hook { real: AtomicUsize::new(0), symbol: AtomicUsize::new(0), definer: AtomicU32::new(0) } }; MOST];

/// Names that this library exports for its own parts.
const INTERNAL: &[u8] = b"weft_";

/// Address of the real function, for one whose symbol may stand for its hook.
pub(crate) fn original(name: &CStr) -> Option<usize> {
    let hook = KNOWN.get(resolve::own().find(name, object::hash(name))?)?;
    Some(hook.real.load(Ordering::Acquire)).filter(|real| *real != 0)
}

/// The target state: which hooks are bound, where the real functions are.
struct Plan {
    own: &'static Object,
    bound: [bool; MOST],
    /// All real functions lie between these addresses.
    reals: core::ops::RangeInclusive<usize>,
}

impl Plan {
    fn make(wanted: u32) -> Plan {
        let own = resolve::own();
        let mut bound = [false; MOST];
        let (mut lowest, mut highest) = (usize::MAX, 0);
        for index in own.exported().filter(|index| *index < MOST) {
            let name = own.name(index);
            if !own.is_function(index) || name.to_bytes().starts_with(INTERNAL) {
                continue;
            }
            if let Some(real) = learn(&KNOWN[index], name) {
                (lowest, highest) = (lowest.min(real), highest.max(real));
                bound[index] = is_wanted(wanted, name);
            }
        }
        Plan { own, bound, reals: lowest..=highest }
    }

    /// Address of the real function behind a hook, and of the hook; `None` for symbols that are not hooks.
    fn both(&self, index: usize) -> Option<(usize, usize)> {
        let real = KNOWN.get(index)?.real.load(Ordering::Relaxed);
        (real != 0).then(|| (real, self.own.address(index)))
    }

    /// What a place for this hook is to hold, and what it holds otherwise.
    fn change(&self, index: usize) -> Option<(usize, usize)> {
        let (real, hook) = self.both(index)?;
        Some(if self.bound[index] { (hook, real) } else { (real, hook) })
    }
}

/// Looks the real function up, once; afterwards its symbol may say something else.
fn learn(hook: &Hook, name: &CStr) -> Option<usize> {
    let known = hook.real.load(Ordering::Relaxed);
    if known != 0 {
        return Some(known);
    }
    let (definer, symbol) = resolve::definition(name)?;
    let object = &resolve::objects()[definer];
    if !object.is_function(symbol) || skips_definer(name, definer) {
        return None;
    }
    hook.symbol.store(object.symbol(symbol) as usize, Ordering::Relaxed);
    hook.definer.store(definer as u32, Ordering::Relaxed);
    hook.real.store(object.address(symbol), Ordering::Release);
    Some(object.address(symbol))
}

/// Would the hook pass by the function that it stands for? Some hooks call another function of the same family; if an interposer has
/// wrapped the one and not the other, its wrapper must be called, so the hook is not bound.
fn skips_definer(name: &CStr, definer: usize) -> bool {
    let mut pairs = variadic::CALLED_INSTEAD.iter().chain(processes::CALLED_INSTEAD);
    let instead = pairs.find(|(hook, _)| hook.as_bytes() == name.to_bytes());
    let instead = instead.and_then(|(_, other)| CStr::from_bytes_with_nul(other.as_bytes()).ok());
    instead.is_some_and(|other| resolve::definition(other).is_none_or(|(object, _)| object != definer))
}

fn is_wanted(wanted: u32, name: &CStr) -> bool {
    match wanted {
        binding::NONE => false,
        binding::LIFE => is_of_life(name),
        _ => true,
    }
}

/// Takes from the table of calls those that concern the process itself. The whole table in this library would cost every program that
/// loads it 900 relocations.
macro_rules! define_life {
    (
        table $table:tt
        by_hand { Process { $( $hand:ident is $operation:ident $canonical:ident ; )* } $( $family:ident $others:tt )* }
        watched { $( $watched:ident )* }
    ) => {
        /// Names, and what the calls do; the watched ones have no operation.
        const OF_LIFE: &[(&str, Option<Operation>)] =
            &[ $( (stringify!($hand), Some(Operation::$operation)), )* $( (stringify!($watched), None), )* ];
    };
}
hooked_calls!(define_life);

/// Is the call needed to know that the process ends, or who shares its memory? `exit` and `exec` in all their forms end an image;
/// `fork`, `vfork` and `clone` make a process that must not end it for its parent; the watched calls say what the recorder may
/// still do. `posix_spawn` is none of these: its child is never seen.
fn is_of_life(name: &CStr) -> bool {
    let found = OF_LIFE.iter().find(|(one, _)| one.as_bytes() == name.to_bytes());
    found.is_some_and(|(_, operation)| *operation != Some(Operation::Spawn))
}

/// Binds what `wanted` says ([`binding`]) and unbinds all else. The number of places that hold a hook afterwards; where the library was
/// preloaded every call leads to it already, nothing is changed, and the number is that of the hooks. -1 when nothing could
/// be done.
pub(crate) extern "C" fn bind(wanted: u32) -> c_int {
    if wanted > binding::ALL || !process::unrestricted() || thread::state().in_vfork() {
        return -1;
    }
    let Some(_alone) = Exclusive::take() else { return -1 };
    let plan = Plan::make(wanted);
    if !resolve::is_late() {
        return plan.bound.iter().filter(|bound| **bound).count() as c_int;
    }
    // In this order: what is bound while the slots are gone through must find the right symbols already.
    let symbols = exports::change(&plan);
    symbols + slots::change(&plan)
}

/// Pages made writable for a while.
struct Unlocked {
    pages: core::ops::Range<usize>,
    protection: c_int,
}

impl Unlocked {
    /// Makes the pages of `range` writable, which are protected by `protection`; `None` when the kernel refuses.
    fn new(range: &core::ops::Range<usize>, protection: c_int) -> Option<Unlocked> {
        let page = page_size();
        let pages = range.start & !(page - 1)..(range.end + page - 1) & !(page - 1);
        protect(&pages, protection | libc::PROT_WRITE).then_some(Unlocked { pages, protection })
    }
}

impl Drop for Unlocked {
    fn drop(&mut self) {
        protect(&self.pages, self.protection);
    }
}

fn protect(pages: &core::ops::Range<usize>, protection: c_int) -> bool {
    let arguments = [pages.start, pages.len(), protection as usize, 0, 0, 0];
    // SAFETY: the pages are those of a loaded object, and stay readable throughout.
    unsafe { sys::syscall(libc::SYS_mprotect, arguments) }.is_ok()
}

fn page_size() -> usize {
    unsafe extern "C" {
        fn getauxval(kind: u64) -> u64;
    }
    // SAFETY: only looks at what the kernel told the process.
    (unsafe { getauxval(libc::AT_PAGESZ) } as usize).max(4096)
}
