/* Hazard: resource limits make our own bookkeeping fail or raise signals: RLIMIT_FSIZE (SIGXFSZ), RLIMIT_NOFILE, RLIMIT_AS.
 * Holds: the program fails exactly where it fails untraced, never gets a signal because of us, and is recorded.
 * Usage: limits fsize|nofile|as|nproc */
#include "hazard.h"

static void limit_to(int what, rlim_t value) {
    struct rlimit limit = {value, value};
    MUST(setrlimit(what, &limit) == 0);
}

static void fork_and_work(const char *path) {
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        work(path, 100);
        _exit(0);
    }
    reap(child, 0);
}

int main(int argc, char **argv) {
    MUST(argc == 2);
    const char *what = argv[1];
    char byte;
    work("before.bin", 100);
    if (!strcmp(what, "fsize")) {
        limit_to(RLIMIT_FSIZE, 64 * 1000);
        work("limited.bin", 1000); /* up to the limit exactly; one byte more would raise SIGXFSZ */
        int fd = open("limited.bin", O_RDONLY);
        MUST(fd >= 0);
        for (int i = 0; i < 50000; i++) MUST(pread(fd, &byte, 1, i) == 1);
        MUST(close(fd) == 0);
        fork_and_work("child.bin");
    }
    if (!strcmp(what, "nofile")) {
        closefrom(3); /* what the caller's shell left open would be counted as ours */
        int first = open("before.bin", O_RDONLY), fd = first, opened = 1;
        MUST(first >= 0);
        limit_to(RLIMIT_NOFILE, first + 10);
        while ((fd = open("before.bin", O_RDONLY)) >= 0) opened++;
        printf("opened %d errno %d\n", opened, errno);
        for (int i = 0; i < 20000; i++) MUST(pread(first, &byte, 1, 0) == 1);
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            for (int i = 0; i < 100; i++) MUST(pread(first, &byte, 1, 0) == 1);
            _exit(0);
        }
        reap(child, 0);
    }
    if (!strcmp(what, "as")) {
        limit_to(RLIMIT_AS, 64 << 20);
        int fd = open("before.bin", O_RDONLY);
        MUST(fd >= 0 && malloc(100 << 20) == NULL && malloc(32 << 20) != NULL);
        for (int i = 0; i < 100000; i++) MUST(pread(fd, &byte, 1, 0) == 1);
        fork_and_work("child.bin");
    }
    if (!strcmp(what, "nproc")) {
        int fd = open("before.bin", O_RDONLY);
        MUST(fd >= 0 && setresuid(65534, 65534, 65534) == 0);
        limit_to(RLIMIT_NPROC, 0);
        MUST(fork() == -1 && errno == EAGAIN);
        for (int i = 0; i < 20000; i++) MUST(pread(fd, &byte, 1, 0) == 1);
    }
    return 0;
}
