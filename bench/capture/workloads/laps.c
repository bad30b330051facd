/* Records by the lap: laps KIND RECORDS LAPS FILE
 *
 * KIND is pread or span. Each lap makes RECORDS records, at most as many as fit a fresh arena, and then waits, so that whoever empties the arena
 * has caught up: the first lap writes to memory that this process has not touched before, later ones to the same memory again. Prints one JSON
 * object with CPU time and page faults of the calling thread, lap by lap. FILE is read by pread.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <weft.h>

enum { MAX_LAPS = 64, BLOCK = 4096, BLOCKS = 1024, WAIT_NS = 150000000 };

struct lap {
    int64_t cpu_ns;
    long faults;
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t thread_cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static long thread_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static void preads(int file, long records) {
    char block[BLOCK];
    for (long call = 0; call < records; call++) {
        if (pread(file, block, sizeof block, (off_t)(call % BLOCKS) * BLOCK) != BLOCK) fail("short transfer");
    }
}

static void spans(long records) {
    for (long call = 0; call < records; call++) {
        WEFT_SCOPE("step");
        __asm__ volatile("" : : "r"(call) : "memory");
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: laps KIND RECORDS LAPS FILE\n");
        return 2;
    }
    int reading = !strcmp(argv[1], "pread");
    long records = atol(argv[2]);
    int laps = atoi(argv[3]);
    if ((!reading && strcmp(argv[1], "span")) || laps < 1 || laps > MAX_LAPS) return 2;
    int file = open(argv[4], O_RDONLY);
    if (file < 0) fail(argv[4]);

    static struct lap made[MAX_LAPS];
    for (int lap = 0; lap < laps; lap++) {
        struct timespec wait = {0, WAIT_NS};
        nanosleep(&wait, NULL);
        long faults = thread_faults();
        int64_t began = thread_cpu_ns();
        if (reading)
            preads(file, records);
        else
            spans(records);
        made[lap].cpu_ns = thread_cpu_ns() - began;
        made[lap].faults = thread_faults() - faults;
    }
    close(file);

    printf("{\"cpu_ns\": [");
    for (int lap = 0; lap < laps; lap++) printf("%s%lld", lap ? ", " : "", (long long)made[lap].cpu_ns);
    printf("], \"faults\": [");
    for (int lap = 0; lap < laps; lap++) printf("%s%ld", lap ? ", " : "", made[lap].faults);
    printf("]}\n");
    return 0;
}
