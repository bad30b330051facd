/* Not a hazard: runs a command within bounds and tells how it ended, for tests of what hostile input may cost.
 * Usage: bounded REPORT SECONDS MEMORY FILE COMMAND…   MEMORY and FILE: bytes of address space and of the largest file.
 * REPORT gets one line: exit code (or -1), signal (or 0), whether time was up, peak resident set in KiB, milliseconds.
 * The command leads a process group of its own; whoever is left of it in the end is killed. */
#include "hazard.h"
#include <time.h>

static void limit(int what, rlim_t value) {
    struct rlimit bound = {value, value};
    MUST(setrlimit(what, &bound) == 0);
}

int main(int argc, char **argv) {
    MUST(argc > 5);
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    MUST(sigprocmask(SIG_BLOCK, &child_ended, NULL) == 0);
    struct timespec began, ended;
    MUST(clock_gettime(CLOCK_MONOTONIC, &began) == 0);
    pid_t command = fork();
    MUST(command >= 0);
    if (command == 0) {
        MUST(setpgid(0, 0) == 0);
        limit(RLIMIT_AS, strtoull(argv[3], NULL, 10));
        limit(RLIMIT_FSIZE, strtoull(argv[4], NULL, 10));
        limit(RLIMIT_CORE, 0);
        MUST(sigprocmask(SIG_UNBLOCK, &child_ended, NULL) == 0);
        execvp(argv[5], argv + 5);
        must_failed(argv[5], errno);
    }
    setpgid(command, command); /* whichever of both comes first; the child may have executed by then */
    struct timespec patience = {atol(argv[2]), 0};
    int late = 0;
    while (sigtimedwait(&child_ended, NULL, &patience) < 0) {
        if (errno == EAGAIN) {
            late = 1;
            break;
        }
        MUST(errno == EINTR);
    }
    kill(-command, SIGKILL); /* the command itself has ended, or must now */
    int status;
    struct rusage used;
    MUST(wait4(command, &status, 0, &used) == command);
    MUST(clock_gettime(CLOCK_MONOTONIC, &ended) == 0);
    FILE *report = fopen(argv[1], "w");
    MUST(report != NULL);
    long milliseconds = (ended.tv_sec - began.tv_sec) * 1000 + (ended.tv_nsec - began.tv_nsec) / 1000000;
    fprintf(report, "%d %d %d %ld %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            WIFSIGNALED(status) ? WTERMSIG(status) : 0, late, used.ru_maxrss, milliseconds);
    MUST(fclose(report) == 0);
    return 0;
}
