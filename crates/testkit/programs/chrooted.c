/* Hazard: after chroot neither our files nor /proc can be reached, and paths mean something else.
 * Holds: the chrooted process and its children are recorded; the output goes on. */
#include "hazard.h"

int main(void) {
    work("before.bin", 100);
    MUST(mkdir("jail", 0755) == 0);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        MUST(chroot("jail") == 0 && chdir("/") == 0);
        work("/inside.bin", 5000);
        pid_t grandchild = fork();
        MUST(grandchild >= 0);
        if (grandchild == 0) {
            work("/deeper.bin", 100);
            _exit(0);
        }
        reap(grandchild, 0);
        _exit(0);
    }
    reap(child, 0);
    work("after.bin", 100);
    return 0;
}
