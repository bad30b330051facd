//! A loaded ELF object, as its program headers and dynamic section describe it in memory.
//!
//! Used by [`crate::resolve`] to find functions and by [`crate::bind`] to find the places that hold their addresses. All of it
//! reads tables that the loader has mapped; nothing here takes a lock or allocates.

use core::ffi::{CStr, c_char, c_int, c_void};

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_SONAME: i64 = 14;
const DT_JMPREL: i64 = 23;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
const VERSION_HIDDEN: u16 = 0x8000;

/// The facts of `dl_iterate_phdr` about an object.
#[repr(C)]
pub(crate) struct PhdrInfo {
    pub(crate) base: usize,
    pub(crate) name: *const c_char,
    headers: *const libc::Elf64_Phdr,
    count: u16,
    /// Objects loaded since the program started …
    _adds: u64,
    /// … and unloaded.
    pub(crate) unloaded: u64,
}

unsafe extern "C" {
    fn dl_iterate_phdr(
        callback: unsafe extern "C" fn(*mut PhdrInfo, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// Calls `each` for every object of this library's namespace, in the order in which they were loaded, until it returns false.
///
/// Takes a lock of the loader's: to be called where a program could call `dlopen`, never from a hook.
pub(crate) fn each_loaded<F: FnMut(&PhdrInfo) -> bool>(mut each: F) {
    unsafe extern "C" fn pass<F: FnMut(&PhdrInfo) -> bool>(
        info: *mut PhdrInfo,
        _size: usize,
        each: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid description and, as it came, the address of the closure below.
        c_int::from(!unsafe { (*each.cast::<F>())(&*info) })
    }
    // SAFETY: `pass::<F>` is given the address of an `F` that lives through the call.
    unsafe { dl_iterate_phdr(pass::<F>, (&raw mut each).cast()) };
}

/// One entry of a relocation table.
#[repr(C)]
pub(crate) struct Relocation {
    offset: u64,
    info: u64,
    _addend: i64,
}

/// Kinds of relocations that store the address of a function: in the table of the PLT, in the GOT, in data.
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u32; 3] = [7, 6, 1];
#[cfg(target_arch = "aarch64")]
const ADDRESSES: [u32; 3] = [1026, 1025, 257];

/// A loaded object. Valid as long as the object is loaded.
#[derive(Clone, Copy)]
pub(crate) struct Object {
    pub(crate) base: usize,
    headers: usize,
    header_count: usize,
    symbols: usize,
    strings: usize,
    hash: usize,
    versions: usize,
    soname: usize,
    /// Address and bytes of both tables: data and PLT.
    relocations: [(usize, usize); 2],
}

impl Object {
    pub(crate) const NONE: Object = Object {
        base: 0,
        headers: 0,
        header_count: 0,
        symbols: 0,
        strings: 0,
        hash: 0,
        versions: 0,
        soname: 0,
        relocations: [(0, 0); 2],
    };

    /// Reads the tables of an object; `None` for one without symbols.
    ///
    /// # Safety
    /// `info` must come from the loader, and the object must stay loaded while the result is used.
    pub(crate) unsafe fn of(info: &PhdrInfo) -> Option<Object> {
        let mut object =
            Object { base: info.base, headers: info.headers as usize, header_count: info.count.into(), ..Object::NONE };
        let dynamic = object.headers().iter().find(|header| header.p_type == PT_DYNAMIC)?;
        let mut entry = (info.base + dynamic.p_vaddr as usize) as *const [i64; 2];
        let mut soname = None;
        loop {
            // SAFETY: a dynamic section ends with a zero tag, behind which nothing is read.
            let [tag, value] = unsafe { *entry };
            let value = value as usize;
            // The loader has turned these into addresses on glibc; prelinked or unusual objects keep offsets.
            let address = if value < info.base { info.base + value } else { value };
            match tag {
                DT_NULL => break,
                DT_STRTAB => object.strings = address,
                DT_SYMTAB => object.symbols = address,
                DT_GNU_HASH => object.hash = address,
                DT_VERSYM => object.versions = address,
                DT_RELA => object.relocations[0].0 = address,
                DT_RELASZ => object.relocations[0].1 = value,
                DT_JMPREL => object.relocations[1].0 = address,
                DT_PLTRELSZ => object.relocations[1].1 = value,
                DT_SONAME => soname = Some(value),
                _ => {}
            }
            // SAFETY: as above.
            entry = unsafe { entry.add(1) };
        }
        object.soname = soname.map_or(0, |at| object.strings + at);
        (object.strings != 0 && object.symbols != 0).then_some(object)
    }

    fn headers(&self) -> &[libc::Elf64_Phdr] {
        if self.headers == 0 {
            return &[];
        }
        // SAFETY: the loader's own description of a loaded object.
        unsafe { core::slice::from_raw_parts(self.headers as *const libc::Elf64_Phdr, self.header_count) }
    }

    fn range(&self, header: &libc::Elf64_Phdr) -> core::ops::Range<usize> {
        let start = self.base + header.p_vaddr as usize;
        start..start + header.p_memsz as usize
    }

    /// Does `address` lie in the object?
    pub(crate) fn contains(&self, address: usize) -> bool {
        self.headers().iter().any(|header| header.p_type == PT_LOAD && self.range(header).contains(&address))
    }

    /// How the pages at `address` are protected by their segment.
    pub(crate) fn protection(&self, address: usize) -> Option<c_int> {
        let segment =
            self.headers().iter().find(|header| header.p_type == PT_LOAD && self.range(header).contains(&address))?;
        let flag = |bit: u32, protection: c_int| if segment.p_flags & bit != 0 { protection } else { 0 };
        Some(flag(4, libc::PROT_READ) | flag(2, libc::PROT_WRITE) | flag(1, libc::PROT_EXEC))
    }

    /// The pages that the loader has made read-only once it had relocated the object.
    pub(crate) fn read_only_after_relocation(&self, page: usize) -> core::ops::Range<usize> {
        let Some(header) = self.headers().iter().find(|header| header.p_type == PT_GNU_RELRO) else { return 0..0 };
        let range = self.range(header);
        range.start & !(page - 1)..range.end & !(page - 1)
    }

    /// The name by which others depend on it; empty for programs.
    pub(crate) fn soname(&self) -> &[u8] {
        // SAFETY: zero, or the address of a C string in the object's string table.
        if self.soname == 0 { &[] } else { unsafe { CStr::from_ptr(self.soname as *const c_char) }.to_bytes() }
    }

    /// Places that hold the address of a symbol, each with the symbol's index.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let tables = self.relocations.into_iter().filter(|(at, _)| *at != 0);
        let entries = tables.flat_map(|(at, bytes)| {
            // SAFETY: the table is as long as the dynamic section says and stays mapped.
            unsafe { core::slice::from_raw_parts(at as *const Relocation, bytes / size_of::<Relocation>()) }
        });
        let base = self.base;
        entries.filter_map(move |entry| {
            let (kind, symbol) = (entry.info as u32, (entry.info >> 32) as usize);
            (symbol != 0 && ADDRESSES.contains(&kind)).then_some((base + entry.offset as usize, symbol))
        })
    }

    /// An entry of the symbol table. By address, since [`crate::bind`] changes some.
    pub(crate) fn symbol(&self, index: usize) -> *mut libc::Elf64_Sym {
        (self.symbols as *mut libc::Elf64_Sym).wrapping_add(index)
    }

    /// Name of a symbol.
    pub(crate) fn name(&self, index: usize) -> &CStr {
        // SAFETY: callers have the index from the object's own tables; a symbol's name is a C string in the string table.
        unsafe { CStr::from_ptr((self.strings + (*self.symbol(index)).st_name as usize) as *const c_char) }
    }

    /// Address of a symbol that the object defines.
    pub(crate) fn address(&self, index: usize) -> usize {
        // SAFETY: callers have the index from the object's own tables.
        self.base.wrapping_add(unsafe { (*self.symbol(index)).st_value } as usize)
    }

    /// Index of the symbol `name`, whose hash is [`hash`], if the object defines it.
    ///
    /// The GNU hash table: header {buckets, first symbol, bloom words, shift}, bloom filter, buckets, chains.
    pub(crate) fn find(&self, name: &CStr, hash: u32) -> Option<usize> {
        if self.hash == 0 {
            return None;
        }
        // SAFETY: the table of a loaded object; its layout is fixed by the format.
        unsafe {
            let head = self.hash as *const u32;
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
                if entry | 1 == hash | 1 && self.defines(index as usize) && self.name(index as usize) == name {
                    return Some(index as usize);
                }
                if entry & 1 != 0 {
                    return None;
                }
                index += 1;
            }
        }
    }

    /// Is the symbol defined here? Old versions of one are hidden; the one that a new program links to is not.
    fn defines(&self, index: usize) -> bool {
        // SAFETY: the index is from the hash table; the table of versions is as long as the table of symbols.
        unsafe {
            let hidden = || *(self.versions as *const u16).add(index) & VERSION_HIDDEN != 0;
            (*self.symbol(index)).st_shndx != 0 && (self.versions == 0 || !hidden())
        }
    }

    /// Is the symbol a function that is called at its address? Others are functions that choose one (IFUNC), or data.
    pub(crate) fn is_function(&self, index: usize) -> bool {
        const NO_TYPE: u8 = 0;
        const FUNCTION: u8 = 2;
        // SAFETY: callers have the index from the object's own tables.
        matches!(unsafe { (*self.symbol(index)).st_info } & 15, NO_TYPE | FUNCTION)
    }

    /// Indices of the symbols that others can find.
    pub(crate) fn exported(&self) -> core::ops::Range<usize> {
        if self.hash == 0 {
            return 0..0;
        }
        // SAFETY: as in `find`: the chain of the highest bucket ends with the last symbol.
        unsafe {
            let head = self.hash as *const u32;
            let (buckets, first, bloom) = (*head as usize, *head.add(1), *head.add(2));
            let bucket_table = head.add(4).cast::<u64>().add(bloom as usize).cast::<u32>();
            let mut last = (0..buckets).map(|bucket| *bucket_table.add(bucket)).max().unwrap_or(0);
            if last < first {
                return 0..0;
            }
            let chains = bucket_table.add(buckets);
            while *chains.add((last - first) as usize) & 1 == 0 {
                last += 1;
            }
            first as usize..last as usize + 1
        }
    }
}

/// The hash by which GNU hash tables are asked.
pub(crate) fn hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}
