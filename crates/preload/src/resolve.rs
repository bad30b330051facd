//! Finds the real functions behind the hooks.
//!
//! It does not use `dlsym`: before glibc 2.34 that is in another library, its versioned symbol would require a new glibc, and it may
//! allocate. Instead it reads the dynamic symbol tables of the objects that were loaded at program start, in the
//! loader's own search order. The list is taken once; later lookups need no lock, so they are safe in a signal handler
//! and in a child forked by a threaded program.
//!
//! If this library itself was loaded late, by `dlopen`, the list ends with the C library: all objects up to it were loaded at program
//! start, so they are never unloaded, and objects that were loaded later come after it in the search order. The real function is then
//! the same as if this library had been preloaded: the first one after the program itself.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::bind;
use crate::object::{self, Object, PhdrInfo};

/// Objects kept; libc is always among them.
const OBJECTS: usize = 96;
const LIBC: &[u8] = b"libc.so.6";

struct List {
    objects: [Object; OBJECTS],
    count: usize,
    /// Index of the first object behind this library in search order.
    next: usize,
    /// This library.
    own: Object,
    /// Its path as the loader knows it.
    own_path: *const c_char,
    has_libc: bool,
    /// This library stands behind libc in search order: nothing is bound to it.
    is_late: bool,
}

struct Objects(core::cell::UnsafeCell<List>);
// SAFETY: filled by the one caller that moves `READY` from 0 to 1, read only once it is 2.
unsafe impl Sync for Objects {}
static ALL: Objects = Objects(core::cell::UnsafeCell::new(List {
    objects: [Object::NONE; OBJECTS],
    count: 0,
    next: 0,
    own: Object::NONE,
    own_path: core::ptr::null(),
    has_libc: false,
    is_late: false,
}));
static READY: AtomicU32 = AtomicU32::new(0);

/// Takes the list, unless it was taken already.
pub(crate) fn prepare() {
    list();
}

fn list() -> &'static List {
    if READY.load(Ordering::Acquire) != 2 {
        if READY.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            // SAFETY: the list is ours while READY is 1.
            let list = unsafe { &mut *ALL.0.get() };
            object::each_loaded(|info| {
                list.add(info);
                true
            });
            READY.store(2, Ordering::Release);
        }
        while READY.load(Ordering::Acquire) != 2 {
            core::hint::spin_loop();
        }
    }
    // SAFETY: READY is 2, so the list is complete and nobody writes it.
    unsafe { &*ALL.0.get() }
}

impl List {
    fn add(&mut self, info: &PhdrInfo) {
        // SAFETY: the loader's description. Objects present at program start are never unloaded, nor is this library.
        let Some(object) = (unsafe { Object::of(info) }) else { return };
        if object.contains(List::add as *const () as usize) {
            self.own = object;
            self.own_path = info.name;
            self.is_late = self.has_libc;
            if !self.is_late {
                self.next = self.count;
            }
            return;
        }
        let own_is_known = !self.own_path.is_null();
        // Once libc has come and this library has not, all that follows may be unloaded. The vdso would give us kernel entry
        // points under libc's names.
        let passing = self.has_libc && !own_is_known || self.is_late;
        let is_libc = object.soname() == LIBC;
        let room = if is_libc { OBJECTS } else { OBJECTS - 1 };
        if passing || object.soname().starts_with(b"linux-vdso") || self.count >= room {
            return;
        }
        self.objects[self.count] = object;
        self.count += 1;
        self.has_libc |= is_libc;
        if self.count == 1 {
            // The program itself comes first, even before preloaded libraries.
            self.next = 1;
        }
    }

    fn find(&self, from: usize, name: &CStr) -> Option<(usize, usize)> {
        let hash = object::hash(name);
        let behind = self.objects[..self.count].iter().enumerate().skip(from);
        behind.filter_map(|(at, object)| Some((at, object.find(name, hash)?))).next()
    }
}

/// Path of this library, for the LD_PRELOAD of children.
pub(crate) fn own_path() -> Option<&'static CStr> {
    let at = list().own_path;
    // SAFETY: the loader's name of a library that is never unloaded.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) })
}

/// This library.
pub(crate) fn own() -> &'static Object {
    &list().own
}

/// Did this library come by `dlopen`, so that nothing is bound to it?
pub(crate) fn is_late() -> bool {
    list().is_late
}

/// The objects that are searched; they are never unloaded.
pub(crate) fn objects() -> &'static [Object] {
    let list = list();
    &list.objects[..list.count]
}

/// Where the function of this name is defined that the program would call without us: the object's place in [`objects`],
/// and the symbol's index there.
pub(crate) fn definition(name: &CStr) -> Option<(usize, usize)> {
    let list = list();
    list.find(list.next, name)
}

/// Address of the function that [`definition`] finds, also while the symbol stands for its hook.
pub(crate) fn next(name: &CStr) -> Option<usize> {
    bind::original(name).or_else(|| definition(name).map(|(at, symbol)| objects()[at].address(symbol)))
}

/// Address of `name` as the program itself sees it, for variables such as `stdout` and `environ`.
pub(crate) fn global(name: &CStr) -> Option<usize> {
    list().find(0, name).map(|(at, symbol)| objects()[at].address(symbol))
}

/// A real function, looked up at its first use.
pub(crate) struct Real {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Real {
        Real { name, address: AtomicUsize::new(0) }
    }

    /// Address of the real function; of a stand-in that fails with ENOSYS when this C library has none of that name.
    #[inline(always)]
    pub(crate) fn get(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.find(),
            address => address,
        }
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> usize {
        let address = next(self.name).unwrap_or(missing as *const () as usize);
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

/// Stands in for functions that this C library does not have.
extern "C" fn missing() -> isize {
    crate::errno::set(libc::ENOSYS);
    -1
}
