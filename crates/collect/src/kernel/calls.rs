//! The system calls that are told: their names, where their paths and descriptors stand, what their result means. The kernel side
//! (`bpf/weft.bpf.c`, `CALL_*`) gets each row as one number.

use libc::c_long;

/// What a call that succeeded says about bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moves {
    /// Nothing.
    Nothing,
    /// Its result is bytes read.
    Read,
    /// Its result is bytes written.
    Write,
    /// Its result is bytes both read and written: copies within the kernel.
    Both,
}

/// One call. Places count from 1; 0 is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) moves: Moves,
    /// The argument that is a path.
    path: u8,
    second_path: u8,
    /// The argument that is a descriptor: the file itself, or the directory from which `path` starts.
    pub(super) file: u8,
    pub(super) second_file: u8,
    /// The argument that asks for a number of bytes.
    pub(super) size: u8,
    /// The argument that says where in the file.
    pub(super) offset: u8,
    returns_file: bool,
    needs_file: bool,
    told: bool,
}

impl Call {
    const fn new(number: c_long, name: &'static str) -> Call {
        Call {
            number: number as u32,
            name,
            moves: Moves::Nothing,
            path: 0,
            second_path: 0,
            file: 0,
            second_file: 0,
            size: 0,
            offset: 0,
            returns_file: false,
            needs_file: false,
            told: true,
        }
    }

    const fn path(self, place: u8) -> Call {
        Call { path: place, ..self }
    }

    const fn second_path(self, place: u8) -> Call {
        Call { second_path: place, ..self }
    }

    const fn file(self, place: u8) -> Call {
        Call { file: place, ..self }
    }

    const fn second_file(self, place: u8) -> Call {
        Call { second_file: place, ..self }
    }

    const fn at(self, size: u8, offset: u8) -> Call {
        Call { size, offset, ..self }
    }

    const fn moves(self, moves: Moves) -> Call {
        Call { moves, ..self }
    }

    const fn opens(self) -> Call {
        Call { returns_file: true, ..self }
    }

    const fn needs_file(self) -> Call {
        Call { needs_file: true, ..self }
    }

    /// Not told: only known to be under way, so that pages which it reads are not taken for a fault's.
    const fn silent(self) -> Call {
        Call { told: false, ..self }
    }

    /// The row as the kernel side takes it.
    pub(super) fn rule(&self) -> u32 {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        flag(self.told, 1)
            | 2
            | flag(self.returns_file, 4)
            | flag(self.needs_file, 8)
            | u32::from(self.path) << 4
            | u32::from(self.second_path) << 8
            | u32::from(self.file) << 12
            | u32::from(self.second_file) << 16
    }

    pub(super) fn takes_path(&self) -> bool {
        self.path > 0
    }

    pub(super) fn takes_second_path(&self) -> bool {
        self.second_path > 0
    }

    pub(super) fn changes_directory(&self) -> bool {
        matches!(self.name, "chdir" | "fchdir")
    }

    pub(super) fn returns_file(&self) -> bool {
        self.returns_file
    }

    /// The argument at a place.
    pub(super) fn argument(place: u8, args: &[u64; 6]) -> Option<u64> {
        usize::from(place).checked_sub(1).and_then(|at| args.get(at)).copied()
    }
}

/// Calls that every architecture has.
const EVERYWHERE: &[Call] = &[
    Call::new(libc::SYS_openat, "openat").file(1).path(2).opens(),
    Call::new(libc::SYS_openat2, "openat2").file(1).path(2).opens(),
    Call::new(libc::SYS_close, "close").file(1),
    Call::new(libc::SYS_read, "read").file(1).at(3, 0).moves(Moves::Read),
    Call::new(libc::SYS_write, "write").file(1).at(3, 0).moves(Moves::Write),
    Call::new(libc::SYS_pread64, "pread64").file(1).at(3, 4).moves(Moves::Read),
    Call::new(libc::SYS_pwrite64, "pwrite64").file(1).at(3, 4).moves(Moves::Write),
    Call::new(libc::SYS_readv, "readv").file(1).moves(Moves::Read),
    Call::new(libc::SYS_writev, "writev").file(1).moves(Moves::Write),
    Call::new(libc::SYS_preadv, "preadv").file(1).at(0, 4).moves(Moves::Read),
    Call::new(libc::SYS_pwritev, "pwritev").file(1).at(0, 4).moves(Moves::Write),
    Call::new(libc::SYS_preadv2, "preadv2").file(1).at(0, 4).moves(Moves::Read),
    Call::new(libc::SYS_pwritev2, "pwritev2").file(1).at(0, 4).moves(Moves::Write),
    Call::new(libc::SYS_lseek, "lseek").file(1).at(0, 2),
    Call::new(libc::SYS_fsync, "fsync").file(1),
    Call::new(libc::SYS_fdatasync, "fdatasync").file(1),
    Call::new(libc::SYS_sync, "sync"),
    Call::new(libc::SYS_syncfs, "syncfs").file(1),
    Call::new(libc::SYS_sync_file_range, "sync_file_range").file(1).at(3, 2),
    Call::new(libc::SYS_fstat, "fstat").file(1),
    Call::new(libc::SYS_newfstatat, "newfstatat").file(1).path(2),
    Call::new(libc::SYS_statx, "statx").file(1).path(2),
    Call::new(libc::SYS_statfs, "statfs").path(1),
    Call::new(libc::SYS_fstatfs, "fstatfs").file(1),
    Call::new(libc::SYS_faccessat, "faccessat").file(1).path(2),
    Call::new(libc::SYS_faccessat2, "faccessat2").file(1).path(2),
    Call::new(libc::SYS_readlinkat, "readlinkat").file(1).path(2),
    Call::new(libc::SYS_unlinkat, "unlinkat").file(1).path(2),
    Call::new(libc::SYS_renameat, "renameat").file(1).path(2).second_file(3).second_path(4),
    Call::new(libc::SYS_renameat2, "renameat2").file(1).path(2).second_file(3).second_path(4),
    Call::new(libc::SYS_linkat, "linkat").file(1).path(2).second_file(3).second_path(4),
    Call::new(libc::SYS_symlinkat, "symlinkat").path(1).second_file(2).second_path(3),
    Call::new(libc::SYS_mkdirat, "mkdirat").file(1).path(2),
    Call::new(libc::SYS_mknodat, "mknodat").file(1).path(2),
    Call::new(libc::SYS_fchmodat, "fchmodat").file(1).path(2),
    Call::new(libc::SYS_fchownat, "fchownat").file(1).path(2),
    Call::new(libc::SYS_utimensat, "utimensat").file(1).path(2),
    Call::new(libc::SYS_getdents64, "getdents64").file(1).at(3, 0),
    Call::new(libc::SYS_truncate, "truncate").path(1).at(2, 0),
    Call::new(libc::SYS_ftruncate, "ftruncate").file(1).at(2, 0),
    Call::new(libc::SYS_fallocate, "fallocate").file(1).at(4, 3),
    Call::new(libc::SYS_fadvise64, "fadvise64").file(1).at(3, 2),
    Call::new(libc::SYS_readahead, "readahead").file(1).at(3, 2),
    Call::new(libc::SYS_copy_file_range, "copy_file_range").file(1).second_file(3).at(5, 0).moves(Moves::Both),
    Call::new(libc::SYS_sendfile, "sendfile").second_file(1).file(2).at(4, 0).moves(Moves::Both),
    Call::new(libc::SYS_splice, "splice").file(1).second_file(3).at(5, 0).moves(Moves::Both),
    Call::new(libc::SYS_tee, "tee").file(1).second_file(2).at(3, 0),
    Call::new(libc::SYS_vmsplice, "vmsplice").file(1),
    Call::new(libc::SYS_mmap, "mmap").file(5).at(2, 6).needs_file(),
    Call::new(libc::SYS_msync, "msync").at(2, 0),
    Call::new(libc::SYS_flock, "flock").file(1),
    Call::new(libc::SYS_chdir, "chdir").path(1),
    Call::new(libc::SYS_fchdir, "fchdir").file(1),
    Call::new(libc::SYS_io_uring_enter, "io_uring_enter").file(1),
    Call::new(libc::SYS_madvise, "madvise").silent(),
    Call::new(libc::SYS_execve, "execve").silent(),
    Call::new(libc::SYS_execveat, "execveat").silent(),
];

/// Calls without a directory, which newer architectures left out.
#[cfg(target_arch = "x86_64")]
const OLDER: &[Call] = &[
    Call::new(libc::SYS_open, "open").path(1).opens(),
    Call::new(libc::SYS_creat, "creat").path(1).opens(),
    Call::new(libc::SYS_stat, "stat").path(1),
    Call::new(libc::SYS_lstat, "lstat").path(1),
    Call::new(libc::SYS_access, "access").path(1),
    Call::new(libc::SYS_readlink, "readlink").path(1),
    Call::new(libc::SYS_unlink, "unlink").path(1),
    Call::new(libc::SYS_rename, "rename").path(1).second_path(2),
    Call::new(libc::SYS_link, "link").path(1).second_path(2),
    Call::new(libc::SYS_symlink, "symlink").path(1).second_path(2),
    Call::new(libc::SYS_mkdir, "mkdir").path(1),
    Call::new(libc::SYS_rmdir, "rmdir").path(1),
    Call::new(libc::SYS_chmod, "chmod").path(1),
    Call::new(libc::SYS_chown, "chown").path(1),
    Call::new(libc::SYS_getdents, "getdents").file(1).at(3, 0),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[Call] = &[];

/// All calls that the kernel side is told of.
pub(super) fn all() -> impl Iterator<Item = &'static Call> {
    EVERYWHERE.iter().chain(OLDER)
}

/// The rows by number.
pub(super) struct Table {
    by_number: Vec<Option<&'static Call>>,
}

impl Table {
    pub(super) fn new() -> Table {
        let mut by_number = vec![None; usize::from(u16::MAX) + 1];
        for call in all() {
            by_number[call.number as usize] = Some(call);
        }
        Table { by_number }
    }

    pub(super) fn get(&self, number: u16) -> Option<&'static Call> {
        self.by_number[usize::from(number)]
    }
}

/// Names of io_uring's operations, by number (`enum io_uring_op` of linux/io_uring.h), and what their results mean.
const URING: &[(&str, Moves)] = &[
    ("nop", Moves::Nothing),
    ("readv", Moves::Read),
    ("writev", Moves::Write),
    ("fsync", Moves::Nothing),
    ("read_fixed", Moves::Read),
    ("write_fixed", Moves::Write),
    ("poll_add", Moves::Nothing),
    ("poll_remove", Moves::Nothing),
    ("sync_file_range", Moves::Nothing),
    ("sendmsg", Moves::Nothing),
    ("recvmsg", Moves::Nothing),
    ("timeout", Moves::Nothing),
    ("timeout_remove", Moves::Nothing),
    ("accept", Moves::Nothing),
    ("async_cancel", Moves::Nothing),
    ("link_timeout", Moves::Nothing),
    ("connect", Moves::Nothing),
    ("fallocate", Moves::Nothing),
    ("openat", Moves::Nothing),
    ("close", Moves::Nothing),
    ("files_update", Moves::Nothing),
    ("statx", Moves::Nothing),
    ("read", Moves::Read),
    ("write", Moves::Write),
    ("fadvise", Moves::Nothing),
    ("madvise", Moves::Nothing),
    ("send", Moves::Nothing),
    ("recv", Moves::Nothing),
    ("openat2", Moves::Nothing),
    ("epoll_ctl", Moves::Nothing),
    ("splice", Moves::Both),
    ("provide_buffers", Moves::Nothing),
    ("remove_buffers", Moves::Nothing),
    ("tee", Moves::Nothing),
    ("shutdown", Moves::Nothing),
    ("renameat", Moves::Nothing),
    ("unlinkat", Moves::Nothing),
    ("mkdirat", Moves::Nothing),
    ("symlinkat", Moves::Nothing),
    ("linkat", Moves::Nothing),
];

/// The name of an io_uring operation, after `io_uring_`, and what its result means.
pub(super) fn uring(number: u16) -> (&'static str, Moves) {
    URING.get(usize::from(number)).copied().unwrap_or(("other", Moves::Nothing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_the_kernel_side() {
        let mut seen = std::collections::HashSet::new();
        for call in all() {
            assert!(call.number < 512, "{}: the kernel side knows 512 calls", call.name);
            assert!(seen.insert(call.number), "{} is told twice", call.name);
            for place in [call.path, call.second_path, call.file, call.second_file, call.size, call.offset] {
                assert!(place <= 6, "{}: a call has six arguments", call.name);
            }
            assert!(call.second_path == 0 || call.path > 0, "{}: a second path without a first", call.name);
            assert!(
                !(call.returns_file && call.second_file > 0),
                "{}: the new file takes the second one's place",
                call.name
            );
        }
    }
}
