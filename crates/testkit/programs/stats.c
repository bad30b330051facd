/* Hazard: the stat family changed its symbols in glibc 2.33.
 * Holds: every form is one event on the right path, failures with their errno. */
#include "hazard.h"
#include <sys/statvfs.h>
#include <sys/vfs.h>

int main(void) {
    struct stat facts;
    struct stat64 facts64;
    struct statx more;
    struct statfs system;
    struct statvfs vsystem;
    work("file.bin", 1);
    MUST(symlink("file.bin", "link") == 0);
    int fd = open("file.bin", O_RDONLY), directory = open(".", O_RDONLY);
    MUST(fd >= 0 && directory >= 0);
    MUST(stat("file.bin", &facts) == 0 && facts.st_size == 64 && stat64("file.bin", &facts64) == 0);
    MUST(lstat("link", &facts) == 0 && S_ISLNK(facts.st_mode) && lstat64("link", &facts64) == 0);
    MUST(fstat(fd, &facts) == 0 && facts.st_size == 64 && fstat64(fd, &facts64) == 0);
    MUST(fstatat(directory, "file.bin", &facts, 0) == 0 && fstatat64(AT_FDCWD, "file.bin", &facts64, 0) == 0);
    MUST(statx(directory, "file.bin", 0, STATX_SIZE, &more) == 0 && more.stx_size == 64);
    MUST(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &more) == 0 && more.stx_size == 64);
    MUST(statfs("file.bin", &system) == 0 && fstatfs(fd, &system) == 0);
    MUST(statvfs("file.bin", &vsystem) == 0 && fstatvfs(fd, &vsystem) == 0);
    MUST(stat("missing.bin", &facts) == -1 && errno == ENOENT);
    MUST(access("file.bin", R_OK) == 0 && access("missing.bin", R_OK) == -1 && errno == ENOENT);
    MUST(faccessat(directory, "file.bin", R_OK, 0) == 0 && euidaccess("file.bin", R_OK) == 0);
    return 0;
}
