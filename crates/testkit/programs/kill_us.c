/* Hazard: SIGKILL of one process of a family at a random moment.
 * Holds: a call that has returned is in the trace, exactly once, whoever was killed. Each call has an offset of its own; after each call the thread
 * raises its counter in a page that is shared with the tester, so the counters are the truth.
 * Usage: kill_us DATA TRUTH CHILDREN THREADS. TRUTH: a u64 with the pid of each process, the parent first, then one u64 per thread of each. */
#include "hazard.h"

static uint64_t *counters;
static long threads, workers, first;
static int data;

static void *reader(void *number) {
    long me = first + (long)number;
    char byte;
    for (long i = 0;; i++) {
        MUST(pread(data, &byte, 1, i * workers + me) >= 0);
        __atomic_store_n(&counters[me], i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

int main(int argc, char **argv) {
    MUST(argc == 5);
    long children = atol(argv[3]);
    threads = atol(argv[4]);
    workers = (1 + children) * threads;
    data = open(argv[1], O_RDONLY);
    int page = open(argv[2], O_RDWR);
    MUST(data >= 0 && page >= 0);
    uint64_t *truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    MUST(truth != MAP_FAILED);
    counters = truth + 1 + children;
    long process = 0;
    for (long child = 1; child <= children; child++) {
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            process = child;
            break;
        }
    }
    first = process * threads;
    __atomic_store_n(&truth[process], getpid(), __ATOMIC_RELEASE);
    for (long i = 1; i < threads; i++) {
        pthread_t handle;
        MUST(pthread_create(&handle, NULL, reader, (void *)i) == 0);
    }
    reader(NULL);
}
