/* Hazard: SIGKILL at a random moment.
 * Holds: a call that has returned is in the trace, exactly once. Each call has an offset of its own; after each call the
 * thread raises its counter in a page that is shared with the tester, so the counters are the truth.
 * Usage: kill_me DATA TRUTH THREADS CALLS (per thread; 0: until killed). TRUTH: u64 pid, then one u64 per thread. */
#include "hazard.h"

static uint64_t *truth;
static long threads, calls;
static int data;

static void *reader(void *number) {
    long me = (long)number;
    char byte;
    for (long i = 0; calls == 0 || i < calls; i++) {
        MUST(pread(data, &byte, 1, i * threads + me) >= 0);
        __atomic_store_n(&truth[1 + me], i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

int main(int argc, char **argv) {
    MUST(argc == 5);
    threads = atol(argv[3]);
    calls = atol(argv[4]);
    data = open(argv[1], O_RDONLY);
    int page = open(argv[2], O_RDWR);
    MUST(data >= 0 && page >= 0);
    truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    MUST(truth != MAP_FAILED);
    __atomic_store_n(&truth[0], getpid(), __ATOMIC_RELEASE);
    for (long i = 1; i < threads; i++) {
        pthread_t handle;
        MUST(pthread_create(&handle, NULL, reader, (void *)i) == 0);
    }
    reader(NULL);
    pthread_exit(NULL);
}
