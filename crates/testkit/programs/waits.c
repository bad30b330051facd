/* Hazard: the wait family blocks, fails with ECHILD and fills structures.
 * Holds: each form returns what it should, and each call is one event. */
#include "hazard.h"

static pid_t child_that_exits(int code) {
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) _exit(code);
    return child;
}

int main(void) {
    int status;
    struct rusage usage;
    siginfo_t info;
    pid_t child = child_that_exits(1);
    MUST(wait(&status) == child && WEXITSTATUS(status) == 1);
    child = child_that_exits(2);
    MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 2);
    child = child_that_exits(3);
    MUST(wait3(&status, 0, &usage) == child && WEXITSTATUS(status) == 3);
    child = child_that_exits(4);
    MUST(wait4(child, &status, 0, &usage) == child && WEXITSTATUS(status) == 4);
    child = child_that_exits(5);
    MUST(waitid(P_PID, child, &info, WEXITED) == 0 && info.si_status == 5 && info.si_pid == child);
    MUST(wait(&status) == -1 && errno == ECHILD);
    return 0;
}
