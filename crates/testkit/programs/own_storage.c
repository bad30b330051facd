/* Hazard: a child that clone gave thread storage of its own (CLONE_SETTLS), as Chromium's sandbox makes it, has none of the recorder's.
 * Holds: the child does its work and ends as it wants; its calls are counted as lost, its parent's and other threads' are recorded.
 * Usage: own_storage zero|filled|execs */
#include "hazard.h"

static char storage[65536] __attribute__((aligned(64)));
static const char *mode;

static int child_with_storage(void *unused) {
    (void)unused;
    /* No call that looks at its thread: the C library has no storage here either. */
    if (mkdir("made", 0755) != 0 || chdir("made") != 0 || chdir("..") != 0) _exit(5);
    if (!strcmp(mode, "execs")) {
        char *argv[] = {"true", NULL};
        execv("/bin/true", argv);
        _exit(6);
    }
    _exit(4);
}

static pthread_barrier_t begun;

static void *busy(void *stop) {
    work("thread.bin", 10);
    pthread_barrier_wait(&begun);
    while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE)) work("thread.bin", 10);
    return NULL;
}

int main(int argc, char **argv) {
    MUST(argc == 2);
    mode = argv[1];
    int stop = 0;
    pthread_t thread;
    work("before.bin", 100);
    MUST(pthread_barrier_init(&begun, NULL, 2) == 0);
    MUST(pthread_create(&thread, NULL, busy, &stop) == 0);
    pthread_barrier_wait(&begun);
    char *stack = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(stack != MAP_FAILED);
    void *base = storage + sizeof storage / 2;
    /* The C library's own blocks begin with their own address; this one leads nowhere. */
    if (!strcmp(mode, "filled")) *(uintptr_t *)base = 1;
    pid_t child = clone(child_with_storage, stack + (1 << 20), CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD, NULL, NULL, base, NULL);
    MUST(child > 0);
    reap(child, !strcmp(mode, "execs") ? 0 : 4);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    MUST(pthread_join(thread, NULL) == 0);
    work("after.bin", 100);
    return 0;
}
