//! The one table of hooked calls.
//!
//! One line per function: its C signature and, behind `=>`, the *shape* of the event it makes. Three things are
//! generated from a line and so cannot drift apart: the number and name here ([`Call`]), the exported hook (crate
//! `preload`, which expands the same table and has one recipe per shape), and `docs/hooks.md`.
//!
//! Names under `by_hand` are recorded by code of their own in the preload crate: calls that create processes or replace the
//! image, and truly variadic ones.

/// What a call does to bytes; the coverage ledger compares these with the kernel's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Moves no file data.
    None,
    /// `ret` bytes were read.
    Read,
    /// `ret` bytes were written.
    Write,
    /// `ret` bytes were both read and written (sendfile, copy_file_range).
    Both,
}

/// Hands the table to the macro `$consumer`.
#[macro_export]
macro_rules! hooked_calls {
    ($consumer:ident) => { $consumer! {
        table {
        "POSIX" {
            open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int => open_at(AT_FDCWD, path, flags, mode);
            open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int => open_at(AT_FDCWD, path, flags, mode);
            openat(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int => open_at(dir, path, flags, mode);
            openat64(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int => open_at(dir, path, flags, mode);
            creat(path: *const c_char, mode: mode_t) -> c_int => open_at(AT_FDCWD, path, CREAT_FLAGS, mode);
            creat64(path: *const c_char, mode: mode_t) -> c_int => open_at(AT_FDCWD, path, CREAT_FLAGS, mode);
            __open_2(path: *const c_char, flags: c_int) -> c_int => open_at(AT_FDCWD, path, flags, 0);
            __open64_2(path: *const c_char, flags: c_int) -> c_int => open_at(AT_FDCWD, path, flags, 0);
            __openat_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int => open_at(dir, path, flags, 0);
            __openat64_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int => open_at(dir, path, flags, 0);
            mkstemp(template: *mut c_char) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS, 0o600);
            mkstemp64(template: *mut c_char) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS, 0o600);
            mkostemp(template: *mut c_char, flags: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS | flags, 0o600);
            mkostemp64(template: *mut c_char, flags: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS | flags, 0o600);
            mkstemps(template: *mut c_char, suffix: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS, 0o600);
            mkstemps64(template: *mut c_char, suffix: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS, 0o600);
            mkostemps(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS | flags, 0o600);
            mkostemps64(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int => open_at(AT_FDCWD, template, TEMP_FLAGS | flags, 0o600);
            memfd_create(name: *const c_char, flags: c_uint) -> c_int => new_fd();
            pipe(fds: *mut c_int) -> c_int => new_pair(fds);
            pipe2(fds: *mut c_int, flags: c_int) -> c_int => new_pair(fds);
            socketpair(domain: c_int, kind: c_int, protocol: c_int, fds: *mut c_int) -> c_int => new_pair(fds);
            socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int => new_fd();
            accept(fd: c_int, addr: *mut c_void, len: *mut c_void) -> c_int => new_fd();
            accept4(fd: c_int, addr: *mut c_void, len: *mut c_void, flags: c_int) -> c_int => new_fd();

            read(fd: c_int, buf: *mut c_void, n: size_t) -> ssize_t => read_next(fd, n);
            __read_chk(fd: c_int, buf: *mut c_void, n: size_t, room: size_t) -> ssize_t => read_next(fd, n);
            write(fd: c_int, buf: *const c_void, n: size_t) -> ssize_t => write_next(fd, n);
            readv(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t => readv_next(fd, iov, count);
            writev(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t => writev_next(fd, iov, count);
            pread(fd: c_int, buf: *mut c_void, n: size_t, offset: off64_t) -> ssize_t => read_at(fd, n, offset);
            pread64(fd: c_int, buf: *mut c_void, n: size_t, offset: off64_t) -> ssize_t => read_at(fd, n, offset);
            __pread_chk(fd: c_int, buf: *mut c_void, n: size_t, offset: off64_t, room: size_t) -> ssize_t => read_at(fd, n, offset);
            __pread64_chk(fd: c_int, buf: *mut c_void, n: size_t, offset: off64_t, room: size_t) -> ssize_t => read_at(fd, n, offset);
            pwrite(fd: c_int, buf: *const c_void, n: size_t, offset: off64_t) -> ssize_t => write_at(fd, n, offset);
            pwrite64(fd: c_int, buf: *const c_void, n: size_t, offset: off64_t) -> ssize_t => write_at(fd, n, offset);
            preadv(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t) -> ssize_t => readv_at(fd, iov, count, offset);
            preadv64(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t) -> ssize_t => readv_at(fd, iov, count, offset);
            pwritev(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t) -> ssize_t => writev_at(fd, iov, count, offset);
            pwritev64(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t) -> ssize_t => writev_at(fd, iov, count, offset);
            preadv2(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> ssize_t => readv_at(fd, iov, count, offset);
            preadv64v2(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> ssize_t => readv_at(fd, iov, count, offset);
            pwritev2(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> ssize_t => writev_at(fd, iov, count, offset);
            pwritev64v2(fd: c_int, iov: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> ssize_t => writev_at(fd, iov, count, offset);
            lseek(fd: c_int, offset: off64_t, whence: c_int) -> off64_t => seek(fd, offset, whence);
            lseek64(fd: c_int, offset: off64_t, whence: c_int) -> off64_t => seek(fd, offset, whence);

            close(fd: c_int) -> c_int => close_fd(fd);
            close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int => close_many(first, last, flags);
            closefrom(first: c_int) -> () => close_many(first, u32::MAX, 0);
            dup(fd: c_int) -> c_int => duplicate(fd, -1);
            dup2(fd: c_int, to: c_int) -> c_int => duplicate(fd, to);
            dup3(fd: c_int, to: c_int, flags: c_int) -> c_int => duplicate(fd, to);
            fcntl(fd: c_int, command: c_int, arg: *mut c_void) -> c_int => control(fd, command);
            fcntl64(fd: c_int, command: c_int, arg: *mut c_void) -> c_int => control(fd, command);
            flock(fd: c_int, operation: c_int) -> c_int => on_fd(fd, operation);
            lockf(fd: c_int, command: c_int, len: off64_t) -> c_int => on_fd(fd, command);
            lockf64(fd: c_int, command: c_int, len: off64_t) -> c_int => on_fd(fd, command);

            fsync(fd: c_int) -> c_int => on_fd(fd, 0);
            fdatasync(fd: c_int) -> c_int => on_fd(fd, 0);
            syncfs(fd: c_int) -> c_int => on_fd(fd, 0);
            sync() -> () => whole();
            sync_file_range(fd: c_int, offset: off64_t, n: off64_t, flags: c_uint) -> c_int => on_range(fd, offset, n, flags);
            readahead(fd: c_int, offset: off64_t, n: size_t) -> ssize_t => on_range(fd, offset, n, 0);
            fallocate(fd: c_int, mode: c_int, offset: off64_t, n: off64_t) -> c_int => on_range(fd, offset, n, mode);
            fallocate64(fd: c_int, mode: c_int, offset: off64_t, n: off64_t) -> c_int => on_range(fd, offset, n, mode);
            posix_fallocate(fd: c_int, offset: off64_t, n: off64_t) -> c_int => on_range_direct(fd, offset, n, 0);
            posix_fallocate64(fd: c_int, offset: off64_t, n: off64_t) -> c_int => on_range_direct(fd, offset, n, 0);
            posix_fadvise(fd: c_int, offset: off64_t, n: off64_t, advice: c_int) -> c_int => on_range_direct(fd, offset, n, advice);
            posix_fadvise64(fd: c_int, offset: off64_t, n: off64_t, advice: c_int) -> c_int => on_range_direct(fd, offset, n, advice);
            ftruncate(fd: c_int, n: off64_t) -> c_int => on_range(fd, NO_OFFSET, n, 0);
            ftruncate64(fd: c_int, n: off64_t) -> c_int => on_range(fd, NO_OFFSET, n, 0);
            truncate(path: *const c_char, n: off64_t) -> c_int => truncate_path(path, n);
            truncate64(path: *const c_char, n: off64_t) -> c_int => truncate_path(path, n);

            stat(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            stat64(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            lstat(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            lstat64(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            fstat(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0);
            fstat64(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0);
            fstatat(dir: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int => on_path(dir, path, flags);
            fstatat64(dir: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int => on_path(dir, path, flags);
            statx(dir: c_int, path: *const c_char, flags: c_int, mask: c_uint, out: *mut c_void) -> c_int => on_path(dir, path, flags);
            __xstat(version: c_int, path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            __xstat64(version: c_int, path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            __lxstat(version: c_int, path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            __lxstat64(version: c_int, path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            __fxstat(version: c_int, fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0);
            __fxstat64(version: c_int, fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0);
            __fxstatat(version: c_int, dir: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int => on_path(dir, path, flags);
            __fxstatat64(version: c_int, dir: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int => on_path(dir, path, flags);
            statfs(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            statfs64(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            fstatfs(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0);
            fstatfs64(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0);
            statvfs(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            statvfs64(path: *const c_char, out: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            fstatvfs(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0);
            fstatvfs64(fd: c_int, out: *mut c_void) -> c_int => on_fd(fd, 0);
            access(path: *const c_char, mode: c_int) -> c_int => on_path(AT_FDCWD, path, mode);
            eaccess(path: *const c_char, mode: c_int) -> c_int => on_path(AT_FDCWD, path, mode);
            euidaccess(path: *const c_char, mode: c_int) -> c_int => on_path(AT_FDCWD, path, mode);
            faccessat(dir: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int => on_path(dir, path, mode);
            readlink(path: *const c_char, buf: *mut c_char, n: size_t) -> ssize_t => on_path(AT_FDCWD, path, 0);
            readlinkat(dir: c_int, path: *const c_char, buf: *mut c_char, n: size_t) -> ssize_t => on_path(dir, path, 0);
            __readlink_chk(path: *const c_char, buf: *mut c_char, n: size_t, room: size_t) -> ssize_t => on_path(AT_FDCWD, path, 0);
            __readlinkat_chk(dir: c_int, path: *const c_char, buf: *mut c_char, n: size_t, room: size_t) -> ssize_t => on_path(dir, path, 0);
            realpath(path: *const c_char, out: *mut c_char) -> *mut c_char => on_path(AT_FDCWD, path, 0);
            __realpath_chk(path: *const c_char, out: *mut c_char, room: size_t) -> *mut c_char => on_path(AT_FDCWD, path, 0);

            mkdir(path: *const c_char, mode: mode_t) -> c_int => on_path(AT_FDCWD, path, mode);
            mkdirat(dir: c_int, path: *const c_char, mode: mode_t) -> c_int => on_path(dir, path, mode);
            mkdtemp(template: *mut c_char) -> *mut c_char => on_path(AT_FDCWD, template, 0o700);
            mkfifo(path: *const c_char, mode: mode_t) -> c_int => on_path(AT_FDCWD, path, mode);
            mkfifoat(dir: c_int, path: *const c_char, mode: mode_t) -> c_int => on_path(dir, path, mode);
            mknod(path: *const c_char, mode: mode_t, device: dev_t) -> c_int => on_path(AT_FDCWD, path, mode);
            mknodat(dir: c_int, path: *const c_char, mode: mode_t, device: dev_t) -> c_int => on_path(dir, path, mode);
            rmdir(path: *const c_char) -> c_int => on_path(AT_FDCWD, path, 0);
            unlink(path: *const c_char) -> c_int => on_path(AT_FDCWD, path, 0);
            unlinkat(dir: c_int, path: *const c_char, flags: c_int) -> c_int => on_path(dir, path, flags);
            remove(path: *const c_char) -> c_int => on_path(AT_FDCWD, path, 0);
            rename(from: *const c_char, to: *const c_char) -> c_int => two_paths(AT_FDCWD, from, AT_FDCWD, to);
            renameat(from_dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char) -> c_int => two_paths(from_dir, from, to_dir, to);
            renameat2(from_dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char, flags: c_uint) -> c_int => two_paths(from_dir, from, to_dir, to);
            link(from: *const c_char, to: *const c_char) -> c_int => two_paths(AT_FDCWD, from, AT_FDCWD, to);
            linkat(from_dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char, flags: c_int) -> c_int => two_paths(from_dir, from, to_dir, to);
            symlink(target: *const c_char, path: *const c_char) -> c_int => symlink_at(target, AT_FDCWD, path);
            symlinkat(target: *const c_char, dir: c_int, path: *const c_char) -> c_int => symlink_at(target, dir, path);
            chmod(path: *const c_char, mode: mode_t) -> c_int => on_path(AT_FDCWD, path, mode);
            lchmod(path: *const c_char, mode: mode_t) -> c_int => on_path(AT_FDCWD, path, mode);
            fchmod(fd: c_int, mode: mode_t) -> c_int => on_fd(fd, mode);
            fchmodat(dir: c_int, path: *const c_char, mode: mode_t, flags: c_int) -> c_int => on_path(dir, path, mode);
            chown(path: *const c_char, uid: uid_t, gid: gid_t) -> c_int => on_path(AT_FDCWD, path, 0);
            lchown(path: *const c_char, uid: uid_t, gid: gid_t) -> c_int => on_path(AT_FDCWD, path, 0);
            fchown(fd: c_int, uid: uid_t, gid: gid_t) -> c_int => on_fd(fd, 0);
            fchownat(dir: c_int, path: *const c_char, uid: uid_t, gid: gid_t, flags: c_int) -> c_int => on_path(dir, path, flags);
            utime(path: *const c_char, times: *const c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            utimes(path: *const c_char, times: *const c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            lutimes(path: *const c_char, times: *const c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            futimes(fd: c_int, times: *const c_void) -> c_int => on_fd(fd, 0);
            futimesat(dir: c_int, path: *const c_char, times: *const c_void) -> c_int => on_path(dir, path, 0);
            utimensat(dir: c_int, path: *const c_char, times: *const c_void, flags: c_int) -> c_int => on_path(dir, path, flags);
            futimens(fd: c_int, times: *const c_void) -> c_int => on_fd(fd, 0);
            chdir(path: *const c_char) -> c_int => change_dir(path);
            fchdir(fd: c_int) -> c_int => change_dir_fd(fd);
            chroot(path: *const c_char) -> c_int => change_root(path);

            opendir(path: *const c_char) -> *mut c_void => open_dir(path);
            fdopendir(fd: c_int) -> *mut c_void => on_fd(fd, 0);
            readdir(dir: *mut c_void) -> *mut c_void => on_dir(dir);
            readdir64(dir: *mut c_void) -> *mut c_void => on_dir(dir);
            rewinddir(dir: *mut c_void) -> () => on_dir(dir);
            closedir(dir: *mut c_void) -> c_int => close_dir(dir);
            scandir(path: *const c_char, out: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            scandir64(path: *const c_char, out: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int => on_path(AT_FDCWD, path, 0);
            scandirat(dir: c_int, path: *const c_char, out: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int => on_path(dir, path, 0);
            scandirat64(dir: c_int, path: *const c_char, out: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int => on_path(dir, path, 0);

            mmap(addr: *mut c_void, n: size_t, prot: c_int, flags: c_int, fd: c_int, offset: off64_t) -> *mut c_void => map(n, prot, flags, fd, offset);
            mmap64(addr: *mut c_void, n: size_t, prot: c_int, flags: c_int, fd: c_int, offset: off64_t) -> *mut c_void => map(n, prot, flags, fd, offset);
            munmap(addr: *mut c_void, n: size_t) -> c_int => unmap(addr, n);
            msync(addr: *mut c_void, n: size_t, flags: c_int) -> c_int => on_mapping(addr, n, flags);
            madvise(addr: *mut c_void, n: size_t, advice: c_int) -> c_int => on_mapping(addr, n, advice);
            posix_madvise(addr: *mut c_void, n: size_t, advice: c_int) -> c_int => on_mapping(addr, n, advice);

            sendfile(to: c_int, from: c_int, offset: *mut off64_t, n: size_t) -> ssize_t => transfer(to, from, n);
            sendfile64(to: c_int, from: c_int, offset: *mut off64_t, n: size_t) -> ssize_t => transfer(to, from, n);
            copy_file_range(from: c_int, from_offset: *mut off64_t, to: c_int, to_offset: *mut off64_t, n: size_t, flags: c_uint) -> ssize_t => transfer(to, from, n);
            splice(from: c_int, from_offset: *mut off64_t, to: c_int, to_offset: *mut off64_t, n: size_t, flags: c_uint) -> ssize_t => splice_pipe(to, from, n);
            tee(from: c_int, to: c_int, n: size_t, flags: c_uint) -> ssize_t => splice_pipe(to, from, n);
            vmsplice(fd: c_int, iov: *const iovec, count: size_t, flags: c_uint) -> ssize_t => splice_memory(fd, iov, count);

            aio_read(request: *mut aiocb) -> c_int => aio_submit(request);
            aio_read64(request: *mut aiocb) -> c_int => aio_submit(request);
            aio_write(request: *mut aiocb) -> c_int => aio_submit(request);
            aio_write64(request: *mut aiocb) -> c_int => aio_submit(request);
            aio_fsync(operation: c_int, request: *mut aiocb) -> c_int => aio_submit(request);
            aio_fsync64(operation: c_int, request: *mut aiocb) -> c_int => aio_submit(request);
            aio_return(request: *mut aiocb) -> ssize_t => aio_result(request);
            aio_return64(request: *mut aiocb) -> ssize_t => aio_result(request);
            lio_listio(mode: c_int, list: *const *mut aiocb, n: c_int, event: *mut c_void) -> c_int => whole();
            lio_listio64(mode: c_int, list: *const *mut aiocb, n: c_int, event: *mut c_void) -> c_int => whole();
            aio_suspend(list: *const *const aiocb, n: c_int, timeout: *const c_void) -> c_int => whole();
            aio_suspend64(list: *const *const aiocb, n: c_int, timeout: *const c_void) -> c_int => whole();
        }
        "STDIO" {
            fopen(path: *const c_char, mode: *const c_char) -> *mut FILE => open_stream(path);
            fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE => open_stream(path);
            fdopen(fd: c_int, mode: *const c_char) -> *mut FILE => on_fd(fd, 0);
            freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE => reopen_stream(path, stream);
            freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE => reopen_stream(path, stream);
            tmpfile() -> *mut FILE => temp_stream();
            tmpfile64() -> *mut FILE => temp_stream();
            fclose(stream: *mut FILE) -> c_int => close_stream(stream);
            fread(buf: *mut c_void, size: size_t, n: size_t, stream: *mut FILE) -> size_t => read_items(stream, size, n);
            fread_unlocked(buf: *mut c_void, size: size_t, n: size_t, stream: *mut FILE) -> size_t => read_items(stream, size, n);
            __fread_chk(buf: *mut c_void, room: size_t, size: size_t, n: size_t, stream: *mut FILE) -> size_t => read_items(stream, size, n);
            __fread_unlocked_chk(buf: *mut c_void, room: size_t, size: size_t, n: size_t, stream: *mut FILE) -> size_t => read_items(stream, size, n);
            fwrite(buf: *const c_void, size: size_t, n: size_t, stream: *mut FILE) -> size_t => write_items(stream, size, n);
            fwrite_unlocked(buf: *const c_void, size: size_t, n: size_t, stream: *mut FILE) -> size_t => write_items(stream, size, n);
            fgets(buf: *mut c_char, n: c_int, stream: *mut FILE) -> *mut c_char => read_text(stream, n);
            fgets_unlocked(buf: *mut c_char, n: c_int, stream: *mut FILE) -> *mut c_char => read_text(stream, n);
            __fgets_chk(buf: *mut c_char, room: size_t, n: c_int, stream: *mut FILE) -> *mut c_char => read_text(stream, n);
            __fgets_unlocked_chk(buf: *mut c_char, room: size_t, n: c_int, stream: *mut FILE) -> *mut c_char => read_text(stream, n);
            fputs(text: *const c_char, stream: *mut FILE) -> c_int => write_text(stream, text);
            fputs_unlocked(text: *const c_char, stream: *mut FILE) -> c_int => write_text(stream, text);
            puts(text: *const c_char) -> c_int => write_line(text);
            getline(line: *mut *mut c_char, room: *mut size_t, stream: *mut FILE) -> ssize_t => read_bytes(stream);
            getdelim(line: *mut *mut c_char, room: *mut size_t, delimiter: c_int, stream: *mut FILE) -> ssize_t => read_bytes(stream);
            __getdelim(line: *mut *mut c_char, room: *mut size_t, delimiter: c_int, stream: *mut FILE) -> ssize_t => read_bytes(stream);
            vfprintf(stream: *mut FILE, format: *const c_char, args: *mut c_void) -> c_int => write_bytes(stream);
            __vfprintf_chk(stream: *mut FILE, flag: c_int, format: *const c_char, args: *mut c_void) -> c_int => write_bytes(stream);
            vprintf(format: *const c_char, args: *mut c_void) -> c_int => write_standard();
            __vprintf_chk(flag: c_int, format: *const c_char, args: *mut c_void) -> c_int => write_standard();
            vdprintf(fd: c_int, format: *const c_char, args: *mut c_void) -> c_int => write_formatted(fd);
            __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, args: *mut c_void) -> c_int => write_formatted(fd);
            vfscanf(stream: *mut FILE, format: *const c_char, args: *mut c_void) -> c_int => scan(stream);
            __isoc99_vfscanf(stream: *mut FILE, format: *const c_char, args: *mut c_void) -> c_int => scan(stream);
            __isoc23_vfscanf(stream: *mut FILE, format: *const c_char, args: *mut c_void) -> c_int => scan(stream);
            vscanf(format: *const c_char, args: *mut c_void) -> c_int => scan_standard();
            __isoc99_vscanf(format: *const c_char, args: *mut c_void) -> c_int => scan_standard();
            __isoc23_vscanf(format: *const c_char, args: *mut c_void) -> c_int => scan_standard();
            fseek(stream: *mut FILE, offset: c_long, whence: c_int) -> c_int => seek_stream(stream, offset, whence);
            fseeko(stream: *mut FILE, offset: off64_t, whence: c_int) -> c_int => seek_stream(stream, offset, whence);
            fseeko64(stream: *mut FILE, offset: off64_t, whence: c_int) -> c_int => seek_stream(stream, offset, whence);
            ftell(stream: *mut FILE) -> c_long => on_stream(stream);
            ftello(stream: *mut FILE) -> off64_t => on_stream(stream);
            ftello64(stream: *mut FILE) -> off64_t => on_stream(stream);
            rewind(stream: *mut FILE) -> () => on_stream(stream);
            fgetpos(stream: *mut FILE, position: *mut c_void) -> c_int => on_stream(stream);
            fgetpos64(stream: *mut FILE, position: *mut c_void) -> c_int => on_stream(stream);
            fsetpos(stream: *mut FILE, position: *const c_void) -> c_int => on_stream(stream);
            fsetpos64(stream: *mut FILE, position: *const c_void) -> c_int => on_stream(stream);
            fflush(stream: *mut FILE) -> c_int => on_stream(stream);
            fflush_unlocked(stream: *mut FILE) -> c_int => on_stream(stream);
            setvbuf(stream: *mut FILE, buf: *mut c_char, mode: c_int, n: size_t) -> c_int => set_buffer(stream, n, mode);
            setbuf(stream: *mut FILE, buf: *mut c_char) -> () => on_stream(stream);
            setbuffer(stream: *mut FILE, buf: *mut c_char, n: size_t) -> () => set_buffer(stream, n, 0);
            setlinebuf(stream: *mut FILE) -> () => on_stream(stream);
            getc(stream: *mut FILE) -> c_int => read_char(stream);
            fgetc(stream: *mut FILE) -> c_int => read_char(stream);
            _IO_getc(stream: *mut FILE) -> c_int => read_char(stream);
            getc_unlocked(stream: *mut FILE) -> c_int => read_char(stream);
            fgetc_unlocked(stream: *mut FILE) -> c_int => read_char(stream);
            getchar() -> c_int => read_char_standard();
            getchar_unlocked() -> c_int => read_char_standard();
            putc(c: c_int, stream: *mut FILE) -> c_int => write_char(stream);
            fputc(c: c_int, stream: *mut FILE) -> c_int => write_char(stream);
            _IO_putc(c: c_int, stream: *mut FILE) -> c_int => write_char(stream);
            putc_unlocked(c: c_int, stream: *mut FILE) -> c_int => write_char(stream);
            fputc_unlocked(c: c_int, stream: *mut FILE) -> c_int => write_char(stream);
            putchar(c: c_int) -> c_int => write_char_standard();
            putchar_unlocked(c: c_int) -> c_int => write_char_standard();
            __uflow(stream: *mut FILE) -> c_int => refill(stream);
            __overflow(stream: *mut FILE, c: c_int) -> c_int => spill(stream);
            popen(command: *const c_char, mode: *const c_char) -> *mut FILE => open_process(command);
            pclose(stream: *mut FILE) -> c_int => close_stream(stream);
        }
        "PROCESS" {
            system(command: *const c_char) -> c_int => run_shell(command);
            wait(status: *mut c_int) -> pid_t => reap();
            wait3(status: *mut c_int, flags: c_int, usage: *mut c_void) -> pid_t => reap();
            wait4(pid: pid_t, status: *mut c_int, flags: c_int, usage: *mut c_void) -> pid_t => reap();
            waitpid(pid: pid_t, status: *mut c_int, flags: c_int) -> pid_t => reap();
            waitid(kind: c_uint, id: c_uint, info: *mut siginfo_t, flags: c_int) -> c_int => reap_info(info);
        }
        }
        by_hand {
        "PROCESS" {
            fork vfork clone posix_spawn posix_spawnp execve execv execvp execvpe execl execlp execle fexecve execveat
            _exit _Exit quick_exit exit
        }
        "STDIO" {
            fprintf __fprintf_chk printf __printf_chk dprintf __dprintf_chk
            fscanf __isoc99_fscanf __isoc23_fscanf scanf __isoc99_scanf __isoc23_scanf
        }
        }
        watched {
            prctl syscall unshare setns pthread_setname_np
        }
    } };
}

macro_rules! define_calls {
    (
        table { $( $label:literal { $( $name:ident $args:tt -> $ret:ty => $shape:ident $given:tt ; )* } )* }
        by_hand { $( $hand_label:literal { $( $hand:ident )* } )* }
        watched { $( $watched:ident )* }
    ) => {
        /// Number of a hooked call; what [`crate::layout::Record::head`] holds.
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

        /// Name, category and shape of every call, by number.
        pub const CALLS: &[CallInfo] = &[
            CallInfo { name: "", category: "", shape: "" },
            $( $( CallInfo { name: stringify!($name), category: $label, shape: stringify!($shape) }, )* )*
            $( $( CallInfo { name: stringify!($hand), category: $hand_label, shape: "by hand" }, )* )*
            CallInfo { name: "start", category: "weft", shape: "mark" },
            CallInfo { name: "end", category: "weft", shape: "mark" },
            CallInfo { name: "thread_name", category: "PROCESS", shape: "name" },
        ];

        /// Functions that are hooked for what they tell, not for an event of their own.
        pub const WATCHED: &[&str] = &[ $( stringify!($watched) ),* ];
    };
}
hooked_calls!(define_calls);

/// Changes whenever a call is added, removed or renumbered.
pub(crate) const fn fingerprint() -> u32 {
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

/// What the table says of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// The C name.
    pub name: &'static str,
    /// Category written to the trace.
    pub category: &'static str,
    /// The recipe that records it.
    pub shape: &'static str,
}

impl CallInfo {
    /// The call with number `number`, if there is one.
    pub fn of(number: u16) -> Option<&'static CallInfo> {
        CALLS.get(usize::from(number)).filter(|call| !call.name.is_empty())
    }

    /// Which way the call moves bytes.
    pub fn flow(&self) -> Flow {
        match self.shape {
            "read_next" | "readv_next" | "read_at" | "readv_at" | "read_items" | "read_text" | "read_bytes"
            | "read_char" | "read_char_standard" | "refill" => Flow::Read,
            "write_next"
            | "writev_next"
            | "write_at"
            | "writev_at"
            | "write_items"
            | "write_text"
            | "write_line"
            | "write_bytes"
            | "write_standard"
            | "write_formatted"
            | "write_char"
            | "write_char_standard"
            | "spill" => Flow::Write,
            "transfer" => Flow::Both,
            _ => match self.name {
                "fprintf" | "__fprintf_chk" | "printf" | "__printf_chk" | "dprintf" | "__dprintf_chk" => Flow::Write,
                _ => Flow::None,
            },
        }
    }

    /// Name of `Record::detail` in the trace, `None` when the call does not use it.
    pub fn detail_name(&self) -> Option<&'static str> {
        Some(match self.shape {
            "open_at" => "flags",
            "seek" | "seek_stream" => "whence",
            "duplicate" => "to",
            "control" => "cmd",
            "transfer" | "splice_pipe" => "from_fd",
            "readv_next" | "writev_next" | "readv_at" | "writev_at" | "splice_memory" => "iovcnt",
            "map" => "prot",
            "new_pair" => "fd2",
            "close_many" => "last",
            "set_buffer" => "mode",
            "on_path" => match self.name {
                "mkdir" | "mkdirat" | "mkfifo" | "mkfifoat" | "mknod" | "mknodat" | "chmod" | "lchmod" | "fchmodat"
                | "access" | "eaccess" | "euidaccess" | "faccessat" | "mkdtemp" => "mode",
                "fstatat" | "fstatat64" | "statx" | "unlinkat" | "fchownat" | "utimensat" | "__fxstatat"
                | "__fxstatat64" => "flags",
                _ => return None,
            },
            "on_fd" => match self.name {
                "fchmod" => "mode",
                "flock" | "lockf" | "lockf64" => "operation",
                _ => return None,
            },
            "on_range" | "on_range_direct" => match self.name {
                "sync_file_range" => "flags",
                "fallocate" | "fallocate64" => "mode",
                "posix_fadvise" | "posix_fadvise64" => "advice",
                _ => return None,
            },
            "on_mapping" => {
                if self.name == "msync" {
                    "flags"
                } else {
                    "advice"
                }
            }
            _ => return None,
        })
    }
}
