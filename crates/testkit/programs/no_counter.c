/* Hazard: after prctl(PR_SET_TSC) reading the time-stamp counter is a SIGSEGV, also inside the vdso's clock_gettime. Threads and children inherit
 * it.
 * Holds: all of them live and are recorded, with times that lie in order. */
#include "hazard.h"
#include <sys/prctl.h>

static void *in_thread(void *unused) {
    (void)unused;
    work("thread.bin", 100);
    return NULL;
}

int main(void) {
    pthread_t thread;
    work("before.bin", 100);
    MUST(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
    work("forbidden.bin", 3000);
    MUST(pthread_create(&thread, NULL, in_thread, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        work("child.bin", 100);
        _exit(0);
    }
    reap(child, 0);
    MUST(prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0);
    work("allowed.bin", 3000);
    return 0;
}
