/* Hazard: I/O through mapped memory moves bytes without a call.
 * Holds: mmap, msync, madvise, munmap are recorded with the file they map. */
#include "hazard.h"

int main(void) {
    int fd = open("mapped.bin", O_CREAT | O_RDWR, 0644);
    MUST(fd >= 0 && ftruncate(fd, 1 << 20) == 0);
    char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(memory != MAP_FAILED);
    memset(memory, 'm', 1 << 20);
    MUST(madvise(memory, 1 << 20, MADV_SEQUENTIAL) == 0);
    MUST(msync(memory, 1 << 20, MS_SYNC) == 0 && munmap(memory, 1 << 20) == 0);
    MUST(mmap(NULL, 4096, PROT_READ, MAP_SHARED, -1, 0) == MAP_FAILED && errno == EBADF);
    MUST(close(fd) == 0);
    return 0;
}
