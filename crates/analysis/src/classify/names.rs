//! Names of calls and the I/O category of each.

/// What kind of I/O a call does. The numbers are those that DFAnalyzer's tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum IoCat {
    /// Moves bytes in.
    Read = 1,
    /// Moves bytes out.
    Write = 2,
    /// Asks for or changes what is known of files.
    Metadata = 3,
    /// Starts and ends processes.
    Process = 4,
    /// Talks to other processes.
    Ipc = 5,
    /// Anything else.
    Other = 6,
    /// Waits until bytes are safe.
    Sync = 7,
}

impl IoCat {
    /// All of them, in the order of their numbers.
    pub const ALL: [IoCat; 7] =
        [IoCat::Read, IoCat::Write, IoCat::Metadata, IoCat::Process, IoCat::Ipc, IoCat::Other, IoCat::Sync];

    /// What reports call it.
    pub fn label(self) -> &'static str {
        match self {
            IoCat::Read => "read",
            IoCat::Write => "write",
            IoCat::Metadata => "metadata",
            IoCat::Process => "process",
            IoCat::Ipc => "ipc",
            IoCat::Other => "other",
            IoCat::Sync => "sync",
        }
    }

    /// The category of a number.
    pub fn from_number(number: u32) -> IoCat {
        number.checked_sub(1).and_then(|place| IoCat::ALL.get(place as usize)).copied().unwrap_or(IoCat::Other)
    }
}

/// DFAnalyzer's table, by number.
const TABLE: [(IoCat, &str); 6] = [
    (IoCat::Read, "read pread pread64 readv preadv preadv2 fread"),
    (IoCat::Write, "write pwrite pwrite64 writev pwritev pwritev2 fwrite"),
    (
        IoCat::Metadata,
        "__fxstat __fxstat64 __lxstat __lxstat64 __xstat __xstat64 access close closedir fclose fcntl fopen fopen64 \
         fseek fseeko fseeko64 fstat fstat64 fstatat fstatat64 ftell ftello ftello64 ftruncate ftruncate64 link lseek \
         lseek64 mkdir open open64 opendir readdir readdir64 readlink remove rename rmdir seek stat stat64 unlink",
    ),
    (IoCat::Process, "exec exit fork kill pipe wait"),
    (IoCat::Ipc, "msgctl msgget msgrcv msgsnd semctl semget semop shmat shmctl shmdt shmget"),
    (IoCat::Sync, "fsync fdatasync msync sync"),
];

/// Names that DFTracer does not write and our own traces have: variants of the calls above.
pub const OTHER_NAMES: [(IoCat, &str); 4] = [
    (
        IoCat::Read,
        "__read_chk __pread_chk __pread64_chk preadv64 preadv64v2 fread_unlocked __fread_chk __fread_unlocked_chk fgets \
         fgets_unlocked __fgets_chk __fgets_unlocked_chk getline getdelim __getdelim getc fgetc _IO_getc getc_unlocked \
         fgetc_unlocked getchar getchar_unlocked __uflow",
    ),
    (
        IoCat::Write,
        "pwritev64 pwritev64v2 fwrite_unlocked fputs fputs_unlocked puts fprintf __fprintf_chk printf __printf_chk \
         dprintf __dprintf_chk vfprintf __vfprintf_chk vprintf __vprintf_chk vdprintf __vdprintf_chk putc fputc _IO_putc \
         putc_unlocked fputc_unlocked putchar putchar_unlocked __overflow sendfile sendfile64 copy_file_range",
    ),
    (
        IoCat::Metadata,
        "openat openat64 creat creat64 __open_2 __open64_2 __openat_2 __openat64_2 mkstemp mkstemp64 mkostemp \
         mkostemp64 mkstemps mkstemps64 mkostemps mkostemps64 close_range closefrom fcntl64 flock lockf lockf64 fallocate \
         fallocate64 posix_fallocate posix_fallocate64 truncate truncate64 lstat lstat64 statx __fxstatat __fxstatat64 \
         statfs statfs64 fstatfs fstatfs64 statvfs statvfs64 fstatvfs fstatvfs64 eaccess euidaccess faccessat readlinkat \
         __readlink_chk __readlinkat_chk realpath __realpath_chk mkdirat mkdtemp mkfifo mkfifoat mknod mknodat unlinkat \
         renameat renameat2 linkat symlink symlinkat chmod lchmod fchmod fchmodat chown lchown fchown fchownat utimensat \
         futimens utime utimes fdopendir scandir scandir64 rewinddir seekdir telldir readdir_r readdir64_r chdir fchdir \
         fdopen freopen freopen64 tmpfile tmpfile64 rewind fgetpos fgetpos64 fsetpos fsetpos64 getxattr lgetxattr \
         fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr",
    ),
    (IoCat::Sync, "syncfs sync_file_range"),
];

/// All names and their categories.
pub fn io_table() -> impl Iterator<Item = (&'static str, IoCat)> {
    let all = TABLE.iter().chain(&OTHER_NAMES);
    all.flat_map(|(category, names)| names.split_whitespace().map(|name| (name, *category)))
}
