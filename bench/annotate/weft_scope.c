/*
 * What a scope of weft.h costs. Run it under `weft run` for the cost while recording, by itself for the cost while nothing is recorded.
 *
 *     cc -O2 weft_scope.c $(pkg-config --cflags --libs weft) -o weft_scope
 */
#include "cost.h"
#include <weft.h>

static void plain(long spans) {
    for (long i = 0; i < spans; i++) {
        WEFT_SCOPE("step");
        WORK(i);
    }
}

static void with_arguments(long spans) {
    for (long i = 0; i < spans; i++) {
        WEFT_SPAN(span, "load");
        weft_int(&span, "index", i);
        weft_double(&span, "loss", 0.5);
        weft_str(&span, "path", "data/train-00001.npz");
        WORK(i);
    }
}

int main(int argc, char **argv) {
    return tell_costs(argc, argv, plain, with_arguments);
}
