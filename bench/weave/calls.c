/*
 * What a woven call costs: prints one JSON object with nanoseconds per call. Run it under `weft run` for the cost while recording, by
 * itself for the cost while nothing is recorded.
 *
 * `step`, `outer` and `inner` are what is woven, or entered and left by the hooks of -finstrument-functions (hooks.c). Each figure
 * is the smallest of several rounds, less the same loop around functions that nobody instruments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 15 };

#define WOVEN __attribute__((noinline, annotate("@critical_path(pointcut='around')")))
#define BARE __attribute__((noinline, no_instrument_function))

/* Keeps a call from being optimised away, and is all that a function does. */
#define WORK(i) __asm__ volatile("" : : "r"(i) : "memory")

WOVEN static void step(long i) { WORK(i); }

WOVEN static void inner(long i) { WORK(i); }

WOVEN static void outer(long i) {
    inner(i);
    WORK(i);
}

BARE static void bare_step(long i) { WORK(i); }

BARE static void bare_outer(long i) {
    bare_step(i);
    WORK(i);
}

BARE static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

BARE static double fastest(void (*function)(long), long calls) {
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (long i = 0; i < calls; i++) function(i);
        double took = (now_ns() - start) / (double)calls;
        if (round == 0 || took < best) best = took;
    }
    return best;
}

BARE int main(int argc, char **argv) {
    long calls = argc > 1 ? atol(argv[1]) : 20000;
    if (calls < 1) calls = 1;
    double leaf = fastest(step, calls) - fastest(bare_step, calls);
    double nested = (fastest(outer, calls) - fastest(bare_outer, calls)) / 2;
    printf("{\"a function\": %.2f, \"a function in a function\": %.2f}\n", leaf, nested);
    return 0;
}
