/*
 * What a program woven for PerfFlowAspect does: calls of the two functions at the beginning and at the end of functions. The first argument
 * chooses a part; what must be in the file is said in tests/suite/annotate_c/perfflow.rs.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void perfflow_weave_before(int async, const char *module, const char *function, const char *scope, const char *flow,
                           const char *pcut);
void perfflow_weave_after(int async, const char *module, const char *function, const char *scope, const char *flow,
                          const char *pcut);

#define MODULE "/src/woven.c"

/* A woven function: before, body, after. */
#define WOVEN(async, function, scope, flow, pcut, body)                          \
    do {                                                                         \
        perfflow_weave_before(async, MODULE, function, scope, flow, pcut);       \
        body;                                                                    \
        perfflow_weave_after(async, MODULE, function, scope, flow, pcut);        \
    } while (0)
#define AROUND(function, body) WOVEN(0, function, "NA", "NA", "around", body)

static void nap(long microseconds) {
    struct timespec time = {0, microseconds * 1000};
    nanosleep(&time, NULL);
}

/* foo calls bar, which calls bas, four times: PerfFlowAspect's own smoke test. */
static void smoke(void) {
    for (int i = 0; i < 4; i++) AROUND("_Z3foov", nap(1000); AROUND("_Z3barv", nap(1000); AROUND("_Z3basv", )));
}

static void recurse(int depth) {
    AROUND("_Z3reci", nap(2000); if (depth > 1) recurse(depth - 1));
}

static void recursion(void) { recurse(4); }

static void *works(void *unused) {
    (void)unused;
    for (int i = 0; i < 500; i++) AROUND("_Z5outerv", AROUND("_Z5innerv", ));
    return NULL;
}

static void in_threads(void *(*run)(void *)) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

static void threads(void) { in_threads(works); }

static void halves(void) {
    perfflow_weave_before(0, MODULE, "_Z8f_beforev", "NA", "NA", "before");
    perfflow_weave_after(0, MODULE, "f_after", "NA", "NA", "after");
}

static void async(void) {
    perfflow_weave_before(1, MODULE, "starts", "sc1", "NA", "before_async");
    perfflow_weave_before(1, MODULE, "starts", "sc1", "NA", "before_async");
    WOVEN(1, "whole", "sc2", "NA", "around_async", );
    perfflow_weave_after(1, MODULE, "ends", "sc1", "NA", "after_async");
    perfflow_weave_after(1, MODULE, "ends", "sc1", "NA", "after_async");
    WOVEN(1, "whole", "sc2", "NA", "around_async", );
    perfflow_weave_after(1, MODULE, "alone", NULL, NULL, "after_async");
}

static void *begins(void *unused) {
    (void)unused;
    perfflow_weave_before(1, MODULE, "request", "queue", "NA", "before_async");
    for (int i = 0; i < 100; i++) WOVEN(1, "step", "steps", "NA", "around_async", );
    return NULL;
}

static void *ends(void *unused) {
    (void)unused;
    perfflow_weave_after(1, MODULE, "request", "queue", "NA", "after_async");
    return NULL;
}

static void async_threads(void) {
    in_threads(begins);
    in_threads(ends);
}

static void flow(void) {
    WOVEN(0, "f_out", "NA", "out", "around", );
    WOVEN(0, "f_outin", "NA", "outin", "around", );
    WOVEN(0, "f_in", "NA", "in", "around", );
    WOVEN(0, "f_inout", "NA", "inout", "around", );
    perfflow_weave_before(0, MODULE, "f_before", "NA", "in", "before");
    perfflow_weave_after(0, MODULE, "f_after", "NA", "out", "after");
}

static void names(void) {
    AROUND("_ZN1KclEi", AROUND("_ZN12_GLOBAL__N_16hiddenEv", AROUND("_Z4tfunIiET_S0_", )));
    AROUND("_ZZ4mainENK3$_0clEv", AROUND("plain", ));
    perfflow_weave_before(0, "caf\xe9 \"quoted\"", "odd\n\xff", "NA", "NA", "before");
}

static void forks(void) {
    AROUND("_Z6parentv", );
    pid_t child = fork();
    AROUND(child ? "_Z4mainv" : "_Z5childv", );
    if (child == 0) exit(0);
    waitpid(child, NULL, 0);
}

/* Functions that are left without the weaver's call. */
static jmp_buf back;

static void jumps(void) {
    AROUND("_Z5outerv", if (setjmp(back) == 0) {
        perfflow_weave_before(0, MODULE, "_Z4lostv", "NA", "NA", "around");
        longjmp(back, 1);
    });
}

static void *leaves(void *unused) {
    perfflow_weave_before(0, MODULE, "_Z6leavesv", "NA", "NA", "around");
    pthread_exit(unused);
}

static void exits(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, leaves, NULL);
    pthread_join(thread, NULL);
    perfflow_weave_before(0, MODULE, "_Z5exitsv", "NA", "NA", "around");
    exit(3);
}

static void nulls(void) {
    perfflow_weave_before(0, NULL, NULL, NULL, NULL, NULL);
    perfflow_weave_after(0, NULL, NULL, NULL, NULL, NULL);
    perfflow_weave_after(1, NULL, "f", NULL, NULL, NULL);
    WOVEN(1, "g", NULL, NULL, "around_async", );
    WOVEN(0, "h", NULL, NULL, "around", );
    perfflow_weave_after(0, NULL, "never begun", NULL, NULL, "around");
    perfflow_weave_before(0, NULL, "i", NULL, "nonsense", "nonsense");
}

static void ends_by(const char *how) {
    smoke();
    if (strcmp(how, "_exit") == 0) _exit(4);
    raise(strcmp(how, "segv") == 0 ? SIGSEGV : SIGKILL);
}

/* What children would find. */
static void instance(void) {
    const char *path = getenv("PERFFLOW_INSTANCE_PATH");
    puts(path ? path : "none");
}

static void many(void) {
    for (int i = 0; i < 100000; i++) AROUND("_Z3foov", );
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"smoke", smoke}, {"recursion", recursion}, {"threads", threads}, {"halves", halves}, {"async", async},
                 {"async_threads", async_threads}, {"flow", flow}, {"names", names}, {"forks", forks}, {"jumps", jumps},
                 {"exits", exits}, {"nulls", nulls}, {"instance", instance}, {"many", many}};
    if (argc < 2) return 2;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run();
            puts(argv[1]);
            return 0;
        }
    }
    if (strcmp(argv[1], "nothing") != 0) ends_by(argv[1]);
    return 0;
}
