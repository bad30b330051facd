/* Hazard: a handler on the smallest legal alternate stack, and threads with the smallest legal stack, do I/O.
 * Holds: our wrappers need so little stack that nothing overflows. */
#include "hazard.h"

static volatile int handled;

static void handler(int number) {
    (void)number;
    int fd = open("handler.bin", O_CREAT | O_WRONLY | O_APPEND, 0644);
    MUST(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
    handled++;
}

static void *thread(void *unused) {
    work("thread.bin", 10);
    return unused;
}

int main(void) {
    size_t size = sysconf(_SC_MINSIGSTKSZ) + 2048, page = 4096, rounded = (size + page - 1) / page * page;
    char *memory = mmap(NULL, rounded + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(memory != MAP_FAILED && mprotect(memory + page, rounded, PROT_READ | PROT_WRITE) == 0);
    stack_t stack = {.ss_sp = memory + page + rounded - size, .ss_size = size};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    MUST(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 100; i++) MUST(raise(SIGUSR1) == 0);
    MUST(handled == 100);
    pthread_attr_t small;
    MUST(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 16384) == 0);
    for (int i = 0; i < 20; i++) {
        pthread_t handle;
        MUST(pthread_create(&handle, &small, thread, NULL) == 0 && pthread_join(handle, NULL) == 0);
    }
    return 0;
}
