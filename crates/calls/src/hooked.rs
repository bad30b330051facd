//! The calls that the preload hooks, one line each.
//!
//! A line has the function's C signature, after `=>` the recipe that records it with its arguments, after `is` the
//! operation, the name that users know and, in brackets, the name of the record's detail. Everything else is generated from the
//! line and so cannot drift apart: number and name ([`Call`]), meaning ([`CALLS`]), the exported hook (crate `preload`, which expands
//! the same table and has one function per recipe) and the row of `docs/hooks.md`.
//!
//! Calls under `by_hand` are recorded by code of their own in the preload crate: those that create processes or replace the image, and
//! truly variadic ones. Those under `watched` make no event; they show the recorder what the process may still do.

use crate::{CallInfo, Family, Operation};

/// Hands the table to the macro `$consumer`.
#[macro_export]
macro_rules! hooked_calls {
    ($consumer:ident) => { $consumer! {
        table {
        Posix {
            open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int => open_at(AT_FDCWD, path, flags, mode) is Open open [flags];
            open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int => open_at(AT_FDCWD, path, flags, mode) is Open open [flags];
            openat(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int => open_at(dir, path, flags, mode) is Open openat [flags];
            openat64(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int => open_at(dir, path, flags, mode) is Open openat [flags];
            creat(path: *const c_char, mode: mode_t) -> c_int => open_at(AT_FDCWD, path, CREAT_FLAGS, mode) is Open creat [flags];
            creat64(path: *const c_char, mode: mode_t) -> c_int => open_at(AT_FDCWD, path, CREAT_FLAGS, mode) is Open creat [flags];
            __open_2(path: *const c_char, flags: c_int) -> c_int => open_at(AT_FDCWD, path, flags, 0) is Open open [flags];
            __open64_2(path: *const c_char, flags: c_int) -> c_int => open_at(AT_FDCWD, path, flags, 0) is Open open [flags];
            __openat_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int => open_at(dir, path, flags, 0) is Open openat [flags];
            __openat64_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int => open_at(dir, path, flags, 0) is Open openat [flags];
            mkstemp(template: *mut c_char) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS, 0o600) is Open mkstemp [flags];
            mkstemp64(template: *mut c_char) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS, 0o600) is Open mkstemp [flags];
            mkostemp(template: *mut c_char, flags: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS | flags, 0o600) is Open mkostemp [flags];
            mkostemp64(template: *mut c_char, flags: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS | flags, 0o600) is Open mkostemp [flags];
            mkstemps(template: *mut c_char, suffix: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS, 0o600) is Open mkstemps [flags];
            mkstemps64(template: *mut c_char, suffix: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS, 0o600) is Open mkstemps [flags];
            mkostemps(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS | flags, 0o600) is Open mkostemps [flags];
            mkostemps64(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS | flags, 0o600) is Open mkostemps [flags];
            memfd_create(name: *const c_char, flags: c_uint) -> c_int => new_fd() is Descriptor memfd_create;
            pipe(fds: *mut c_int) -> c_int => new_pair(fds) is Pipe pipe [fd2];
            pipe2(fds: *mut c_int, flags: c_int) -> c_int => new_pair(fds) is Pipe pipe2 [fd2];
            socketpair(domain: c_int, kind: c_int, protocol: c_int, fds: *mut c_int) -> c_int => new_pair(fds) is Socket socketpair [fd2];
            socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int => new_fd() is Socket socket;
            accept(fd: c_int, addr: *mut c_void, len: *mut c_void) -> c_int => new_fd() is Accept accept;
            accept4(fd: c_int, addr: *mut c_void, len: *mut c_void, flags: c_int) -> c_int => new_fd() is Accept accept4;

            read(fd: c_int, buf: *mut c_void, n: size_t) -> ssize_t => read_next(fd, n) is Read read;
            __read_chk(fd: c_int, buf: *mut c_void, n: size_t, room: size_t) -> ssize_t => read_next(fd, n) is Read read;
            write(fd: c_int, buf: *const c_void, n: size_t) -> ssize_t => write_next(fd, n) is Write write;
            readv(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t => readv_next(fd, iov, count) is Read readv [iovcnt];
            writev(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t => writev_next(fd, iov, count) is Write writev [iovcnt];
            pread(fd: c_int, buf: *mut c_void, n: size_t, offset: off64_t) -> ssize_t => read_at(fd, n, offset) is Read pread;
            pread64(fd: c_int, buf: *mut c_void, n: size_t, offset: off64_t) -> ssize_t => read_at(fd, n, offset) is Read pread;
            __pread_chk(fd: c_int, buf: *mut c_void, n: size_t, offset: off64_t, room: size_t) -> ssize_t => read_at(fd, n, offset) is Read pread;
            __pread64_chk(fd: c_int, buf: *mut c_void, n: size_t, offset: off64_t, room: size_t) -> ssize_t => read_at(fd, n, offset) is Read pread;
            pwrite(fd: c_int, buf: *const c_void, n: size_t, offset: off64_t) -> ssize_t => write_at(fd, n, offset) is Write pwrite;
            pwrite64(fd: c_int, buf: *const c_void, n: size_t, offset: off64_t) -> ssize_t => write_at(fd, n, offset) is Write pwrite;
            preadv(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t) -> ssize_t => readv_at(fd, iov, count, offset) is Read preadv [iovcnt];
            preadv64(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t) -> ssize_t => readv_at(fd, iov, count, offset) is Read preadv [iovcnt];
            pwritev(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t) -> ssize_t => writev_at(fd, iov, count, offset) is Write pwritev [iovcnt];
            pwritev64(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t) -> ssize_t => writev_at(fd, iov, count, offset) is Write pwritev [iovcnt];
            preadv2(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> ssize_t => readv_at(fd, iov, count, offset) is Read preadv2 [iovcnt];
            preadv64v2(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> ssize_t => readv_at(fd, iov, count, offset) is Read preadv2 [iovcnt];
            pwritev2(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> ssize_t => writev_at(fd, iov, count, offset) is Write pwritev2 [iovcnt];
            pwritev64v2(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> ssize_t => writev_at(fd, iov, count, offset) is Write pwritev2 [iovcnt];
            lseek(fd: c_int, offset: off64_t, whence: c_int) -> off64_t => seek(fd, offset, whence) is Seek lseek [whence];
            lseek64(fd: c_int, offset: off64_t, whence: c_int) -> off64_t => seek(fd, offset, whence) is Seek lseek [whence];

            close(fd: c_int) -> c_int => close_fd(fd) is Close close;
            close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int => close_many(first, last, flags) is Close close_range [last];
            closefrom(first: c_int) -> () => close_many(first, u32::MAX, 0) is Close closefrom [last];
            dup(fd: c_int) -> c_int => duplicate(fd, -1) is Descriptor dup [to];
            dup2(fd: c_int, to: c_int) -> c_int => duplicate(fd, to) is Descriptor dup2 [to];
            dup3(fd: c_int, to: c_int, flags: c_int) -> c_int => duplicate(fd, to) is Descriptor dup3 [to];
            fcntl(fd: c_int, command: c_int, arg: *mut c_void) -> c_int => control(fd, command) is Metadata fcntl [cmd];
            fcntl64(fd: c_int, command: c_int, arg: *mut c_void) -> c_int => control(fd, command) is Metadata fcntl [cmd];
            flock(fd: c_int, operation: c_int) -> c_int => on_fd(fd, operation) is Lock flock [operation];
            lockf(fd: c_int, command: c_int, len: off64_t) -> c_int => on_fd(fd, command) is Lock lockf [operation];
            lockf64(fd: c_int, command: c_int, len: off64_t) -> c_int => on_fd(fd, command) is Lock lockf [operation];

            fsync(fd: c_int) -> c_int => on_fd(fd, 0) is Sync fsync;
            fdatasync(fd: c_int) -> c_int => on_fd(fd, 0) is Sync fdatasync;
            syncfs(fd: c_int) -> c_int => on_fd(fd, 0) is Sync syncfs;
            sync() -> () => whole() is Sync sync;
            sync_file_range(fd: c_int, offset: off64_t, n: off64_t, flags: c_uint) -> c_int => on_range(fd, offset, n, flags) is Sync sync_file_range [flags];
            readahead(fd: c_int, offset: off64_t, n: size_t) -> ssize_t => on_range(fd, offset, n, 0) is Advise readahead;
            fallocate(fd: c_int, mode: c_int, offset: off64_t, n: off64_t) -> c_int => on_range(fd, offset, n, mode) is Metadata fallocate [mode];
            fallocate64(fd: c_int, mode: c_int, offset: off64_t, n: off64_t) -> c_int => on_range(fd, offset, n, mode) is Metadata fallocate [mode];
            posix_fallocate(fd: c_int, offset: off64_t, n: off64_t) -> c_int => on_range_direct(fd, offset, n, 0) is Metadata posix_fallocate;
            posix_fallocate64(fd: c_int, offset: off64_t, n: off64_t) -> c_int => on_range_direct(fd, offset, n, 0) is Metadata posix_fallocate;
            posix_fadvise(fd: c_int, offset: off64_t, n: off64_t, advice: c_int) -> c_int => on_range_direct(fd, offset, n, advice) is Advise posix_fadvise [advice];
            posix_fadvise64(fd: c_int, offset: off64_t, n: off64_t, advice: c_int) -> c_int => on_range_direct(fd, offset, n, advice) is Advise posix_fadvise [advice];
            ftruncate(fd: c_int, n: off64_t) -> c_int => on_range(fd, NO_OFFSET, n, 0) is Metadata ftruncate;
            ftruncate64(fd: c_int, n: off64_t) -> c_int => on_range(fd, NO_OFFSET, n, 0) is Metadata ftruncate;
            truncate(path: *const c_char, n: off64_t) -> c_int => truncate_path(path, n) is Metadata truncate;
            truncate64(path: *const c_char, n: off64_t) -> c_int => truncate_path(path, n) is Metadata truncate;

            stat(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath stat;
            stat64(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath stat;
            lstat(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath lstat;
            lstat64(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath lstat;
            fstat(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0) is StatOpen fstat;
            fstat64(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0) is StatOpen fstat;
            fstatat(dir: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int => on_path(dir, path, flags) is StatPath fstatat [flags];
            fstatat64(dir: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int => on_path(dir, path, flags) is StatPath fstatat [flags];
            statx(dir: c_int, path: *const c_char, flags: c_int, mask: c_uint, out: *mut c_void) -> c_int => on_path(dir, path, flags) is StatPath statx [flags];
            __xstat(version: c_int, path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath stat;
            __xstat64(version: c_int, path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath stat;
            __lxstat(version: c_int, path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath lstat;
            __lxstat64(version: c_int, path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath lstat;
            __fxstat(version: c_int, fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0) is StatOpen fstat;
            __fxstat64(version: c_int, fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0) is StatOpen fstat;
            __fxstatat(version: c_int, dir: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int => on_path(dir, path, flags) is StatPath fstatat [flags];
            __fxstatat64(version: c_int, dir: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int => on_path(dir, path, flags) is StatPath fstatat [flags];
            statfs(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath statfs;
            statfs64(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath statfs;
            fstatfs(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0) is StatOpen fstatfs;
            fstatfs64(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0) is StatOpen fstatfs;
            statvfs(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath statvfs;
            statvfs64(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is StatPath statvfs;
            fstatvfs(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0) is StatOpen fstatvfs;
            fstatvfs64(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0) is StatOpen fstatvfs;
            access(path: *const c_char, mode: c_int) -> c_int => on_path(AT_FDCWD, path, mode) is Access access [mode];
            eaccess(path: *const c_char, mode: c_int) -> c_int => on_path(AT_FDCWD, path, mode) is Access eaccess [mode];
            euidaccess(path: *const c_char, mode: c_int) -> c_int => on_path(AT_FDCWD, path, mode) is Access eaccess [mode];
            faccessat(dir: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int => on_path(dir, path, mode) is Access faccessat [mode];
            readlink(path: *const c_char, buf: *mut c_char, n: size_t) -> ssize_t => on_path(AT_FDCWD, path, 0) is Access readlink;
            readlinkat(dir: c_int, path: *const c_char, buf: *mut c_char, n: size_t) -> ssize_t => on_path(dir, path, 0) is Access readlinkat;
            __readlink_chk(path: *const c_char, buf: *mut c_char, n: size_t, room: size_t) -> ssize_t => on_path(AT_FDCWD, path, 0) is Access readlink;
            __readlinkat_chk(dir: c_int, path: *const c_char, buf: *mut c_char, n: size_t, room: size_t) -> ssize_t => on_path(dir, path, 0) is Access readlinkat;
            realpath(path: *const c_char, out: *mut c_char) -> *mut c_char => on_path(AT_FDCWD, path, 0) is Access realpath;
            __realpath_chk(path: *const c_char, out: *mut c_char, room: size_t) -> *mut c_char => on_path(AT_FDCWD, path, 0) is Access realpath;

            mkdir(path: *const c_char, mode: mode_t) -> c_int => on_path(AT_FDCWD, path, mode) is Metadata mkdir [mode];
            mkdirat(dir: c_int, path: *const c_char, mode: mode_t) -> c_int => on_path(dir, path, mode) is Metadata mkdirat [mode];
            mkdtemp(template: *mut c_char) -> *mut c_char => on_path(AT_FDCWD, template, 0o700) is Metadata mkdtemp [mode];
            mkfifo(path: *const c_char, mode: mode_t) -> c_int => on_path(AT_FDCWD, path, mode) is Metadata mkfifo [mode];
            mkfifoat(dir: c_int, path: *const c_char, mode: mode_t) -> c_int => on_path(dir, path, mode) is Metadata mkfifoat [mode];
            mknod(path: *const c_char, mode: mode_t, device: dev_t) -> c_int => on_path(AT_FDCWD, path, mode) is Metadata mknod [mode];
            mknodat(dir: c_int, path: *const c_char, mode: mode_t, device: dev_t) -> c_int => on_path(dir, path, mode) is Metadata mknodat [mode];
            rmdir(path: *const c_char) -> c_int => on_path(AT_FDCWD, path, 0) is Metadata rmdir;
            unlink(path: *const c_char) -> c_int => on_path(AT_FDCWD, path, 0) is Metadata unlink;
            unlinkat(dir: c_int, path: *const c_char, flags: c_int) -> c_int => on_path(dir, path, flags) is Metadata unlinkat [flags];
            remove(path: *const c_char) -> c_int => on_path(AT_FDCWD, path, 0) is Metadata remove;
            rename(from: *const c_char, to: *const c_char) -> c_int => two_paths(AT_FDCWD, from, AT_FDCWD, to) is Metadata rename;
            renameat(from_dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char) -> c_int => two_paths(from_dir, from, to_dir, to) is Metadata renameat;
            renameat2(from_dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char, flags: c_uint) -> c_int => two_paths(from_dir, from, to_dir, to) is Metadata renameat2;
            link(from: *const c_char, to: *const c_char) -> c_int => two_paths(AT_FDCWD, from, AT_FDCWD, to) is Metadata link;
            linkat(from_dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char, flags: c_int) -> c_int => two_paths(from_dir, from, to_dir, to) is Metadata linkat;
            symlink(target: *const c_char, path: *const c_char) -> c_int => symlink_at(target, AT_FDCWD, path) is Metadata symlink;
            symlinkat(target: *const c_char, dir: c_int, path: *const c_char) -> c_int => symlink_at(target, dir, path) is Metadata symlinkat;
            chmod(path: *const c_char, mode: mode_t) -> c_int => on_path(AT_FDCWD, path, mode) is Metadata chmod [mode];
            lchmod(path: *const c_char, mode: mode_t) -> c_int => on_path(AT_FDCWD, path, mode) is Metadata lchmod [mode];
            fchmod(fd: c_int, mode: mode_t) -> c_int => on_fd(fd, mode) is Metadata fchmod [mode];
            fchmodat(dir: c_int, path: *const c_char, mode: mode_t, flags: c_int) -> c_int => on_path(dir, path, mode) is Metadata fchmodat [mode];
            chown(path: *const c_char, uid: uid_t, gid: gid_t) -> c_int => on_path(AT_FDCWD, path, 0) is Metadata chown;
            lchown(path: *const c_char, uid: uid_t, gid: gid_t) -> c_int => on_path(AT_FDCWD, path, 0) is Metadata lchown;
            fchown(fd: c_int, uid: uid_t, gid: gid_t) -> c_int => on_fd(fd, 0) is Metadata fchown;
            fchownat(dir: c_int, path: *const c_char, uid: uid_t, gid: gid_t, flags: c_int) -> c_int => on_path(dir, path, flags) is Metadata fchownat [flags];
            utime(path: *const c_char, times: *const c_void) -> c_int => on_path(AT_FDCWD, path, 0) is Metadata utime;
            utimes(path: *const c_char, times: *const c_void) -> c_int => on_path(AT_FDCWD, path, 0) is Metadata utimes;
            lutimes(path: *const c_char, times: *const c_void) -> c_int => on_path(AT_FDCWD, path, 0) is Metadata lutimes;
            futimes(fd: c_int, times: *const c_void) -> c_int => on_fd(fd, 0) is Metadata futimes;
            futimesat(dir: c_int, path: *const c_char, times: *const c_void) -> c_int => on_path(dir, path, 0) is Metadata futimesat;
            utimensat(dir: c_int, path: *const c_char, times: *const c_void, flags: c_int) -> c_int => on_path(dir, path, flags) is Metadata utimensat [flags];
            futimens(fd: c_int, times: *const c_void) -> c_int => on_fd(fd, 0) is Metadata futimens;
            chdir(path: *const c_char) -> c_int => change_dir(path) is ChangeDirectory chdir;
            fchdir(fd: c_int) -> c_int => change_dir_fd(fd) is ChangeDirectory fchdir;
            chroot(path: *const c_char) -> c_int => change_root(path) is Metadata chroot;

            opendir(path: *const c_char) -> *mut c_void => open_dir(path) is Metadata opendir;
            fdopendir(fd: c_int) -> *mut c_void => on_fd(fd, 0) is Metadata fdopendir;
            readdir(dir: *mut c_void) -> *mut c_void => on_dir(dir) is Metadata readdir;
            readdir64(dir: *mut c_void) -> *mut c_void => on_dir(dir) is Metadata readdir;
            rewinddir(dir: *mut c_void) -> () => on_dir(dir) is Metadata rewinddir;
            closedir(dir: *mut c_void) -> c_int => close_dir(dir) is Metadata closedir;
            scandir(path: *const c_char, out: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is Metadata scandir;
            scandir64(path: *const c_char, out: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0) is Metadata scandir;
            scandirat(dir: c_int, path: *const c_char, out: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int => on_path(dir, path, 0) is Metadata scandirat;
            scandirat64(dir: c_int, path: *const c_char, out: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int => on_path(dir, path, 0) is Metadata scandirat;

            mmap(addr: *mut c_void, n: size_t, prot: c_int, flags: c_int, fd: c_int, offset: off64_t) -> *mut c_void => map(n, prot, flags, fd, offset) is Map mmap [prot];
            mmap64(addr: *mut c_void, n: size_t, prot: c_int, flags: c_int, fd: c_int, offset: off64_t) -> *mut c_void => map(n, prot, flags, fd, offset) is Map mmap [prot];
            munmap(addr: *mut c_void, n: size_t) -> c_int => unmap(addr, n) is Map munmap;
            msync(addr: *mut c_void, n: size_t, flags: c_int) -> c_int => on_mapping(addr, n, flags) is Sync msync [flags];
            madvise(addr: *mut c_void, n: size_t, advice: c_int) -> c_int => on_mapping(addr, n, advice) is Advise madvise [advice];
            posix_madvise(addr: *mut c_void, n: size_t, advice: c_int) -> c_int => on_mapping(addr, n, advice) is Advise posix_madvise [advice];

            sendfile(to: c_int, from: c_int, offset: *mut off64_t, n: size_t) -> ssize_t => transfer(to, from, n) is Copy sendfile [from_fd];
            sendfile64(to: c_int, from: c_int, offset: *mut off64_t, n: size_t) -> ssize_t => transfer(to, from, n) is Copy sendfile [from_fd];
            copy_file_range(from: c_int, from_offset: *mut off64_t, to: c_int, to_offset: *mut off64_t, n: size_t, flags: c_uint) -> ssize_t => transfer(to, from, n) is Copy copy_file_range [from_fd];
            splice(from: c_int, from_offset: *mut off64_t, to: c_int, to_offset: *mut off64_t, n: size_t, flags: c_uint) -> ssize_t => splice_pipe(to, from, n) is Splice splice [from_fd];
            tee(from: c_int, to: c_int, n: size_t, flags: c_uint) -> ssize_t => splice_pipe(to, from, n) is Splice tee [from_fd];
            vmsplice(fd: c_int, iov: *const iovec, count: size_t, flags: c_uint) -> ssize_t => splice_memory(fd, iov, count) is SpliceMemory vmsplice [iovcnt];

            aio_read(request: *mut aiocb) -> c_int => aio_submit(request) is Submit aio_read;
            aio_read64(request: *mut aiocb) -> c_int => aio_submit(request) is Submit aio_read;
            aio_write(request: *mut aiocb) -> c_int => aio_submit(request) is Submit aio_write;
            aio_write64(request: *mut aiocb) -> c_int => aio_submit(request) is Submit aio_write;
            aio_fsync(operation: c_int, request: *mut aiocb) -> c_int => aio_submit(request) is Sync aio_fsync;
            aio_fsync64(operation: c_int, request: *mut aiocb) -> c_int => aio_submit(request) is Sync aio_fsync;
            aio_return(request: *mut aiocb) -> ssize_t => aio_result(request) is Result aio_return;
            aio_return64(request: *mut aiocb) -> ssize_t => aio_result(request) is Result aio_return;
            lio_listio(mode: c_int, list: *const *mut aiocb, n: c_int, event: *mut c_void) -> c_int => whole() is Submit lio_listio;
            lio_listio64(mode: c_int, list: *const *mut aiocb, n: c_int, event: *mut c_void) -> c_int => whole() is Submit lio_listio;
            aio_suspend(list: *const *const aiocb, n: c_int, timeout: *const c_void) -> c_int => whole() is Suspend aio_suspend;
            aio_suspend64(list: *const *const aiocb, n: c_int, timeout: *const c_void) -> c_int => whole() is Suspend aio_suspend;
        }
        Stdio {
            fopen(path: *const c_char, mode: *const c_char) -> *mut FILE => open_stream(path) is Open fopen;
            fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE => open_stream(path) is Open fopen;
            fdopen(fd: c_int, mode: *const c_char) -> *mut FILE => on_fd(fd, 0) is Metadata fdopen;
            freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE => reopen_stream(path, stream) is Open freopen;
            freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE => reopen_stream(path, stream) is Open freopen;
            tmpfile() -> *mut FILE => temp_stream() is Open tmpfile;
            tmpfile64() -> *mut FILE => temp_stream() is Open tmpfile;
            fclose(stream: *mut FILE) -> c_int => close_stream(stream) is Close fclose;
            fread(buf: *mut c_void, size: size_t, n: size_t, stream: *mut FILE) -> size_t => read_items(stream, size, n) is StreamRead fread;
            fread_unlocked(buf: *mut c_void, size: size_t, n: size_t, stream: *mut FILE) -> size_t => read_items(stream, size, n) is StreamRead fread;
            __fread_chk(buf: *mut c_void, room: size_t, size: size_t, n: size_t, stream: *mut FILE) -> size_t => read_items(stream, size, n) is StreamRead fread;
            __fread_unlocked_chk(buf: *mut c_void, room: size_t, size: size_t, n: size_t, stream: *mut FILE) -> size_t => read_items(stream, size, n) is StreamRead fread;
            fwrite(buf: *const c_void, size: size_t, n: size_t, stream: *mut FILE) -> size_t => write_items(stream, size, n) is StreamWrite fwrite;
            fwrite_unlocked(buf: *const c_void, size: size_t, n: size_t, stream: *mut FILE) -> size_t => write_items(stream, size, n) is StreamWrite fwrite;
            fgets(buf: *mut c_char, n: c_int, stream: *mut FILE) -> *mut c_char => read_text(stream, n) is StreamRead fgets;
            fgets_unlocked(buf: *mut c_char, n: c_int, stream: *mut FILE) -> *mut c_char => read_text(stream, n) is StreamRead fgets;
            __fgets_chk(buf: *mut c_char, room: size_t, n: c_int, stream: *mut FILE) -> *mut c_char => read_text(stream, n) is StreamRead fgets;
            __fgets_unlocked_chk(buf: *mut c_char, room: size_t, n: c_int, stream: *mut FILE) -> *mut c_char => read_text(stream, n) is StreamRead fgets;
            fputs(text: *const c_char, stream: *mut FILE) -> c_int => write_text(stream, text) is StreamWrite fputs;
            fputs_unlocked(text: *const c_char, stream: *mut FILE) -> c_int => write_text(stream, text) is StreamWrite fputs;
            puts(text: *const c_char) -> c_int => write_line(text) is StreamWrite puts;
            getline(line: *mut *mut c_char, room: *mut size_t, stream: *mut FILE) -> ssize_t => read_bytes(stream) is StreamRead getline;
            getdelim(line: *mut *mut c_char, room: *mut size_t, delimiter: c_int, stream: *mut FILE) -> ssize_t => read_bytes(stream) is StreamRead getdelim;
            __getdelim(line: *mut *mut c_char, room: *mut size_t, delimiter: c_int, stream: *mut FILE) -> ssize_t => read_bytes(stream) is StreamRead getdelim;
            vfprintf(stream: *mut FILE, format: *const c_char, args: *mut c_void) -> c_int => write_bytes(stream) is StreamWrite vfprintf;
            __vfprintf_chk(stream: *mut FILE, flag: c_int, format: *const c_char, args: *mut c_void) -> c_int => write_bytes(stream) is StreamWrite vfprintf;
            vprintf(format: *const c_char, args: *mut c_void) -> c_int => write_standard() is StreamWrite vprintf;
            __vprintf_chk(flag: c_int, format: *const c_char, args: *mut c_void) -> c_int => write_standard() is StreamWrite vprintf;
            vdprintf(fd: c_int, format: *const c_char, args: *mut c_void) -> c_int => write_formatted(fd) is Write vdprintf;
            __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, args: *mut c_void) -> c_int => write_formatted(fd) is Write vdprintf;
            vfscanf(stream: *mut FILE, format: *const c_char, args: *mut c_void) -> c_int => scan(stream) is Scan vfscanf;
            __isoc99_vfscanf(stream: *mut FILE, format: *const c_char, args: *mut c_void) -> c_int => scan(stream) is Scan vfscanf;
            __isoc23_vfscanf(stream: *mut FILE, format: *const c_char, args: *mut c_void) -> c_int => scan(stream) is Scan vfscanf;
            vscanf(format: *const c_char, args: *mut c_void) -> c_int => scan_standard() is Scan vscanf;
            __isoc99_vscanf(format: *const c_char, args: *mut c_void) -> c_int => scan_standard() is Scan vscanf;
            __isoc23_vscanf(format: *const c_char, args: *mut c_void) -> c_int => scan_standard() is Scan vscanf;
            fseek(stream: *mut FILE, offset: c_long, whence: c_int) -> c_int => seek_stream(stream, offset, whence) is Seek fseek [whence];
            fseeko(stream: *mut FILE, offset: off64_t, whence: c_int) -> c_int => seek_stream(stream, offset, whence) is Seek fseeko [whence];
            fseeko64(stream: *mut FILE, offset: off64_t, whence: c_int) -> c_int => seek_stream(stream, offset, whence) is Seek fseeko [whence];
            ftell(stream: *mut FILE) -> c_long => on_stream(stream) is Tell ftell;
            ftello(stream: *mut FILE) -> off64_t => on_stream(stream) is Tell ftello;
            ftello64(stream: *mut FILE) -> off64_t => on_stream(stream) is Tell ftello;
            rewind(stream: *mut FILE) -> () => on_stream(stream) is Seek rewind;
            fgetpos(stream: *mut FILE, position: *mut c_void) -> c_int => on_stream(stream) is Tell fgetpos;
            fgetpos64(stream: *mut FILE, position: *mut c_void) -> c_int => on_stream(stream) is Tell fgetpos;
            fsetpos(stream: *mut FILE, position: *const c_void) -> c_int => on_stream(stream) is Seek fsetpos;
            fsetpos64(stream: *mut FILE, position: *const c_void) -> c_int => on_stream(stream) is Seek fsetpos;
            fflush(stream: *mut FILE) -> c_int => on_stream(stream) is Flush fflush;
            fflush_unlocked(stream: *mut FILE) -> c_int => on_stream(stream) is Flush fflush;
            setvbuf(stream: *mut FILE, buf: *mut c_char, mode: c_int, n: size_t) -> c_int => set_buffer(stream, n, mode) is Buffering setvbuf [mode];
            setbuf(stream: *mut FILE, buf: *mut c_char) -> () => on_stream(stream) is Buffering setbuf;
            setbuffer(stream: *mut FILE, buf: *mut c_char, n: size_t) -> () => set_buffer(stream, n, 0) is Buffering setbuffer [mode];
            setlinebuf(stream: *mut FILE) -> () => on_stream(stream) is Buffering setlinebuf;
            getc(stream: *mut FILE) -> c_int => read_char(stream) is StreamRead getc;
            fgetc(stream: *mut FILE) -> c_int => read_char(stream) is StreamRead fgetc;
            _IO_getc(stream: *mut FILE) -> c_int => read_char(stream) is StreamRead getc;
            getc_unlocked(stream: *mut FILE) -> c_int => read_char(stream) is StreamRead getc;
            fgetc_unlocked(stream: *mut FILE) -> c_int => read_char(stream) is StreamRead fgetc;
            getchar() -> c_int => read_char_standard() is StreamRead getchar;
            getchar_unlocked() -> c_int => read_char_standard() is StreamRead getchar;
            putc(c: c_int, stream: *mut FILE) -> c_int => write_char(stream) is StreamWrite putc;
            fputc(c: c_int, stream: *mut FILE) -> c_int => write_char(stream) is StreamWrite fputc;
            _IO_putc(c: c_int, stream: *mut FILE) -> c_int => write_char(stream) is StreamWrite putc;
            putc_unlocked(c: c_int, stream: *mut FILE) -> c_int => write_char(stream) is StreamWrite putc;
            fputc_unlocked(c: c_int, stream: *mut FILE) -> c_int => write_char(stream) is StreamWrite fputc;
            putchar(c: c_int) -> c_int => write_char_standard() is StreamWrite putchar;
            putchar_unlocked(c: c_int) -> c_int => write_char_standard() is StreamWrite putchar;
            __uflow(stream: *mut FILE) -> c_int => refill(stream) is StreamRead getc;
            __overflow(stream: *mut FILE, c: c_int) -> c_int => spill(stream) is StreamWrite putc;
            popen(command: *const c_char, mode: *const c_char) -> *mut FILE => open_process(command) is Process popen;
            pclose(stream: *mut FILE) -> c_int => close_stream(stream) is Wait pclose;
        }
        Network {
            connect(fd: c_int, addr: *const c_void, len: c_uint) -> c_int => on_fd(fd, 0) is Connect connect;
            recv(fd: c_int, buf: *mut c_void, n: size_t, flags: c_int) -> ssize_t => exchange(fd, n) is Receive recv;
            __recv_chk(fd: c_int, buf: *mut c_void, n: size_t, room: size_t, flags: c_int) -> ssize_t => exchange(fd, n) is Receive recv;
            recvfrom(fd: c_int, buf: *mut c_void, n: size_t, flags: c_int, addr: *mut c_void, len: *mut c_void) -> ssize_t => exchange(fd, n) is Receive recvfrom;
            __recvfrom_chk(fd: c_int, buf: *mut c_void, n: size_t, room: size_t, flags: c_int, addr: *mut c_void, len: *mut c_void) -> ssize_t => exchange(fd, n) is Receive recvfrom;
            recvmsg(fd: c_int, message: *mut c_void, flags: c_int) -> ssize_t => exchange(fd, 0) is Receive recvmsg;
            recvmmsg(fd: c_int, messages: *mut c_void, n: c_uint, flags: c_int, timeout: *mut c_void) -> c_int => exchange(fd, 0) is ReceiveMany recvmmsg;
            send(fd: c_int, buf: *const c_void, n: size_t, flags: c_int) -> ssize_t => exchange(fd, n) is Send send;
            sendto(fd: c_int, buf: *const c_void, n: size_t, flags: c_int, addr: *const c_void, len: c_uint) -> ssize_t => exchange(fd, n) is Send sendto;
            sendmsg(fd: c_int, message: *const c_void, flags: c_int) -> ssize_t => exchange(fd, 0) is Send sendmsg;
            sendmmsg(fd: c_int, messages: *mut c_void, n: c_uint, flags: c_int) -> c_int => exchange(fd, 0) is Ipc sendmmsg;
        }
        Wait {
            poll(fds: *mut c_void, n: c_ulong, timeout: c_int) -> c_int => pause() is Poll poll;
            __poll_chk(fds: *mut c_void, n: c_ulong, timeout: c_int, room: size_t) -> c_int => pause() is Poll poll;
            ppoll(fds: *mut c_void, n: c_ulong, timeout: *const c_void, mask: *const c_void) -> c_int => pause() is Poll ppoll;
            __ppoll_chk(fds: *mut c_void, n: c_ulong, timeout: *const c_void, mask: *const c_void, room: size_t) -> c_int => pause() is Poll ppoll;
            select(n: c_int, reads: *mut c_void, writes: *mut c_void, errors: *mut c_void, timeout: *mut c_void) -> c_int => pause() is Poll select;
            pselect(n: c_int, reads: *mut c_void, writes: *mut c_void, errors: *mut c_void, timeout: *const c_void, mask: *const c_void) -> c_int => pause() is Poll pselect;
            epoll_wait(fd: c_int, events: *mut c_void, n: c_int, timeout: c_int) -> c_int => pause_on(fd) is Poll epoll_wait;
            epoll_pwait(fd: c_int, events: *mut c_void, n: c_int, timeout: c_int, mask: *const c_void) -> c_int => pause_on(fd) is Poll epoll_pwait;
            epoll_pwait2(fd: c_int, events: *mut c_void, n: c_int, timeout: *const c_void, mask: *const c_void) -> c_int => pause_on(fd) is Poll epoll_pwait2;
            nanosleep(request: *const c_void, left: *mut c_void) -> c_int => pause() is Sleep nanosleep;
            clock_nanosleep(clock: c_int, flags: c_int, request: *const c_void, left: *mut c_void) -> c_int => pause() is Sleep clock_nanosleep;
            usleep(microseconds: c_uint) -> c_int => pause() is Sleep usleep;
            sleep(seconds: c_uint) -> c_int => pause() is Sleep sleep;
            pthread_join(thread: c_ulong, result: *mut c_void) -> c_int => pause() is Join pthread_join;
        }
        Process {
            system(command: *const c_char) -> c_int => run_shell(command) is Shell system;
            wait(status: *mut c_int) -> pid_t => reap() is WaitAny wait;
            wait3(status: *mut c_int, flags: c_int, usage: *mut c_void) -> pid_t => reap() is Wait wait3;
            wait4(pid: pid_t, status: *mut c_int, flags: c_int, usage: *mut c_void) -> pid_t => reap() is Wait wait4;
            waitpid(pid: pid_t, status: *mut c_int, flags: c_int) -> pid_t => reap() is Wait waitpid;
            waitid(kind: c_uint, id: c_uint, info: *mut siginfo_t, flags: c_int) -> c_int => reap_info(info) is Wait waitid;
        }
        }
        by_hand {
        Process {
            fork is Fork fork;
            vfork is Vfork vfork;
            clone is Fork clone;
            posix_spawn is Spawn posix_spawn;
            posix_spawnp is Spawn posix_spawnp;
            execve is Exec execve;
            execv is Exec execv;
            execvp is Exec execvp;
            execvpe is Exec execvpe;
            execl is Exec execl;
            execlp is Exec execlp;
            execle is Exec execle;
            fexecve is Exec fexecve;
            execveat is Exec execveat;
            _exit is Exit _exit;
            _Exit is Exit _exit;
            quick_exit is Exit quick_exit;
            exit is Exit exit;
        }
        Stdio {
            fprintf is StreamWrite fprintf;
            __fprintf_chk is StreamWrite fprintf;
            printf is StreamWrite printf;
            __printf_chk is StreamWrite printf;
            dprintf is Write dprintf;
            __dprintf_chk is Write dprintf;
            fscanf is Scan fscanf;
            __isoc99_fscanf is Scan fscanf;
            __isoc23_fscanf is Scan fscanf;
            scanf is Scan scanf;
            __isoc99_scanf is Scan scanf;
            __isoc23_scanf is Scan scanf;
        }
        }
        watched {
            prctl syscall unshare setns pthread_setname_np
        }
    } };
}

macro_rules! detail {
    () => {
        None
    };
    ($detail:ident) => {
        Some(stringify!($detail))
    };
}

macro_rules! define_calls {
    (
        table { $( $family:ident { $(
            $name:ident $args:tt -> $ret:ty => $shape:ident $given:tt is $operation:ident $canonical:ident $( [$detail:ident] )? ;
        )* } )* }
        by_hand { $( $hand_family:ident { $( $hand:ident is $hand_operation:ident $hand_canonical:ident ; )* } )* }
        watched { $( $watched:ident )* }
    ) => {
        /// Number of a hooked call; what a record's head holds.
        #[allow(non_camel_case_types, reason = "variants carry the C names")]
        #[allow(missing_docs, reason = "the table is the documentation")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Call {
            /// Never stored.
            Empty = 0,
            $( $( $name, )* )*
            $( $( $hand, )* )*
            /// The image started.
            start,
            /// The image announced its end.
            end,
            /// A thread was given a name: `fd` is its id, `path` the name.
            thread_name,
        }

        /// The table's entries of all hooked calls, by number.
        pub static CALLS: &[CallInfo] = &[
            mark("", Family::Weft, Operation::Mark),
            $( $( CallInfo {
                name: stringify!($name),
                canonical: stringify!($canonical),
                family: Family::$family,
                operation: Operation::$operation,
                detail: detail!($( $detail )?),
                shape: Shape::$shape,
            }, )* )*
            $( $( CallInfo {
                name: stringify!($hand),
                canonical: stringify!($hand_canonical),
                family: Family::$hand_family,
                operation: Operation::$hand_operation,
                detail: None,
                shape: Shape::by_hand,
            }, )* )*
            mark("start", Family::Weft, Operation::Mark),
            mark("end", Family::Weft, Operation::Mark),
            mark("thread_name", Family::Process, Operation::ThreadName),
        ];

        /// Functions that are hooked for what they tell, not for an event of their own.
        pub const WATCHED: &[&str] = &[ $( stringify!($watched) ),* ];
    };
}
hooked_calls!(define_calls);

const fn mark(name: &'static str, family: Family, operation: Operation) -> CallInfo {
    CallInfo { name, canonical: name, family, operation, detail: None, shape: Shape::none }
}

/// How the preload records a call: the recipes of the crate `preload`, by their names.
#[allow(non_camel_case_types, reason = "variants carry the names of the functions")]
#[allow(missing_docs, reason = "the functions are documented where they are")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// No hook records it.
    none,
    /// Code of its own.
    by_hand,
    open_at,
    new_fd,
    new_pair,
    read_next,
    write_next,
    readv_next,
    writev_next,
    read_at,
    write_at,
    readv_at,
    writev_at,
    seek,
    close_fd,
    close_many,
    duplicate,
    control,
    on_fd,
    whole,
    on_range,
    on_range_direct,
    truncate_path,
    on_path,
    two_paths,
    symlink_at,
    change_dir,
    change_dir_fd,
    change_root,
    open_dir,
    on_dir,
    close_dir,
    map,
    unmap,
    on_mapping,
    exchange,
    pause,
    pause_on,
    transfer,
    splice_pipe,
    splice_memory,
    aio_submit,
    aio_result,
    open_stream,
    reopen_stream,
    temp_stream,
    close_stream,
    read_items,
    write_items,
    read_text,
    write_text,
    write_line,
    read_bytes,
    write_bytes,
    write_standard,
    write_formatted,
    scan,
    scan_standard,
    seek_stream,
    on_stream,
    set_buffer,
    read_char,
    read_char_standard,
    write_char,
    write_char_standard,
    refill,
    spill,
    open_process,
    run_shell,
    reap,
    reap_info,
}

/// Changes whenever a call is added, removed or renumbered.
pub const fn fingerprint() -> u32 {
    let mut hash = 0x811c_9dc5u32;
    let mut call = 0;
    while call < CALLS.len() {
        let name = CALLS[call].name.as_bytes();
        let mut at = 0;
        while at < name.len() {
            hash = (hash ^ name[at] as u32).wrapping_mul(0x0100_0193);
            at += 1;
        }
        hash = hash.wrapping_mul(0x0100_0193);
        call += 1;
    }
    hash
}
