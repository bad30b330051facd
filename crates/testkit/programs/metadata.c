/* Hazard: calls that change size, mode, owner and times, on paths and descriptors.
 * Holds: same effects, one event each. */
#include "hazard.h"
#include <sys/file.h>
#include <utime.h>

int main(void) {
    struct timespec times[2] = {{1000, 5}, {2000, 7}};
    struct timeval micros[2] = {{1000, 5}, {2000, 7}};
    struct utimbuf seconds = {1000, 2000};
    work("file", 100);
    int fd = open("file", O_RDWR), here = open(".", O_RDONLY);
    MUST(fd >= 0 && here >= 0);
    MUST(truncate("file", 5000) == 0 && ftruncate(fd, 4000) == 0);
    MUST(fallocate(fd, 0, 0, 8192) == 0 && posix_fallocate(fd, 8192, 4096) == 0);
    MUST(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL) == 0 && readahead(fd, 0, 4096) == 0);
    MUST(chmod("file", 0600) == 0 && fchmod(fd, 0640) == 0 && fchmodat(here, "file", 0604, 0) == 0);
    MUST(chown("file", 1, 2) == 0 && fchown(fd, 3, 4) == 0 && lchown("file", 5, 6) == 0);
    MUST(fchownat(here, "file", 7, 8, 0) == 0);
    MUST(utimensat(here, "file", times, 0) == 0 && futimens(fd, times) == 0);
    MUST(utimes("file", micros) == 0 && utime("file", &seconds) == 0 && lutimes("file", micros) == 0);
    MUST(flock(fd, LOCK_EX) == 0 && flock(fd, LOCK_UN) == 0 && lockf(fd, F_LOCK, 10) == 0);
    MUST(fsync(fd) == 0 && fdatasync(fd) == 0 && sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE) == 0);
    MUST(posix_fallocate(here, 0, 10) != 0); /* returns the error instead of setting errno */
    return 0;
}
