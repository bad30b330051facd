//! Finds the real functions behind the hooks.
//!
//! Not `dlsym`: before glibc 2.34 that lives in another library, its versioned symbol would tie us to a new glibc, and it may
//! allocate. The dynamic symbol tables of the objects that were loaded at program start are read directly, in the
//! loader's own search order. The list is taken once; later lookups need no lock, so they are safe in a signal handler
//! and in a child forked by a threaded program.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Objects kept; libc is always among them.
const OBJECTS: usize = 96;
const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
const VERSION_HIDDEN: u16 = 0x8000;

#[derive(Clone, Copy)]
struct Object {
    base: usize,
    symbols: usize,
    strings: usize,
    hash: usize,
    versions: usize,
}

const NO_OBJECT: Object = Object { base: 0, symbols: 0, strings: 0, hash: 0, versions: 0 };

struct Objects(core::cell::UnsafeCell<[Object; OBJECTS]>);
// SAFETY: filled by the one caller that moves `READY` from 0 to 1, read only once it is 2.
unsafe impl Sync for Objects {}
static ALL: Objects = Objects(core::cell::UnsafeCell::new([NO_OBJECT; OBJECTS]));
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Index of the first object behind this library in search order.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static READY: AtomicU32 = AtomicU32::new(0);

/// Path of this library as the loader knows it (a C string that lives as long as the process), 0 when unknown.
static OWN_PATH: AtomicUsize = AtomicUsize::new(0);

#[repr(C)]
struct PhdrInfo {
    base: usize,
    name: *const c_char,
    headers: *const libc::Elf64_Phdr,
    count: u16,
}

unsafe extern "C" {
    fn dl_iterate_phdr(
        callback: unsafe extern "C" fn(*mut PhdrInfo, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// Path of this library, for the LD_PRELOAD of children.
pub(crate) fn own_path() -> Option<&'static CStr> {
    prepare();
    let at = OWN_PATH.load(Ordering::Relaxed) as *const c_char;
    // SAFETY: the loader's name of a library that is never unloaded.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) })
}

/// Address of `name` in the first object behind this library that defines it: what the program would call without us.
pub(crate) fn next(name: &CStr) -> Option<usize> {
    prepare();
    find(name, NEXT.load(Ordering::Relaxed))
}

/// Address of `name` as the program itself sees it, for variables such as `stdout` and `environ`.
pub(crate) fn global(name: &CStr) -> Option<usize> {
    prepare();
    find(name, 0)
}

fn prepare() {
    if READY.load(Ordering::Acquire) == 2 {
        return;
    }
    if READY.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        // SAFETY: the callback only reads what the loader hands it, and writes ALL, which is ours while READY is 1.
        unsafe { dl_iterate_phdr(collect, core::ptr::null_mut()) };
        READY.store(2, Ordering::Release);
    }
    while READY.load(Ordering::Acquire) != 2 {
        core::hint::spin_loop();
    }
}

unsafe extern "C" fn collect(info: *mut PhdrInfo, _size: usize, _data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid description whose tables stay mapped while the object is loaded; objects present at
    // program start are never unloaded.
    unsafe {
        let info = &*info;
        let headers = core::slice::from_raw_parts(info.headers, info.count as usize);
        let here = collect as *const () as usize;
        let is_self = headers.iter().any(|header| {
            let start = info.base + header.p_vaddr as usize;
            header.p_type == 1 && (start..start + header.p_memsz as usize).contains(&here)
        });
        let count = COUNT.load(Ordering::Relaxed);
        if is_self {
            OWN_PATH.store(info.name as usize, Ordering::Relaxed);
            NEXT.store(count, Ordering::Relaxed);
            return 0;
        }
        let name = if info.name.is_null() { &[][..] } else { CStr::from_ptr(info.name).to_bytes() };
        let is_libc = name.windows(7).any(|window| window == b"libc.so");
        // The vdso would give us kernel entry points under libc's names.
        if name.starts_with(b"linux-vdso") || (count + 1 >= OBJECTS && !is_libc) || count >= OBJECTS {
            return 0;
        }
        if let Some(object) =
            headers.iter().find(|header| header.p_type == PT_DYNAMIC).and_then(|header| describe(info.base, header))
        {
            (&mut *ALL.0.get())[count] = object;
            COUNT.store(count + 1, Ordering::Relaxed);
        }
        0
    }
}

unsafe fn describe(base: usize, header: &libc::Elf64_Phdr) -> Option<Object> {
    let mut object = Object { base, ..NO_OBJECT };
    let mut entry = (base + header.p_vaddr as usize) as *const [i64; 2];
    // SAFETY: a dynamic section ends with a zero tag.
    unsafe {
        while (*entry)[0] != 0 {
            let value = (*entry)[1] as usize;
            // The loader has turned these into addresses on glibc; prelinked or unusual objects keep offsets.
            let address = if value < base { base + value } else { value };
            match (*entry)[0] {
                DT_STRTAB => object.strings = address,
                DT_SYMTAB => object.symbols = address,
                DT_GNU_HASH => object.hash = address,
                DT_VERSYM => object.versions = address,
                _ => {}
            }
            entry = entry.add(1);
        }
    }
    (object.strings != 0 && object.symbols != 0 && object.hash != 0).then_some(object)
}

fn find(name: &CStr, from: usize) -> Option<usize> {
    let hash = name.to_bytes().iter().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
    // SAFETY: READY is 2, so the list is complete and nobody writes it.
    let objects = unsafe { &(&*ALL.0.get())[..COUNT.load(Ordering::Relaxed)] };
    // SAFETY: the tables belong to loaded objects.
    objects.get(from..)?.iter().find_map(|object| unsafe { lookup(object, name, hash) })
}

/// The GNU hash table: header {buckets, first symbol, bloom words, shift}, bloom filter, buckets, chains.
unsafe fn lookup(object: &Object, name: &CStr, hash: u32) -> Option<usize> {
    // SAFETY: the caller passes a loaded object; the layout is fixed by the ELF format.
    unsafe {
        let head = object.hash as *const u32;
        let (buckets, first, bloom, shift) = (*head, *head.add(1), *head.add(2), *head.add(3));
        let filter = head.add(4).cast::<u64>();
        if buckets == 0 || bloom == 0 {
            return None;
        }
        let word = *filter.add((hash as usize / 64) % bloom as usize);
        let mask = 1u64 << (hash % 64) | 1u64 << ((hash >> shift) % 64);
        if word & mask != mask {
            return None;
        }
        let bucket_table = filter.add(bloom as usize).cast::<u32>();
        let mut index = *bucket_table.add((hash % buckets) as usize);
        if index < first {
            return None;
        }
        let chains = bucket_table.add(buckets as usize);
        loop {
            let entry = *chains.add((index - first) as usize);
            if entry | 1 == hash | 1 {
                let symbol = &*(object.symbols as *const libc::Elf64_Sym).add(index as usize);
                let found = CStr::from_ptr((object.strings + symbol.st_name as usize) as *const c_char);
                // Old versions of a symbol are hidden; the one that a new program links to is not.
                let hidden =
                    object.versions != 0 && *(object.versions as *const u16).add(index as usize) & VERSION_HIDDEN != 0;
                if symbol.st_shndx != 0 && !hidden && found == name {
                    return Some(object.base + symbol.st_value as usize);
                }
            }
            if entry & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }
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
