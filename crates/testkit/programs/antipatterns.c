/* Ways of doing I/O badly, one per word: `antipatterns small_reads`. Each does nothing else for about a second, so that the findings
 * about its trace can be told: the one that is meant, and none that blames another pattern. */
#include "hazard.h"

#define MIB (1024L * 1024L)

static char buffer[MIB];

static int file(const char *name, int flags) {
    int fd = open(name, flags | O_CREAT, 0644);
    MUST(fd >= 0);
    return fd;
}

/* A file of so many bytes, written in large pieces. */
static void fill(const char *name, long bytes) {
    int fd = file(name, O_WRONLY | O_TRUNC);
    for (long at = 0; at < bytes; at += MIB)
        MUST(write(fd, buffer, MIB) == MIB);
    MUST(close(fd) == 0);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int lasted(double start) {
    return now() - start > 1.5;
}

static void small_reads(void) {
    fill("x", 16 * MIB);
    int fd = file("x", O_RDONLY);
    for (double start = now(); !lasted(start);)
        for (int n = 0; n < 1000; n++)
            if (read(fd, buffer, 16) < 16)
                MUST(lseek(fd, 0, SEEK_SET) == 0);
}

static void small_writes(void) {
    int fd = file("x", O_WRONLY);
    for (double start = now(); !lasted(start);)
        for (int n = 0; n < 1000; n++)
            MUST(write(fd, "one short record", 16) == 16);
}

static void random_access(void) {
    fill("x", 64 * MIB);
    int fd = file("x", O_RDONLY);
    uint32_t state = 1;
    for (double start = now(); !lasted(start);)
        for (int n = 0; n < 1000; n++) {
            state = state * 1664525u + 1013904223u;
            MUST(pread(fd, buffer, 4096, (off_t)(state >> 18) * 4096) == 4096);
        }
}

static void re_reads(void) {
    fill("x", 16 * MIB);
    int fd = file("x", O_RDONLY);
    for (double start = now(); !lasted(start);)
        for (long at = 0; at < 16 * MIB; at += MIB)
            MUST(pread(fd, buffer, MIB, at) == MIB);
}

static void open_storm(void) {
    fill("x", MIB);
    for (double start = now(); !lasted(start);)
        for (int n = 0; n < 100; n++) {
            int fd = open("x", O_RDONLY);
            MUST(fd >= 0 && close(fd) == 0);
            MUST(open("missing", O_RDONLY) < 0);
        }
}

static void stat_storm(void) {
    struct stat about;
    fill("x", MIB);
    for (double start = now(); !lasted(start);)
        for (int n = 0; n < 100; n++) {
            MUST(stat("x", &about) == 0);
            MUST(access("missing", R_OK) < 0);
        }
}

static void seek_storm(void) {
    fill("x", MIB);
    int fd = file("x", O_RDONLY);
    for (double start = now(); !lasted(start);)
        for (int n = 0; n < 1000; n++)
            MUST(lseek(fd, n, SEEK_SET) == n);
}

static void sync_storm(void) {
    int fd = file("x", O_WRONLY);
    for (double start = now(); !lasted(start);)
        MUST(write(fd, buffer, 8192) == 8192 && fsync(fd) == 0);
}

static void synchronous(void) {
    int fd = file("x", O_WRONLY | O_SYNC);
    for (double start = now(); !lasted(start);)
        MUST(write(fd, buffer, 8192) == 8192);
}

static void metadata(void) {
    char name[32];
    struct stat about;
    for (double start = now(); !lasted(start);)
        for (int n = 0; n < 40; n++) {
            snprintf(name, sizeof name, "%d", n);
            int fd = file(name, O_WRONLY);
            MUST(write(fd, buffer, 5000) == 5000 && fstat(fd, &about) == 0 && close(fd) == 0);
            MUST(stat(name, &about) == 0 && chmod(name, 0600) == 0 && rename(name, "renamed") == 0);
            MUST(rename("renamed", name) == 0 && truncate(name, 0) == 0);
        }
}

static void unaligned(void) {
    fill("x", 32 * MIB);
    int fd = file("x", O_RDWR);
    for (double start = now(); !lasted(start);)
        for (long at = 100; at < 31 * MIB; at += 65536)
            MUST(pwrite(fd, buffer, 65536, at) == 65536);
}

static void tiny_buffers(void) {
    FILE *out = fopen("x", "w");
    MUST(out);
    for (double start = now(); !lasted(start);)
        for (int n = 0; n < 1000; n++)
            MUST(fwrite("one short record", 16, 1, out) == 1 && fflush(out) == 0);
    MUST(fclose(out) == 0);
}

static void read_back(void) {
    char name[32];
    int round = 0;
    for (double start = now(); !lasted(start); round++) {
        snprintf(name, sizeof name, "part.%d", round);
        fill(name, 32 * MIB);
        int fd = file(name, O_RDONLY);
        for (long at = 0; at < 32 * MIB; at += 4096)
            MUST(read(fd, buffer, 4096) == 4096);
        MUST(close(fd) == 0 && unlink(name) == 0);
    }
}

/* Four processes: the first reads or writes everything, the others wait for it. */
static void one_of_four(int flags) {
    int gate[2];
    MUST(pipe(gate) == 0);
    fill("x", 64 * MIB);
    for (int child = 0; child < 4; child++) {
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            close(gate[1]);
            if (child == 0) {
                int fd = file("x", flags);
                for (double start = now(); !lasted(start);)
                    for (long at = 0; at < 64 * MIB; at += MIB)
                        MUST((flags == O_RDONLY ? pread(fd, buffer, MIB, at) : pwrite(fd, buffer, MIB, at)) == MIB);
            } else {
                MUST(read(gate[0], buffer, 1) == 0);
            }
            exit(0);
        }
        if (child == 0)
            usleep(1000);
    }
    sleep(2);
    close(gate[1]);
    while (wait(NULL) > 0)
        ;
}

static void one_reader(void) {
    one_of_four(O_RDONLY);
}

static void one_writer(void) {
    one_of_four(O_WRONLY);
}

/* Five processes that begin together; one works three seconds longer. */
static void straggler(void) {
    for (int child = 0; child < 5; child++) {
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            fill("x", MIB);
            usleep(child == 3 ? 4000000 : 1000000);
            exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}

static void checkpoints(void) {
    for (double start = now(); !lasted(start);) {
        int fd = file("model.ckpt", O_WRONLY | O_TRUNC);
        for (long at = 0; at < 32 * MIB; at += MIB)
            MUST(write(fd, buffer, MIB) == MIB);
        MUST(fsync(fd) == 0 && close(fd) == 0);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } patterns[] = {
        {"small_reads", small_reads},     {"small_writes", small_writes}, {"random_access", random_access},
        {"re_reads", re_reads},           {"open_storm", open_storm},     {"stat_storm", stat_storm},
        {"seek_storm", seek_storm},       {"sync_storm", sync_storm},     {"synchronous", synchronous},
        {"metadata", metadata},           {"unaligned", unaligned},       {"tiny_buffers", tiny_buffers},
        {"read_back", read_back},         {"one_reader", one_reader},     {"one_writer", one_writer},
        {"straggler", straggler},         {"checkpoints", checkpoints},
    };
    for (size_t n = 0; n < sizeof patterns / sizeof *patterns; n++)
        if (argc == 2 && strcmp(argv[1], patterns[n].name) == 0) {
            patterns[n].run();
            return 0;
        }
    return 2;
}
