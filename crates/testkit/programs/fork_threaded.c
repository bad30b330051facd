/* Hazard: fork while other threads are in the middle of recording.
 * Holds: 100 forks against 2 reading threads; all threads' and all children's calls are exact. */
#include "hazard.h"

static void *reader(void *count) {
    char byte;
    int fd = open("data.bin", O_RDONLY);
    MUST(fd >= 0);
    for (int i = 0; i < 20000; i++) MUST(pread(fd, &byte, 1, i % 64) == 1);
    MUST(close(fd) == 0);
    return count;
}

int main(void) {
    pthread_t threads[2];
    work("data.bin", 1);
    for (int i = 0; i < 2; i++) MUST(pthread_create(&threads[i], NULL, reader, NULL) == 0);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            work("child.bin", 10);
            _exit(0);
        }
        reap(child, 0);
    }
    for (int i = 0; i < 2; i++) MUST(pthread_join(threads[i], NULL) == 0);
    return 0;
}
