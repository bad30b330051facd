/* Hazard: pthread_cancel unwinds the stack through a blocked call, that is, through our wrapper.
 * Holds: cleanup handlers run, the thread is joined as cancelled, later calls are recorded. Usage: cancelled read|fgets|open */
#include "hazard.h"

static int ends[2];
static volatile int ready, cleaned;
static const char *call;

static void cleanup(void *unused) {
    (void)unused;
    cleaned++;
}

static void *blocked(void *unused) {
    char buffer[10];
    pthread_cleanup_push(cleanup, NULL);
    work("thread.bin", 10);
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    if (!strcmp(call, "read")) (void)!read(ends[0], buffer, 10);
    if (!strcmp(call, "fgets")) (void)!fgets(buffer, 10, fdopen(ends[0], "r"));
    if (!strcmp(call, "open")) (void)!open("fifo", O_RDONLY);
    pthread_cleanup_pop(0);
    return unused;
}

int main(int argc, char **argv) {
    MUST(argc == 2 && pipe(ends) == 0);
    call = argv[1];
    MUST(mkfifo("fifo", 0644) == 0);
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        void *result;
        ready = 0;
        MUST(pthread_create(&thread, NULL, blocked, NULL) == 0);
        while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST)) sched_yield();
        usleep(2000); /* lets the thread reach the call; cancelled a moment earlier it would be just as right */
        MUST(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    printf("cleaned %d\n", cleaned);
    work("after.bin", 10);
    return 0;
}
