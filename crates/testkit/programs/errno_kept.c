/* Hazard: bookkeeping around a call can change errno, which successful calls must leave alone.
 * Holds: errno stays 77 over 100,000 successful calls of many kinds, on many threads' first calls and after fork. */
#include "hazard.h"

static void calls(const char *path, int rounds) {
    char buffer[64];
    struct stat metadata;
    errno = 77;
    for (int i = 0; i < rounds; i++) {
        int fd = open(path, O_RDONLY);
        if (fd < 0 || errno != 77) break;
        for (int k = 0; k < 20; k++)
            if (pread(fd, buffer, sizeof buffer, 0) != 64) break;
        if (fstat(fd, &metadata) || stat(path, &metadata) || lseek(fd, 1, SEEK_SET) != 1) break;
        int copy = dup(fd);
        if (copy < 0 || close(copy) || close(fd)) break;
    }
    MUST(errno == 77);
}

static void *thread(void *path) {
    calls(path, 10);
    return NULL;
}

int main(void) {
    work("data.bin", 1);
    calls("data.bin", 3000);
    for (int i = 0; i < 50; i++) {
        pthread_t handle;
        MUST(pthread_create(&handle, NULL, thread, "data.bin") == 0 && pthread_join(handle, NULL) == 0);
    }
    errno = 77;
    pid_t child = fork();
    MUST(child >= 0 && (child == 0 || errno == 77));
    calls("data.bin", 10);
    if (child == 0) _exit(0);
    reap(child, 0);
    return 0;
}
