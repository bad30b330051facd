/* The workload whose calls are counted: loop KIND THREADS CALLS FILE [worst]
 *
 * KIND is pread, pwrite, openclose, fread or stat. CALLS are shared out among the threads; thread T works on FILE.T,
 * which the driver has made, so that nearly every traced call belongs to the loop. Prints one JSON object: CPU time
 * of each thread's loop, calls made, the longest single call (with `worst`, which times each call), peak memory.
 *
 * CPU time and not wall time: it does not count waiting for a core that somebody else uses.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 64, BLOCK = 4096, BLOCKS = 1024, SMALL = 64 };

struct task {
    pthread_t thread;
    char path[4096];
    long calls; /* what this thread is to do, then what it did */
    int64_t cpu_ns;
    int64_t worst_ns;
};

static const char *kind;
static int time_each_call;
static pthread_barrier_t start_line;

static int64_t thread_cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* Runs CALL and keeps the longest; a macro, because the point is to put nothing else between the two clocks. */
#define TIMED(task, CALL)                                    \
    do {                                                     \
        if (!time_each_call) {                               \
            CALL;                                            \
        } else {                                             \
            int64_t before = thread_cpu_ns();                \
            CALL;                                            \
            int64_t took = thread_cpu_ns() - before;         \
            if (took > (task)->worst_ns) (task)->worst_ns = took; \
        }                                                    \
    } while (0)

static void loop_positioned(struct task *task, int writing) {
    char block[BLOCK];
    memset(block, 'w', sizeof block);
    int file = open(task->path, O_RDWR);
    if (file < 0) fail(task->path);
    pthread_barrier_wait(&start_line);
    int64_t began = thread_cpu_ns();
    for (long call = 0; call < task->calls; call++) {
        off_t place = (off_t)(call % BLOCKS) * BLOCK;
        ssize_t done = 0;
        if (writing)
            TIMED(task, done = pwrite(file, block, sizeof block, place));
        else
            TIMED(task, done = pread(file, block, sizeof block, place));
        if (done != BLOCK) fail("short transfer");
    }
    task->cpu_ns = thread_cpu_ns() - began;
    close(file);
}

static void loop_openclose(struct task *task) {
    pthread_barrier_wait(&start_line);
    int64_t began = thread_cpu_ns();
    for (long call = 0; call < task->calls / 2; call++) {
        int file = -1;
        TIMED(task, file = open(task->path, O_RDONLY));
        if (file < 0) fail(task->path);
        TIMED(task, close(file));
    }
    task->cpu_ns = thread_cpu_ns() - began;
    task->calls = task->calls / 2 * 2;
}

static void loop_fread(struct task *task) {
    char piece[SMALL];
    FILE *file = fopen(task->path, "rb");
    if (!file) fail(task->path);
    pthread_barrier_wait(&start_line);
    int64_t began = thread_cpu_ns();
    for (long call = 0; call < task->calls; call++) {
        size_t done = 0;
        TIMED(task, done = fread(piece, 1, sizeof piece, file));
        if (done != SMALL) fail("short fread");
        /* Once in 65,536 calls: too seldom to matter. */
        if (call % (BLOCKS * BLOCK / SMALL) == BLOCKS * BLOCK / SMALL - 1) rewind(file);
    }
    task->cpu_ns = thread_cpu_ns() - began;
    fclose(file);
}

static void loop_stat(struct task *task) {
    struct stat status;
    pthread_barrier_wait(&start_line);
    int64_t began = thread_cpu_ns();
    for (long call = 0; call < task->calls; call++) {
        int result = 0;
        TIMED(task, result = stat(task->path, &status));
        if (result != 0) fail(task->path);
    }
    task->cpu_ns = thread_cpu_ns() - began;
}

static void *run(void *argument) {
    struct task *task = argument;
    if (!strcmp(kind, "pread")) loop_positioned(task, 0);
    else if (!strcmp(kind, "pwrite")) loop_positioned(task, 1);
    else if (!strcmp(kind, "openclose")) loop_openclose(task);
    else if (!strcmp(kind, "fread")) loop_fread(task);
    else if (!strcmp(kind, "stat")) loop_stat(task);
    else {
        fprintf(stderr, "loop: unknown kind %s\n", kind);
        exit(2);
    }
    return NULL;
}

/* Peak resident memory of this program. Not ru_maxrss: that one is inherited from whoever called exec.
 * By raw system calls, so that no tracer that hooks libc sees it. */
static long peak_kib(void) {
    char text[8192];
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY);
    long length = file < 0 ? -1 : syscall(SYS_read, (int)file, text, sizeof text - 1);
    if (length < 0) fail("/proc/self/status");
    syscall(SYS_close, (int)file);
    text[length] = 0;
    const char *line = strstr(text, "VmHWM:");
    return line ? atol(line + 6) : -1;
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: loop KIND THREADS CALLS FILE [worst]\n");
        return 2;
    }
    kind = argv[1];
    int threads = atoi(argv[2]);
    long calls = atol(argv[3]);
    time_each_call = argc > 5 && !strcmp(argv[5], "worst");
    if (threads < 1 || threads > MAX_THREADS) return 2;
    static struct task tasks[MAX_THREADS];
    pthread_barrier_init(&start_line, NULL, (unsigned)threads);
    for (int index = 0; index < threads; index++) {
        snprintf(tasks[index].path, sizeof tasks[index].path, "%s.%d", argv[4], index);
        tasks[index].calls = calls / threads;
        if (index > 0 && pthread_create(&tasks[index].thread, NULL, run, &tasks[index]) != 0) fail("pthread_create");
    }
    run(&tasks[0]);
    for (int index = 1; index < threads; index++) pthread_join(tasks[index].thread, NULL);

    long made = 0;
    int64_t cpu = 0, worst = 0;
    for (int index = 0; index < threads; index++) {
        made += tasks[index].calls;
        cpu += tasks[index].cpu_ns;
        if (tasks[index].worst_ns > worst) worst = tasks[index].worst_ns;
    }
    printf("{\"calls\": %ld, \"loop_cpu_ns\": %lld, \"worst_ns\": %lld, \"peak_kib\": %ld}\n", made, (long long)cpu,
           (long long)worst, peak_kib());
    return 0;
}
