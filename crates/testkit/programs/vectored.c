/* Hazard: vectored and positioned I/O in all forms, with offsets beyond 4 GiB.
 * Holds: bytes and offsets are exact. */
#include "hazard.h"
#include <sys/uio.h>

int main(void) {
    char a[30], b[70];
    memset(a, 'a', sizeof a);
    memset(b, 'b', sizeof b);
    struct iovec parts[2] = {{a, sizeof a}, {b, sizeof b}};
    off64_t far = (off64_t)5 << 30;
    int fd = open("vectored.bin", O_CREAT | O_RDWR, 0644);
    MUST(fd >= 0);
    for (int i = 0; i < 50; i++) {
        MUST(writev(fd, parts, 2) == 100);
        MUST(pwritev(fd, parts, 2, 0) == 100);
        MUST(pwritev2(fd, parts, 2, far, 0) == 100);
        MUST(pwrite64(fd, a, 30, far) == 30);
    }
    MUST(lseek(fd, 0, SEEK_SET) == 0 && lseek64(fd, 0, SEEK_CUR) == 0);
    for (int i = 0; i < 50; i++) {
        MUST(readv(fd, parts, 2) == 100);
        MUST(preadv(fd, parts, 2, far) == 100);
        MUST(preadv2(fd, parts, 2, 0, 0) == 100);
        MUST(pread64(fd, b, 70, far) == 70);
    }
    MUST(preadv2(fd, parts, 2, -1, 0) == 100); /* offset -1: at the file's own position */
    MUST(ftruncate(fd, 100) == 0 && pread(fd, a, 30, 90) == 10 && pread(fd, a, 30, 1000) == 0);
    MUST(pread(-1, a, 30, 0) == -1 && errno == EBADF);
    MUST(close(fd) == 0);
    return 0;
}
