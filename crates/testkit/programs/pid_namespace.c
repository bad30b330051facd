/* Hazard: in new pid namespaces the pids repeat: several processes of one run are pid 1.
 * Holds: each is an image of its own. The parent makes three namespaces one after the other. */
#include "hazard.h"

int main(void) {
    for (char number = '1'; number <= '3'; number++) {
        pid_t outer = fork();
        MUST(outer >= 0);
        if (outer == 0) {
            MUST(unshare(CLONE_NEWPID) == 0);
            pid_t inner = fork();
            MUST(inner >= 0);
            if (inner == 0) {
                char name[] = {'n', 's', number, 0};
                MUST(getpid() == 1);
                work(name, 100 * (number - '0'));
                _exit(0);
            }
            reap(inner, 0);
            _exit(0);
        }
        reap(outer, 0);
    }
    return 0;
}
