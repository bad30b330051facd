/* `stalls STARTED STOP`: writes a byte to /dev/null every 20 µs, makes the file STARTED when it has done so for a while, and ends when there is
 * a file STOP. Prints the longest time that a write has taken, in ms. */
#include "hazard.h"
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    MUST(argc == 3);
    int null = open("/dev/null", O_WRONLY);
    MUST(null >= 0);
    double worst = 0;
    for (long i = 0; i % 1000 || access(argv[2], F_OK) != 0; i++) {
        double before = now();
        MUST(write(null, "x", 1) == 1);
        double took = now() - before;
        if (took > worst) worst = took;
        if (i == 5000) close(open(argv[1], O_CREAT | O_WRONLY, 0644));
        while (now() - before < 0.02) {
        }
    }
    printf("%.0f\n", worst);
    return 0;
}
