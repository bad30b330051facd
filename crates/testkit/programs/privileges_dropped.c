/* Hazard: a daemon started as root becomes nobody, who may not touch our files, then forks and execs.
 * Holds: everything before and after is recorded. */
#include "hazard.h"
#include <grp.h>

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        work("executed.bin", 100);
        return 0;
    }
    umask(0);
    work("before.bin", 100);
    MUST(chmod(".", 0777) == 0);
    MUST(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    work("nobody.bin", 5000);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        work("child.bin", 100);
        execl("/proc/self/exe", "privileges_dropped", "executed", (char *)NULL);
        MUST(!"exec failed");
    }
    reap(child, 0);
    return 0;
}
