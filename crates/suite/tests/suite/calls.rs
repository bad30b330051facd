//! The families of calls: each is one event on the right file with the right result.

use weftline_testkit::Case;
use weftline_testkit::compile::{Build, LARGE_FILES, PLAIN};

fn vectored(build: Build) -> Case {
    Case::build("vectored", build)
        .sees("open", "vectored.bin", 1)
        .sees("close", "vectored.bin", 1)
        .moves("writev", "vectored.bin", 50, 5000)
        .moves("pwritev", "vectored.bin", 50, 5000)
        .moves("pwritev2", "vectored.bin", 50, 5000)
        .moves("pwrite", "vectored.bin", 50, 1500)
        .moves("readv", "vectored.bin", 50, 5000)
        .moves("preadv", "vectored.bin", 50, 5000)
        .moves("preadv2", "vectored.bin", 51, 5100)
        .moves("pread", "vectored.bin", 52, 3510)
        .sees("lseek", "vectored.bin", 2)
        .sees("ftruncate", "vectored.bin", 1)
        .fails("pread", "", 9, 1)
}

hazards! {
    positioned_and_vectored: vectored(PLAIN);
    positioned_and_vectored_64: vectored(LARGE_FILES);
    copies_inside_the_kernel: Case::program("kernel_copies").work("from.bin", 1000)
        .sees("open", "from.bin", 1).sees("open", "to.bin", 1)
        .moves("copy_file_range", "to.bin", 50, 3200).moves("sendfile", "to.bin", 50, 3200)
        .moves("splice", "to.bin", 50, 3200).moves("splice", "pipe:", 50, 3200).moves("tee", "pipe:", 50, 3200);
    posix_aio: Case::program("posix_aio").sees("open", "aio.bin", 1).sees("close", "aio.bin", 1)
        .sees("aio_write", "aio.bin", 20).sees("aio_read", "aio.bin", 20).sees("aio_return", "aio.bin", 40);
    mapped_memory: Case::program("mapped").sees("open", "mapped.bin", 1).sees("ftruncate", "mapped.bin", 1)
        .sees("mmap", "mapped.bin", 1).sees("madvise", "mapped.bin", 1).sees("msync", "mapped.bin", 1)
        .sees("munmap", "mapped.bin", 1).fails("mmap", "", 9, 1).sees("close", "mapped.bin", 1);
    stat_family: Case::program("stats").work("file.bin", 1).sees("symlink", "link", 1)
        .sees("open", "file.bin", 1).sees("open", ".", 1).sees("stat", "file.bin", 2).sees("lstat", "link", 2)
        .sees("fstat", "file.bin", 2).sees("fstatat", "file.bin", 2).sees("statx", "file.bin", 2)
        .sees("statfs", "file.bin", 1).sees("fstatfs", "file.bin", 1).sees("statvfs", "file.bin", 1)
        .sees("fstatvfs", "file.bin", 1).fails("stat", "missing.bin", 2, 1).sees("access", "file.bin", 1)
        .fails("access", "missing.bin", 2, 1).sees("faccessat", "file.bin", 1).sees("euidaccess", "file.bin", 1);
    directories: (0..10).fold(Case::program("directories"), |case, i| case.work(&format!("dir/{i}"), 0))
        .sees("mkdir", "dir", 1).fails("mkdir", "dir", 17, 1).sees("opendir", "dir", 1).sees("readdir", "dir", 39)
        .sees("rewinddir", "dir", 1).sees("closedir", "dir", 2).sees("open", "dir", 1).sees("fdopendir", "dir", 1)
        .sees("scandir", "dir", 1).fails("opendir", "missing", 2, 1).sees("mkdir", "empty", 1).sees("rmdir", "empty", 1)
        .fails("rmdir", "dir", 39, 1);
    links: Case::program("links").work("file", 1).sees("open", ".", 1)
        .sees("link", "file", 1).sees("linkat", "file", 1).sees("symlink", "soft", 1).sees("symlinkat", "soft-at", 1)
        .sees("readlink", "soft", 1).sees("readlinkat", "soft-at", 1).sees("rename", "hard", 1).sees("renameat", "hard-at", 1)
        .fails("renameat2", "renamed", 17, 1).sees("unlink", "renamed", 1).sees("unlinkat", "renamed-at", 1)
        .sees("remove", "soft", 1).fails("unlink", "missing", 2, 1).sees("realpath", "soft-at", 1);
    metadata: ["truncate", "ftruncate", "fallocate", "posix_fallocate", "posix_fadvise", "readahead", "chmod", "fchmod",
            "fchmodat", "chown", "fchown", "lchown", "fchownat", "utimensat", "futimens", "utimes", "utime", "lutimes", "lockf",
            "fsync", "fdatasync", "sync_file_range"].into_iter()
            .fold(Case::program("metadata").work("file", 100), |case, call| case.sees(call, "file", 1))
        .sees("open", "file", 1).sees("open", ".", 1).sees("flock", "file", 2).fails("posix_fallocate", "", 9, 1);
}
