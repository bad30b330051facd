/* `steady SECONDS [fast]`: reads 4,096 bytes of `input.bin` and writes 512 to `output.bin`, ten times each and then a short sleep, for so
 * long. How many calls it has made stands in `count.bin`, which it maps: a store into it is no call, so whoever reads the file knows
 * the true number at any moment. `fast` leaves the sleep out. */
#include "hazard.h"
#include <sys/mman.h>

static char buffer[4096];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    MUST(argc >= 2);
    double end = now() + atof(argv[1]);
    int fast = argc > 2;
    int counts = open("count.bin", O_RDWR | O_CREAT, 0644);
    MUST(counts >= 0 && ftruncate(counts, 8) == 0);
    volatile unsigned long *count = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, counts, 0);
    MUST(count != MAP_FAILED);
    int input = open("input.bin", O_RDWR | O_CREAT, 0644), output = open("output.bin", O_RDWR | O_CREAT, 0644);
    MUST(input >= 0 && output >= 0 && ftruncate(input, sizeof buffer) == 0);
    while (now() < end) {
        for (int i = 0; i < 10; i++) {
            MUST(pread(input, buffer, sizeof buffer, 0) == sizeof buffer);
            MUST(pwrite(output, buffer, 512, 0) == 512);
            *count += 2;
        }
        if (!fast) {
            struct timespec pause = {0, 2000000};
            nanosleep(&pause, 0);
        }
    }
    return 0;
}
