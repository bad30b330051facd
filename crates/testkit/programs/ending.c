/* Hazard: a process can end in many ways, most of which run no exit handler.
 * Holds: all 2 + N calls of the work are in the trace, however the process ends.
 * Usage: ending HOW N */
#include "hazard.h"

int main(int argc, char **argv) {
    MUST(argc == 3);
    const char *how = argv[1];
    work("data.bin", atoi(argv[2]));
    if (!strcmp(how, "return")) return 7;
    if (!strcmp(how, "exit")) exit(7);
    if (!strcmp(how, "_exit")) _exit(7);
    if (!strcmp(how, "_Exit")) _Exit(7);
    if (!strcmp(how, "quick_exit")) quick_exit(7);
    if (!strcmp(how, "exit_group")) syscall(SYS_exit_group, 7);
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "int")) raise(SIGINT);
    if (!strcmp(how, "segv")) *(volatile int *)8 = 1;
    if (!strcmp(how, "fpe")) raise(SIGFPE);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "pthread_exit")) pthread_exit(NULL);
    if (!strcmp(how, "raw_exit")) syscall(SYS_exit, 7);
    if (!strcmp(how, "exec")) execl("/bin/true", "true", (char *)NULL);
    if (!strcmp(how, "exec_fails")) {
        MUST(execl("./no-such-program", "no-such-program", (char *)NULL) == -1 && errno == ENOENT);
        work("after.bin", 10);
        return 7;
    }
    MUST(!"unknown way to end");
}
