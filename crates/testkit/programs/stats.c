/* Hazard: the stat family changed its symbols in glibc 2.33.
 * Holds: every form is one event on the right path, failures with their errno. */
#include "hazard.h"
#include <sys/statvfs.h>
#include <sys/vfs.h>

int main(void) {
    struct stat metadata;
    struct stat64 metadata64;
    struct statx more;
    struct statfs system;
    struct statvfs vsystem;
    work("file.bin", 1);
    MUST(symlink("file.bin", "link") == 0);
    int fd = open("file.bin", O_RDONLY), directory = open(".", O_RDONLY);
    MUST(fd >= 0 && directory >= 0);
    MUST(stat("file.bin", &metadata) == 0 && metadata.st_size == 64 && stat64("file.bin", &metadata64) == 0);
    MUST(lstat("link", &metadata) == 0 && S_ISLNK(metadata.st_mode) && lstat64("link", &metadata64) == 0);
    MUST(fstat(fd, &metadata) == 0 && metadata.st_size == 64 && fstat64(fd, &metadata64) == 0);
    MUST(fstatat(directory, "file.bin", &metadata, 0) == 0 && fstatat64(AT_FDCWD, "file.bin", &metadata64, 0) == 0);
    MUST(statx(directory, "file.bin", 0, STATX_SIZE, &more) == 0 && more.stx_size == 64);
    MUST(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &more) == 0 && more.stx_size == 64);
    MUST(statfs("file.bin", &system) == 0 && fstatfs(fd, &system) == 0);
    MUST(statvfs("file.bin", &vsystem) == 0 && fstatvfs(fd, &vsystem) == 0);
    MUST(stat("missing.bin", &metadata) == -1 && errno == ENOENT);
    MUST(access("file.bin", R_OK) == 0 && access("missing.bin", R_OK) == -1 && errno == ENOENT);
    MUST(faccessat(directory, "file.bin", R_OK, 0) == 0 && euidaccess("file.bin", R_OK) == 0);
    return 0;
}
