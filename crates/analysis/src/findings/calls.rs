//! What a recorded call or span is to the rules, told by its name and category alone.
//!
//! Calls count as I/O only in the categories of the C library (`POSIX`, `STDIO`): a program may call a span of its own `read`. Calls on
//! streams are apart from those that reach the kernel, because a stream gathers small pieces by itself.

use weftline_index::Dictionary;

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Call {
    Read,
    Write,
    /// Both at once, inside the kernel.
    Copy,
    StreamRead,
    StreamWrite,
    Flush,
    /// Chooses a stream's buffer.
    Buffering,
    Open,
    Close,
    /// Asks about a path.
    StatPath,
    /// Asks about an open file.
    StatOpen,
    Seek,
    Sync,
    /// Any other call on names and attributes of files.
    Metadata,
}

const TABLE: &[(Call, &[&str])] = &[
    (
        Call::Read,
        &[
            "read",
            "pread",
            "pread64",
            "readv",
            "preadv",
            "preadv2",
            "preadv64",
            "preadv64v2",
            "__read_chk",
            "__pread_chk",
            "__pread64_chk",
        ],
    ),
    (Call::Write, &["write", "pwrite", "pwrite64", "writev", "pwritev", "pwritev2", "pwritev64", "pwritev64v2"]),
    (Call::Copy, &["sendfile", "sendfile64", "copy_file_range"]),
    (
        Call::StreamRead,
        &[
            "fread",
            "fread_unlocked",
            "__fread_chk",
            "__fread_unlocked_chk",
            "fgets",
            "fgets_unlocked",
            "__fgets_chk",
            "__fgets_unlocked_chk",
            "fgetc",
            "fgetc_unlocked",
            "getc",
            "getc_unlocked",
            "_IO_getc",
            "getchar",
            "getchar_unlocked",
            "getline",
            "getdelim",
            "__getdelim",
            "__uflow",
        ],
    ),
    (
        Call::StreamWrite,
        &[
            "fwrite",
            "fwrite_unlocked",
            "fputs",
            "fputs_unlocked",
            "fputc",
            "fputc_unlocked",
            "putc",
            "putc_unlocked",
            "_IO_putc",
            "putchar",
            "putchar_unlocked",
            "puts",
            "printf",
            "__printf_chk",
            "fprintf",
            "__fprintf_chk",
            "vprintf",
            "__vprintf_chk",
            "vfprintf",
            "__vfprintf_chk",
            "__overflow",
        ],
    ),
    (Call::Flush, &["fflush", "fflush_unlocked"]),
    (Call::Buffering, &["setbuf", "setbuffer", "setvbuf", "setlinebuf"]),
    (
        Call::Open,
        &[
            "open",
            "open64",
            "openat",
            "openat64",
            "__open_2",
            "__open64_2",
            "__openat_2",
            "__openat64_2",
            "creat",
            "creat64",
            "fopen",
            "fopen64",
            "freopen",
            "freopen64",
        ],
    ),
    (Call::Close, &["close", "fclose"]),
    (
        Call::StatPath,
        &[
            "stat",
            "stat64",
            "lstat",
            "lstat64",
            "fstatat",
            "fstatat64",
            "statx",
            "__xstat",
            "__xstat64",
            "__lxstat",
            "__lxstat64",
            "__fxstatat",
            "__fxstatat64",
            "access",
            "eaccess",
            "euidaccess",
            "faccessat",
            "readlink",
            "readlinkat",
            "statfs",
            "statfs64",
            "statvfs",
            "statvfs64",
            "realpath",
        ],
    ),
    (Call::StatOpen, &["fstat", "fstat64", "__fxstat", "__fxstat64", "fstatfs", "fstatfs64", "fstatvfs", "fstatvfs64"]),
    (
        Call::Seek,
        &[
            "lseek", "lseek64", "fseek", "fseeko", "fseeko64", "ftell", "ftello", "ftello64", "rewind", "fsetpos",
            "fgetpos",
        ],
    ),
    (Call::Sync, &["fsync", "fdatasync", "sync", "syncfs", "msync", "sync_file_range", "aio_fsync"]),
    (
        Call::Metadata,
        &[
            "opendir",
            "fdopendir",
            "readdir",
            "readdir64",
            "closedir",
            "rewinddir",
            "scandir",
            "scandir64",
            "mkdir",
            "mkdirat",
            "rmdir",
            "unlink",
            "unlinkat",
            "remove",
            "rename",
            "renameat",
            "renameat2",
            "link",
            "linkat",
            "symlink",
            "symlinkat",
            "chmod",
            "fchmod",
            "fchmodat",
            "chown",
            "fchown",
            "fchownat",
            "lchown",
            "utime",
            "utimes",
            "utimensat",
            "futimens",
            "futimes",
            "truncate",
            "truncate64",
            "ftruncate",
            "ftruncate64",
            "mkfifo",
            "mknod",
            "mkstemp",
            "mkstemp64",
            "mkostemp",
            "mkostemp64",
            "mkdtemp",
            "flock",
            "lockf",
            "lockf64",
            "fcntl",
            "fcntl64",
        ],
    ),
];

impl Call {
    fn of(name: &str) -> Option<Call> {
        TABLE.iter().find(|(_, names)| names.contains(&name)).map(|(call, _)| *call)
    }

    /// Whether it is about names and attributes rather than content.
    pub(crate) fn is_metadata(self) -> bool {
        matches!(self, Call::Open | Call::Close | Call::StatPath | Call::StatOpen | Call::Seek | Call::Metadata)
    }
}

/// What a call of this name does, whatever its category.
pub(crate) fn call_of(name: &str) -> Option<Call> {
    Call::of(name)
}

/// What a span is to a training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The model works.
    Compute,
    /// The training loop waits for its next batch.
    Fetch,
    /// Samples are read and prepared, wherever that happens.
    Load,
    /// State is saved or restored.
    Checkpoint,
}

/// The loop's own waiting: DLIO's and DFTracer's names, and those of `weftline.torch`.
const FETCHES: &[&str] = &["fetch.iter", "fetch-data.iter", "<module>.iter", "loop.iter"];
/// What the loop does with a batch, though it is in the loader's category.
const YIELDS: &[&str] = &["loop.yield", "fetch.yield", "fetch-data.yield", "<module>.yield"];

impl Role {
    fn of(name: &str, cat: &str) -> Option<Role> {
        let is_loader = matches!(cat, "data" | "data_loader" | "dataloader" | "reader");
        match cat {
            _ if FETCHES.contains(&name) || name == "fetch" && is_loader => Some(Role::Fetch),
            _ if YIELDS.contains(&name) => None,
            // Making the object that will save or compute is neither.
            _ if name.ends_with(".__init__") || name.ends_with("init_loader") => None,
            "compute" | "ai_framework" => Some(Role::Compute),
            "checkpoint" => Some(Role::Checkpoint),
            _ if is_loader => Some(Role::Load),
            _ => None,
        }
    }
}

/// Calls and roles by the ids of a run.
pub(crate) struct Meanings {
    calls: Vec<Option<Call>>,
    libc: Vec<bool>,
    names: Vec<String>,
    cats: Vec<String>,
    /// Files with content of their own: no pipes, sockets, devices or kernel files.
    regular: Vec<bool>,
    checkpoint_file: Vec<bool>,
}

impl Meanings {
    pub(crate) fn new(dictionary: &Dictionary) -> Meanings {
        let cats: Vec<String> = dictionary.cats.iter().map(str::to_lowercase).collect();
        Meanings {
            calls: dictionary.names.iter().map(Call::of).collect(),
            libc: cats.iter().map(|cat| cat.contains("posix") || cat.contains("stdio")).collect(),
            names: dictionary.names.iter().map(str::to_owned).collect(),
            cats,
            regular: dictionary.files.iter().map(is_regular).collect(),
            checkpoint_file: dictionary.files.iter().map(is_checkpoint).collect(),
        }
    }

    pub(crate) fn call(&self, name: u32, cat: u32) -> Option<Call> {
        self.libc[cat as usize].then(|| self.calls[name as usize]).flatten()
    }

    pub(crate) fn role(&self, name: u32, cat: u32) -> Option<Role> {
        Role::of(&self.names[name as usize], &self.cats[cat as usize])
    }

    pub(crate) fn is_regular(&self, file: u32) -> bool {
        self.regular[file as usize]
    }

    pub(crate) fn is_checkpoint_file(&self, file: u32) -> bool {
        self.checkpoint_file[file as usize]
    }

    /// The names of this run that are one of `calls`, as a list for SQL.
    pub(crate) fn sql_names(&self, calls: &[Call]) -> String {
        let mut names: Vec<&str> = self
            .names
            .iter()
            .zip(&self.calls)
            .filter(|(_, call)| call.is_some_and(|call| calls.contains(&call)))
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
    }
}

fn is_regular(path: &str) -> bool {
    let kernel = ["/dev/", "/proc/", "/sys/"].iter().any(|place| path.starts_with(place));
    // `pipe:[1234]`, `socket:[5]`, `anon_inode:[eventpoll]`, `memfd:name`.
    let nameless = !path.starts_with('/') && (path.contains(":[") || path.starts_with("memfd:"));
    !path.is_empty() && !kernel && !nameless
}

fn is_checkpoint(path: &str) -> bool {
    let lower = path.to_lowercase();
    let ends = [".ckpt", ".pt", ".pth", ".safetensors", ".distcp"];
    lower.contains("checkpoint") || lower.contains("/ckpt") || ends.iter().any(|end| lower.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_two_calls() {
        let mut names: Vec<&str> = TABLE.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn files_with_content_are_told_from_others() {
        for (path, expected) in [
            ("/data/x", true),
            ("data/x", true),
            ("pipe:[12]", false),
            ("socket:[12]", false),
            ("anon_inode:[eventpoll]", false),
            ("/dev/null", false),
            ("/proc/self/maps", false),
            ("/developer/x", true),
            ("", false),
        ] {
            assert_eq!(is_regular(path), expected, "{path}");
        }
    }

    #[test]
    fn spans_have_roles() {
        for (name, cat, expected) in [
            ("loop.iter", "data_loader", Some(Role::Fetch)),
            ("fetch", "dataloader", Some(Role::Fetch)),
            ("loop.yield", "data_loader", None),
            ("TorchFramework.compute", "ai_framework", Some(Role::Compute)),
            ("forward", "compute", Some(Role::Compute)),
            ("HDF5Reader.open", "reader", Some(Role::Load)),
            ("capture", "checkpoint", Some(Role::Checkpoint)),
            ("PyTorchCheckpointing.__init__", "checkpoint", None),
            ("fetch", "app", None),
        ] {
            assert_eq!(Role::of(name, cat), expected, "{name} {cat}");
        }
    }
}
