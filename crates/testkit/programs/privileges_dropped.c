/* Hazard: a daemon started as root becomes nobody, who may not touch our files, then forks and execs.
 * Holds: the image is recorded to its end, and its forked child too. The image that nobody executes cannot reach our files:
 * the ledger says so. */
#include "hazard.h"
#include <grp.h>

int main(int argc, char **argv) {
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
        execl(argv[0], argv[0], "executed", (char *)NULL);
        MUST(!"exec failed");
    }
    reap(child, 0);
    return 0;
}
