/* Hazard: POSIX AIO does its I/O on glibc's own threads with internal calls.
 * Holds: submissions and results are recorded with their bytes. */
#include "hazard.h"
#include <aio.h>

static ssize_t finish(struct aiocb *request) {
    const struct aiocb *list[] = {request};
    while (aio_error(request) == EINPROGRESS) MUST(aio_suspend(list, 1, NULL) == 0 || errno == EAGAIN);
    return aio_return(request);
}

int main(void) {
    char block[64];
    memset(block, 'i', sizeof block);
    int fd = open("aio.bin", O_CREAT | O_RDWR, 0644);
    MUST(fd >= 0);
    for (int i = 0; i < 20; i++) {
        struct aiocb request = {.aio_fildes = fd, .aio_buf = block, .aio_nbytes = 64, .aio_offset = i * 64};
        MUST(aio_write(&request) == 0 && finish(&request) == 64);
        MUST(aio_read(&request) == 0 && finish(&request) == 64);
    }
    MUST(close(fd) == 0);
    return 0;
}
