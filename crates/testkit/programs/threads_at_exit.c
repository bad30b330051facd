/* Hazard: other threads live on while main returns: blocked in a call, or in the middle of I/O.
 * Holds: the process does not crash; the work of every thread up to the exit is kept. The busy threads append one
 * byte per call, so the length of their file is the number of calls that took effect.
 * Usage: threads_at_exit blocked|busy */
#include "hazard.h"

static int pipe_ends[2];
static volatile int started;

static void *blocked(void *unused) {
    char byte;
    work("thread.bin", 1000);
    __atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
    (void)!read(pipe_ends[0], &byte, 1);
    return unused;
}

static void *busy(void *unused) {
    int fd = open("busy.log", O_CREAT | O_WRONLY | O_APPEND, 0644);
    MUST(fd >= 0);
    __atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
    for (;;) MUST(write(fd, "x", 1) == 1);
    return unused;
}

int main(int argc, char **argv) {
    MUST(argc == 2 && pipe(pipe_ends) == 0);
    int is_busy = !strcmp(argv[1], "busy"), threads = is_busy ? 3 : 1;
    pthread_t thread;
    for (int i = 0; i < threads; i++) MUST(pthread_create(&thread, NULL, is_busy ? busy : blocked, NULL) == 0);
    while (__atomic_load_n(&started, __ATOMIC_SEQ_CST) < threads) sched_yield();
    work("main.bin", 1000);
    return 0;
}
