/* Hazard: threads and processes give themselves names, as runtimes and data loaders do.
 * Holds: those are their names in the trace. */
#include "hazard.h"
#include <sys/prctl.h>

static pthread_barrier_t named;

static void *in_thread(void *unused) {
    (void)unused;
    MUST(pthread_setname_np(pthread_self(), "loader-1") == 0);
    work("named.bin", 10);
    pthread_barrier_wait(&named);
    pthread_barrier_wait(&named);
    return NULL;
}

int main(void) {
    pthread_t thread;
    MUST(pthread_barrier_init(&named, NULL, 2) == 0);
    MUST(pthread_create(&thread, NULL, in_thread, NULL) == 0);
    pthread_barrier_wait(&named);
    /* Another thread's name; a name that is too long changes nothing. */
    MUST(pthread_setname_np(thread, "loader-2") == 0);
    MUST(pthread_setname_np(thread, "a name that is too long") == ERANGE);
    pthread_barrier_wait(&named);
    MUST(pthread_join(thread, NULL) == 0);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        MUST(prctl(PR_SET_NAME, "pt_data_worker_0_of_many") == 0);
        work("worker.bin", 10);
        _exit(0);
    }
    reap(child, 0);
    child = fork();
    MUST(child >= 0);
    if (child == 0) {
        work("nameless.bin", 10);
        _exit(0);
    }
    reap(child, 0);
    return 0;
}
