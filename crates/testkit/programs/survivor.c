/* Hazard: a daemon outlives the program that was started.
 * Holds: the program returns at once; what the daemon does afterwards still belongs to the run.
 * The daemon goes on when "go" appears, and leaves "done" as its last act. */
#include "hazard.h"

int main(void) {
    work("before.bin", 100);
    if (fork() == 0) {
        MUST(setsid() > 0);
        if (fork() != 0) _exit(0);
        work("daemon-early.bin", 100);
        while (syscall(SYS_access, "go", F_OK) != 0) syscall(SYS_sched_yield);
        work("daemon-late.bin", 100);
        MUST(syscall(SYS_creat, "done", 0644) >= 0);
        _exit(0);
    }
    int status;
    MUST(wait(&status) > 0);
    return 0;
}
