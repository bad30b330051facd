/* Hazard: a relative path means another file after chdir or fchdir, and in another thread's or child's directory.
 * Holds: every event carries the absolute path. */
#include "hazard.h"

int main(void) {
    MUST(mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0 && mkdir("c", 0755) == 0);
    work("same.bin", 1);
    MUST(chdir("a") == 0);
    work("same.bin", 2);
    MUST(chdir("b") == 0);
    work("same.bin", 3);
    work("../up.bin", 4);
    work("./../../c/./dots.bin", 5);
    int directory = open("../../c", O_RDONLY | O_DIRECTORY);
    MUST(directory >= 0 && fchdir(directory) == 0);
    work("same.bin", 6);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        MUST(chdir("../a") == 0);
        work("child.bin", 7);
        _exit(0);
    }
    reap(child, 0);
    work("parent.bin", 8);
    return 0;
}
