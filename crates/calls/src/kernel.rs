//! The system calls that the kernel tracepoints report, and where their arguments stand.
//!
//! The crate `collect` expands the same table to give each row its number on the machine at hand. What a call means is found by its
//! name: a row here without a meaning does not compile.

use crate::{CallInfo, Operation, find};

/// Category of events of the processes that are followed.
pub const KERNEL: &str = "kernel";
/// Category of requests of block devices. They are everybody's: writeback is done by the kernel's own threads, and a device is shared.
pub const BLOCK: &str = "block";

/// One system call. Places count arguments from 1; 0 is none.
#[derive(Debug, Clone, Copy)]
pub struct KernelCall {
    /// What it means.
    pub info: &'static CallInfo,
    /// The argument that is a path.
    pub path: u8,
    /// The argument that is a second path.
    pub second_path: u8,
    /// The argument that is a descriptor: the file itself, or the directory from which `path` starts. Of two files the one written to.
    pub file: u8,
    /// The descriptor of a second file: the one that is copied from, or the directory from which `second_path` starts.
    pub second_file: u8,
    /// The argument that asks for a number of bytes.
    pub size: u8,
    /// The argument that says where in the file.
    pub offset: u8,
    /// Its result is a descriptor of the file that it opened.
    pub returns_file: bool,
    /// It is reported only where its descriptor is one of a file.
    pub needs_file: bool,
    /// Whether it is reported. One that is not is only known to be under way, so that pages which it reads are not taken for a fault's.
    pub reported: bool,
}

impl KernelCall {
    const fn new(name: &str) -> KernelCall {
        let Some(info) = find(name) else { panic!("a system call that the table of calls does not have") };
        KernelCall {
            info,
            path: 0,
            second_path: 0,
            file: 0,
            second_file: 0,
            size: 0,
            offset: 0,
            returns_file: false,
            needs_file: false,
            reported: true,
        }
    }

    const fn path(self, place: u8) -> KernelCall {
        KernelCall { path: place, ..self }
    }

    const fn second_path(self, place: u8) -> KernelCall {
        KernelCall { second_path: place, ..self }
    }

    const fn file(self, place: u8) -> KernelCall {
        KernelCall { file: place, ..self }
    }

    const fn second_file(self, place: u8) -> KernelCall {
        KernelCall { second_file: place, ..self }
    }

    const fn at(self, size: u8, offset: u8) -> KernelCall {
        KernelCall { size, offset, ..self }
    }

    const fn opens(self) -> KernelCall {
        KernelCall { returns_file: true, ..self }
    }

    const fn needs_file(self) -> KernelCall {
        KernelCall { needs_file: true, ..self }
    }

    const fn silent(self) -> KernelCall {
        KernelCall { reported: false, ..self }
    }
}

/// Hands the table to the macro `$consumer`: libc's name of the number, the call's name, its arguments.
#[macro_export]
macro_rules! kernel_calls {
    ($consumer:ident) => {
        $consumer! {
            everywhere {
                SYS_openat openat .file(1).path(2).opens();
                SYS_openat2 openat2 .file(1).path(2).opens();
                SYS_close close .file(1);
                SYS_lseek lseek .file(1).at(0, 2);
                SYS_read read .file(1).at(3, 0);
                SYS_write write .file(1).at(3, 0);
                SYS_pread64 pread64 .file(1).at(3, 4);
                SYS_pwrite64 pwrite64 .file(1).at(3, 4);
                SYS_readv readv .file(1);
                SYS_writev writev .file(1);
                SYS_preadv preadv .file(1).at(0, 4);
                SYS_pwritev pwritev .file(1).at(0, 4);
                SYS_preadv2 preadv2 .file(1).at(0, 4);
                SYS_pwritev2 pwritev2 .file(1).at(0, 4);
                SYS_fsync fsync .file(1);
                SYS_fdatasync fdatasync .file(1);
                SYS_sync sync;
                SYS_syncfs syncfs .file(1);
                SYS_sync_file_range sync_file_range .file(1).at(3, 2);
                SYS_fstat fstat .file(1);
                SYS_newfstatat newfstatat .file(1).path(2);
                SYS_statx statx .file(1).path(2);
                SYS_statfs statfs .path(1);
                SYS_fstatfs fstatfs .file(1);
                SYS_faccessat faccessat .file(1).path(2);
                SYS_faccessat2 faccessat2 .file(1).path(2);
                SYS_readlinkat readlinkat .file(1).path(2);
                SYS_unlinkat unlinkat .file(1).path(2);
                SYS_renameat renameat .file(1).path(2).second_file(3).second_path(4);
                SYS_renameat2 renameat2 .file(1).path(2).second_file(3).second_path(4);
                SYS_linkat linkat .file(1).path(2).second_file(3).second_path(4);
                SYS_symlinkat symlinkat .path(1).second_file(2).second_path(3);
                SYS_mkdirat mkdirat .file(1).path(2);
                SYS_mknodat mknodat .file(1).path(2);
                SYS_fchmodat fchmodat .file(1).path(2);
                SYS_fchownat fchownat .file(1).path(2);
                SYS_utimensat utimensat .file(1).path(2);
                SYS_getdents64 getdents64 .file(1).at(3, 0);
                SYS_truncate truncate .path(1).at(2, 0);
                SYS_ftruncate ftruncate .file(1).at(2, 0);
                SYS_fallocate fallocate .file(1).at(4, 3);
                SYS_fadvise64 fadvise64 .file(1).at(3, 2);
                SYS_readahead readahead .file(1).at(3, 2);
                SYS_copy_file_range copy_file_range .file(3).second_file(1).at(5, 0);
                SYS_sendfile sendfile .file(1).second_file(2).at(4, 0);
                SYS_splice splice .file(3).second_file(1).at(5, 0);
                SYS_tee tee .file(2).second_file(1).at(3, 0);
                SYS_vmsplice vmsplice .file(1);
                SYS_mmap mmap .file(5).at(2, 6).needs_file();
                SYS_msync msync .at(2, 0);
                SYS_flock flock .file(1);
                SYS_chdir chdir .path(1);
                SYS_fchdir fchdir .file(1);
                SYS_io_uring_enter io_uring_enter .file(1);
                SYS_madvise madvise .silent();
                SYS_execve execve .silent();
                SYS_execveat execveat .silent();
            }
            // Calls without a directory, which newer architectures left out.
            x86_64 {
                SYS_open open .path(1).opens();
                SYS_creat creat .path(1).opens();
                SYS_stat stat .path(1);
                SYS_lstat lstat .path(1);
                SYS_access access .path(1);
                SYS_readlink readlink .path(1);
                SYS_unlink unlink .path(1);
                SYS_rename rename .path(1).second_path(2);
                SYS_link link .path(1).second_path(2);
                SYS_symlink symlink .path(1).second_path(2);
                SYS_mkdir mkdir .path(1);
                SYS_rmdir rmdir .path(1);
                SYS_chmod chmod .path(1);
                SYS_chown chown .path(1);
                SYS_getdents getdents .file(1).at(3, 0);
            }
        }
    };
}

macro_rules! define_kernel_calls {
    (
        everywhere { $( $number:ident $name:ident $( . $method:ident ( $( $place:literal ),* ) )* ; )* }
        x86_64 { $( $old_number:ident $old:ident $( . $old_method:ident ( $( $old_place:literal ),* ) )* ; )* }
    ) => {
        /// Calls that every architecture has.
        pub static EVERYWHERE: &[KernelCall] = &[ $( KernelCall::new(stringify!($name)) $( .$method($( $place ),*) )*, )* ];

        /// Calls that only x86-64 has.
        pub static X86_64: &[KernelCall] = &[ $( KernelCall::new(stringify!($old)) $( .$old_method($( $old_place ),*) )*, )* ];
    };
}
kernel_calls!(define_kernel_calls);

/// Names of io_uring's operations, by number (`enum io_uring_op` of linux/io_uring.h), and what they do.
const URING: &[(&str, Operation)] = &[
    ("nop", Operation::Submit),
    ("readv", Operation::Read),
    ("writev", Operation::Write),
    ("fsync", Operation::Sync),
    ("read_fixed", Operation::Read),
    ("write_fixed", Operation::Write),
    ("poll_add", Operation::Suspend),
    ("poll_remove", Operation::Submit),
    ("sync_file_range", Operation::Sync),
    ("sendmsg", Operation::Ipc),
    ("recvmsg", Operation::Ipc),
    ("timeout", Operation::Suspend),
    ("timeout_remove", Operation::Submit),
    ("accept", Operation::Accept),
    ("async_cancel", Operation::Submit),
    ("link_timeout", Operation::Suspend),
    ("connect", Operation::Socket),
    ("fallocate", Operation::Metadata),
    ("openat", Operation::Open),
    ("close", Operation::Close),
    ("files_update", Operation::Submit),
    ("statx", Operation::StatPath),
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("fadvise", Operation::Advise),
    ("madvise", Operation::Advise),
    ("send", Operation::Ipc),
    ("recv", Operation::Ipc),
    ("openat2", Operation::Open),
    ("epoll_ctl", Operation::Submit),
    ("splice", Operation::Splice),
    ("provide_buffers", Operation::Submit),
    ("remove_buffers", Operation::Submit),
    ("tee", Operation::Splice),
    ("shutdown", Operation::Socket),
    ("renameat", Operation::Metadata),
    ("unlinkat", Operation::Metadata),
    ("mkdirat", Operation::Metadata),
    ("symlinkat", Operation::Metadata),
    ("linkat", Operation::Metadata),
];

/// The name of an io_uring operation, after `io_uring_`, and what it does.
pub fn uring(number: u16) -> (&'static str, Operation) {
    URING.get(usize::from(number)).copied().unwrap_or(("other", Operation::Other))
}
