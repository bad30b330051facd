/*
 * What a scope costs in C: prints one JSON object with nanoseconds per scope, with no arguments and with three. Run it under
 * `weft run` for the cost while recording, by itself for the cost while nothing is recorded.
 *
 *     cc -O2 c_scope.c $(pkg-config --cflags --libs weft) -o c_scope
 *     ./c_scope [SCOPES]
 *
 * Each figure is the smallest of several rounds, less the same loop without a scope.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weft.h>

enum { ROUNDS = 15 };

/* Keeps the loop from being optimised away, and is all that the bare loop does. */
#define WORK(i) __asm__ volatile("" : : "r"(i) : "memory")

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void bare(long scopes) {
    for (long i = 0; i < scopes; i++) {
        WORK(i);
    }
}

static void plain(long scopes) {
    for (long i = 0; i < scopes; i++) {
        WEFT_SCOPE("step");
        WORK(i);
    }
}

static void with_arguments(long scopes) {
    for (long i = 0; i < scopes; i++) {
        WEFT_SPAN(span, "load");
        weft_int(&span, "index", i);
        weft_double(&span, "loss", 0.5);
        weft_str(&span, "path", "data/train-00001.npz");
        WORK(i);
    }
}

static double fastest(void (*run)(long), long scopes) {
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        run(scopes);
        double took = (now_ns() - start) / (double)scopes;
        if (round == 0 || took < best) best = took;
    }
    return best;
}

int main(int argc, char **argv) {
    long scopes = argc > 1 ? atol(argv[1]) : 20000;
    if (scopes < 1) scopes = 1;
    double base = fastest(bare, scopes);
    double none = fastest(plain, scopes) - base;
    double three = fastest(with_arguments, scopes) - base;
    printf("{\"0 arguments\": %.2f, \"3 arguments\": %.2f}\n", none, three);
    return 0;
}
