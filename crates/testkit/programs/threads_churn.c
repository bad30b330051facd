/* Hazard: 2,000 short-lived threads, 8 at a time, each of which records something.
 * Holds: nothing is lost, and memory does not grow per thread that ever lived. */
#include "hazard.h"

static void *one(void *unused) {
    char byte;
    int fd = open("shared.bin", O_RDONLY);
    MUST(fd >= 0 && pread(fd, &byte, 1, 3) == 1 && close(fd) == 0);
    return unused;
}

int main(void) {
    work("shared.bin", 1);
    for (int batch = 0; batch < 250; batch++) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) MUST(pthread_create(&threads[i], NULL, one, NULL) == 0);
        for (int i = 0; i < 8; i++) MUST(pthread_join(threads[i], NULL) == 0);
    }
    return 0;
}
