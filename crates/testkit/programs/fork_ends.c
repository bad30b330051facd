/* Hazard: a forked child inherits the parent's half-filled buffers and ends in its own way.
 * Holds: parent and child keep all their own calls, none twice.
 * Usage: fork_ends exit|_exit|kill|exec */
#include "hazard.h"

int main(int argc, char **argv) {
    MUST(argc == 2);
    const char *how = argv[1];
    work("before.bin", 1000);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        work("child.bin", 1000);
        if (!strcmp(how, "exit")) exit(5);
        if (!strcmp(how, "_exit")) _exit(5);
        if (!strcmp(how, "kill")) raise(SIGKILL);
        if (!strcmp(how, "exec")) execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
        MUST(!"unknown way to end");
    }
    reap(child, strcmp(how, "kill") ? 5 : 128 + SIGKILL);
    work("after.bin", 1000);
    return 0;
}
