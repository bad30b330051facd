/*
 * What a pair of LTTng-UST's tracepoints costs that begin and end a span. Run it while a session records `weft_bench:*`, or without one.
 *
 *     cc -O2 -I. lttng_scope.c -llttng-ust -ldl -o lttng_scope
 */
#include "cost.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_scope.h"

static void plain(long spans) {
    for (long i = 0; i < spans; i++) {
        lttng_ust_tracepoint(weft_bench, step_begin);
        WORK(i);
        lttng_ust_tracepoint(weft_bench, step_end);
    }
}

static void with_arguments(long spans) {
    for (long i = 0; i < spans; i++) {
        lttng_ust_tracepoint(weft_bench, load_begin, i, 0.5, "data/train-00001.npz");
        WORK(i);
        lttng_ust_tracepoint(weft_bench, load_end);
    }
}

int main(int argc, char **argv) {
    return tell_costs(argc, argv, plain, with_arguments);
}
