/* Hazard: a new image finds descriptors open that it never opened.
 * Holds: its I/O on them is attributed to the files that its parent opened. */
#include "hazard.h"

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        char buffer[10];
        for (int i = 0; i < 20; i++) MUST(write(30, "0123456789", 10) == 10);
        for (int i = 0; i < 5; i++) MUST(read(31, buffer, 10) == 10);
        return 0;
    }
    int out = open("out.bin", O_CREAT | O_WRONLY, 0644);
    work("in.bin", 1);
    int in = open("in.bin", O_RDONLY);
    MUST(out >= 0 && in >= 0 && dup2(out, 30) == 30 && dup2(in, 31) == 31);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "inherited_fds", "child", (char *)NULL);
        MUST(!"exec failed");
    }
    reap(child, 0);
    return 0;
}
