/*
 * What a span costs in C: the loop of spans/src/lib.rs, for programs that include it. Each figure is the median of many short rounds, so that a
 * round in which another program had the processor does not count, less the same loop without a span.
 *
 * A program is called as `PROGRAM [SPANS] [ROUNDS]` and prints one JSON object: nanoseconds per span by kind, and the spans that were made.
 */
#ifndef COST_H
#define COST_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Keeps the loop from being optimised away, and is all that the bare loop does. */
#define WORK(i) __asm__ volatile("" : : "r"(i) : "memory")

/* Between rounds. Whoever writes the trace must keep up: a program that does nothing but spans has more of them than a disk can take. */
enum { PAUSE_NS = 2000000 };

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median_ns(void (*run)(long), long spans, int rounds) {
    double *times = calloc((size_t)rounds, sizeof *times);
    if (!times) exit(1);
    for (int round = 0; round < rounds; round++) {
        struct timespec pause = {0, PAUSE_NS};
        nanosleep(&pause, NULL);
        double start = now_ns();
        run(spans);
        times[round] = (now_ns() - start) / (double)spans;
    }
    qsort(times, (size_t)rounds, sizeof *times, ascending);
    double middle = times[rounds / 2];
    free(times);
    return middle;
}

static void bare(long spans) {
    for (long i = 0; i < spans; i++) {
        WORK(i);
    }
}

static int tell_costs(int argc, char **argv, void (*plain)(long), void (*with_arguments)(long)) {
    long spans = argc > 1 ? atol(argv[1]) : 500;
    int rounds = argc > 2 ? atoi(argv[2]) : 301;
    if (spans < 1) spans = 1;
    if (rounds < 1) rounds = 1;
    double base = median_ns(bare, spans, rounds);
    double none = median_ns(plain, spans, rounds) - base;
    double three = median_ns(with_arguments, spans, rounds) - base;
    printf("{\"ns\": {\"0 arguments\": %.2f, \"3 arguments\": %.2f}, \"made\": %ld}\n", none, three, 2 * spans * rounds);
    return 0;
}

#endif
