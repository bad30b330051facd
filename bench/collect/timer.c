/* A bare timerfd loop: what the kernel gives a process that does nothing but wake up. Prints the time of every tick in ns. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    long interval = atol(argv[1]), ticks = atol(argv[2]);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct itimerspec times = {{interval / 1000000000, interval % 1000000000}, now};
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    if (timer < 0 || timerfd_settime(timer, TFD_TIMER_ABSTIME, &times, 0) < 0) return 1;
    long long *seen = calloc(ticks, sizeof *seen);
    for (long tick = 0; tick < ticks; tick++) {
        uint64_t count;
        if (read(timer, &count, sizeof count) != sizeof count) return 1;
        clock_gettime(CLOCK_MONOTONIC, &now);
        seen[tick] = now.tv_sec * 1000000000LL + now.tv_nsec;
    }
    for (long tick = 0; tick < ticks; tick++) printf("%lld\n", seen[tick]);
    return 0;
}
