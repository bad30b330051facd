/* Hazard: an injected program starts others that cannot be injected; its exec hooks must not hand our library to them.
 * Holds: each child (given as arguments) runs as untraced, and the parent goes on. */
#include "hazard.h"

int main(int argc, char **argv) {
    work("parent.bin", 100);
    for (int i = 1; i < argc; i++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            execl(argv[i], argv[i], (char *)NULL);
            MUST(!"exec failed");
        }
        reap(child, 11);
    }
    work("after.bin", 100);
    return 0;
}
