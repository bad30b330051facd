/* Hazard: a vfork child shares the parent's memory but has its own descriptors: what it closes and opens must not
 * change what the parent's descriptors are called, and its records must not disturb the parent's.
 * Holds: the parent's writes after vfork are still attributed to parent.bin.
 * Usage: vfork_child exec|_exit */
#include "hazard.h"

int main(int argc, char **argv) {
    MUST(argc == 2);
    int ends_by_exec = !strcmp(argv[1], "exec");
    char *const child_argv[] = {"sh", "-c", "exit 6", NULL};
    int fd = open("parent.bin", O_CREAT | O_WRONLY, 0644);
    MUST(fd >= 0);
    for (int round = 0; round < 20; round++) {
        pid_t child = vfork();
        MUST(child >= 0);
        if (child == 0) {
            close(fd);
            if (open("child.bin", O_CREAT | O_WRONLY, 0644) != fd) _exit(1);
            if (write(fd, "child", 5) != 5) _exit(1);
            if (ends_by_exec) execv("/bin/sh", child_argv);
            _exit(6);
        }
        reap(child, 6);
        MUST(write(fd, "parent", 6) == 6);
    }
    MUST(close(fd) == 0);
    return 0;
}
