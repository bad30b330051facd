//! Decides before exec whether a program can be traced. An incompatible preloaded library would kill or
//! disturb the program, so such a program runs untraced and the ledger says why.
//!
//! `weft run` and the exec and spawn hooks ask the same function. It reads a few hundred bytes of the file with raw system
//! calls, on the caller's stack: a hook may be running in a `vfork` child.

use core::ffi::CStr;

use crate::sys;

/// What will become of the program. Numbers are part of the layout (`ProcessSlot::exec_verdict`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// The library can be loaded.
    Traceable = 0,
    /// Statically linked: nothing can be preloaded. The variables are kept for the program's own children.
    Static = 1,
    /// Linked to another C library (musl).
    OtherLibc = 2,
    /// 32-bit, or another machine's.
    OtherClass = 3,
    /// Carries a sanitizer's runtime, which insists on being loaded first.
    Sanitizer = 4,
    /// Set-user-id or set-group-id: the loader ignores preloads. The variables are kept.
    SetUserId = 5,
    /// Our library or the live directory cannot be reached from here (another root, mount namespace or user).
    NotReachable = 6,
    /// Not a file that can be read; the kernel will say what it thinks of it.
    Unreadable = 7,
}

/// Reasons in words, by number, as they appear in the ledger.
pub const VERDICT_NAMES: [&str; 8] = [
    "traced",
    "static binary",
    "not linked to glibc",
    "other architecture or 32-bit",
    "sanitizer build",
    "setuid or setgid program",
    "library or live directory not reachable (chroot, mount namespace, user change)",
    "unreadable program file",
];

impl Verdict {
    /// Must LD_PRELOAD be kept away from the program?
    pub fn forbids_preload(self) -> bool {
        matches!(self, Verdict::OtherLibc | Verdict::OtherClass | Verdict::Sanitizer | Verdict::NotReachable)
    }
}

const HEAD: usize = 2048;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_STRTAB: u64 = 5;
const DT_NEEDED: u64 = 1;
const DT_PREINIT_ARRAY: u64 = 32;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };

/// Sanitizer runtimes that are shared libraries …
const SANITIZER_LIBRARIES: [&[u8]; 4] = [b"libasan.so", b"libtsan.so", b"libhwasan.so", b"libclang_rt."];
/// … and symbols that programs export which carry the runtime in themselves.
const SANITIZER_SYMBOLS: [&[u8]; 3] = [b"__asan_init", b"__tsan_init", b"__msan_init"];
/// gcc's static runtimes export none of those, but they run before all libraries and define functions of the C library that no program
/// defines for itself.
const INTERCEPTED: &[u8] = b"canonicalize_file_name";

/// Looks at the program at `path`, following `#!` lines.
pub fn inspect(path: &CStr) -> Verdict {
    inspect_at(path, 4)
}

fn inspect_at(path: &CStr, scripts_left: u32) -> Verdict {
    let mut head = [0u8; HEAD];
    let Ok(fd) = sys::open(path, libc::O_RDONLY, 0) else { return Verdict::Unreadable };
    let length = sys::pread(fd, &mut head, 0).unwrap_or(0);
    let head_read = &head[..length];
    if let Some(line) = head_read.strip_prefix(b"#!") {
        sys::close(fd);
        return match interpreter_of(line) {
            Some(name) if scripts_left > 0 => CStr::from_bytes_until_nul(&name)
                .map_or(Verdict::Unreadable, |program| inspect_at(program, scripts_left - 1)),
            _ => Verdict::Unreadable,
        };
    }
    let verdict = inspect_elf(fd, head_read);
    sys::close(fd);
    match verdict {
        Verdict::Traceable | Verdict::Static if changes_user(path) => Verdict::SetUserId,
        other => other,
    }
}

/// First word of a `#!` line, as a C string.
fn interpreter_of(line: &[u8]) -> Option<[u8; 256]> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let program = line.split(|byte| *byte == b' ' || *byte == b'\t').find(|word| !word.is_empty())?;
    let mut name = [0u8; 256];
    name.get_mut(..program.len()).filter(|_| program.len() < 256)?.copy_from_slice(program);
    Some(name)
}

/// Would the kernel run the file as another user or group? Then the loader is in secure mode.
fn changes_user(path: &CStr) -> bool {
    sys::stat(path).is_some_and(|stat| {
        let (user, group) = sys::effective_ids();
        (stat.st_mode & libc::S_ISUID != 0 && stat.st_uid != user)
            || (stat.st_mode & libc::S_ISGID != 0 && stat.st_gid != group)
    })
}

/// Two bytes at a place of an ELF file; nothing beyond its end.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

/// Four bytes at a place of an ELF file; nothing beyond its end.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// Eight bytes at a place of an ELF file; nothing beyond its end.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

fn inspect_elf(fd: libc::c_int, head: &[u8]) -> Verdict {
    const ELF64_LITTLE_ENDIAN: &[u8] = b"\x7fELF\x02\x01";
    if !head.starts_with(b"\x7fELF") {
        // No ELF file: a script without `#!` (a shell runs it), or something for binfmt_misc.
        return Verdict::Traceable;
    }
    if !head.starts_with(ELF64_LITTLE_ENDIAN) || u16_at(head, 18) != Some(MACHINE) {
        return Verdict::OtherClass;
    }
    match inspect_segments(fd, head) {
        Some(verdict) => verdict,
        None => Verdict::Unreadable,
    }
}

/// Where an address of the running program lies in its file.
fn file_offset(loads: &[(u64, u64, u64)], address: u64) -> Option<u64> {
    loads
        .iter()
        .find(|(start, size, _)| (*start..*start + *size).contains(&address))
        .map(|(start, _, offset)| address - start + offset)
}

fn inspect_segments(fd: libc::c_int, head: &[u8]) -> Option<Verdict> {
    let (table, size, count) = (u64_at(head, 32)?, u16_at(head, 54)? as usize, u16_at(head, 56)? as usize);
    let mut interpreter = None;
    let mut dynamic = None;
    let mut loads = [(0u64, 0u64, 0u64); 16];
    let mut loads_found = 0;
    for index in 0..count.min(64) {
        let mut entry = [0u8; 56];
        sys::pread(fd, &mut entry, table + (index * size) as u64).ok().filter(|n| *n == entry.len())?;
        let (kind, offset, address, length) =
            (u32_at(&entry, 0)?, u64_at(&entry, 8)?, u64_at(&entry, 16)?, u64_at(&entry, 32)?);
        match kind {
            PT_INTERP => interpreter = Some((offset, length)),
            PT_DYNAMIC => dynamic = Some((offset, length)),
            PT_LOAD if loads_found < loads.len() => {
                loads[loads_found] = (address, length, offset);
                loads_found += 1;
            }
            _ => {}
        }
    }
    let Some((offset, length)) = interpreter else { return Some(Verdict::Static) };
    let mut name = [0u8; 128];
    let length = (length as usize).min(name.len());
    sys::pread(fd, &mut name[..length], offset).ok()?;
    let is_glibc = name.windows(8).any(|window| window == b"ld-linux");
    if !is_glibc {
        return Some(Verdict::OtherLibc);
    }
    let Some(dynamic) = dynamic else { return Some(Verdict::Traceable) };
    if has_sanitizer(fd, dynamic, &loads[..loads_found]) { Some(Verdict::Sanitizer) } else { Some(Verdict::Traceable) }
}

/// A program's dynamic section: what is needed to find its libraries and exported symbols in the file.
#[derive(Default)]
struct Dynamic {
    needed: [u64; 16],
    needed_found: usize,
    strings: u64,
    hash: u64,
    runs_before_libraries: bool,
}

impl Dynamic {
    fn read(fd: libc::c_int, (offset, length): (u64, u64)) -> Dynamic {
        let mut found = Dynamic::default();
        let mut buf = [0u8; 1024];
        let mut at = 0;
        while at < length.min(1 << 14) {
            let Ok(got) = sys::pread(fd, &mut buf, offset + at) else { return found };
            for entry in buf[..got].chunks_exact(16) {
                let (Some(tag), Some(value)) = (u64_at(entry, 0), u64_at(entry, 8)) else { return found };
                match tag {
                    0 => return found,
                    DT_NEEDED if found.needed_found < found.needed.len() => {
                        found.needed[found.needed_found] = value;
                        found.needed_found += 1;
                    }
                    DT_STRTAB => found.strings = value,
                    DT_GNU_HASH => found.hash = value,
                    DT_PREINIT_ARRAY => found.runs_before_libraries = true,
                    _ => {}
                }
            }
            if got < buf.len() {
                return found;
            }
            at += got as u64;
        }
        found
    }
}

fn has_sanitizer(fd: libc::c_int, dynamic: (u64, u64), loads: &[(u64, u64, u64)]) -> bool {
    let dynamic = Dynamic::read(fd, dynamic);
    let needs_runtime = dynamic.needed[..dynamic.needed_found].iter().any(|name| {
        let mut buf = [0u8; 24];
        let Some(at) = file_offset(loads, dynamic.strings + name) else { return false };
        sys::pread(fd, &mut buf, at).is_ok() && SANITIZER_LIBRARIES.iter().any(|library| buf.starts_with(library))
    });
    let exported = |symbol: &[u8]| {
        file_offset(loads, dynamic.hash).is_some_and(|table| exports(fd, table, symbol).unwrap_or(false))
    };
    needs_runtime
        || SANITIZER_SYMBOLS.iter().any(|symbol| exported(symbol))
        || (dynamic.runs_before_libraries && exported(INTERCEPTED))
}

/// Is a symbol in the GNU hash table at `table`? Compares the 31 bits of hash that the table keeps, not the name: one chance in two
/// thousand million of leaving a program untraced.
fn exports(fd: libc::c_int, table: u64, symbol: &[u8]) -> Option<bool> {
    let hash = symbol.iter().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
    let mut head = [0u8; 16];
    sys::pread(fd, &mut head, table).ok()?;
    let (buckets, first, bloom) = (u32_at(&head, 0)?, u32_at(&head, 4)?, u32_at(&head, 8)?);
    let bucket_table = table + 16 + u64::from(bloom) * 8;
    let mut word = [0u8; 4];
    let mut read_word = |at: u64| {
        sys::pread(fd, &mut word, at).ok()?;
        Some(u32::from_le_bytes(word))
    };
    let start = read_word(bucket_table + u64::from(hash.checked_rem(buckets)?) * 4)?;
    if start < first {
        return Some(false);
    }
    let chains = bucket_table + u64::from(buckets) * 4;
    for index in start..start.saturating_add(64) {
        let entry = read_word(chains + u64::from(index - first) * 4)?;
        if entry | 1 == hash | 1 {
            return Some(true);
        }
        if entry & 1 != 0 {
            return Some(false);
        }
    }
    Some(false)
}
