/* Hazard: a thread that is not main calls exec while a sibling is busy; the kernel kills the siblings and the
 * calling thread takes over the pid.
 * Holds: main's and the thread's work before the exec and the new image's work are kept. */
#include "hazard.h"

static void *replace(void *unused) {
    (void)unused;
    work("thread.bin", 200);
    execl("/proc/self/exe", "exec_from_thread", "again", (char *)NULL);
    MUST(!"exec failed");
    return NULL;
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        work("image.bin", 200);
        return 0;
    }
    pthread_t thread;
    work("main.bin", 200);
    MUST(pthread_create(&thread, NULL, replace, NULL) == 0);
    for (;;) pause();
}
