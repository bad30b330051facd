/* Hazard: daemons close every descriptor they do not know, ours included.
 * Holds: recording goes on afterwards. Usage: close_all close_range|closefrom|loop */
#include "hazard.h"

int main(int argc, char **argv) {
    MUST(argc == 2);
    work("before.bin", 100);
    int keep = open("keep.bin", O_CREAT | O_WRONLY, 0644), lost = open("lost.bin", O_CREAT | O_WRONLY, 0644);
    MUST(keep == 3 && lost == 4);
    if (!strcmp(argv[1], "close_range")) MUST(close_range(4, ~0u, 0) == 0);
    if (!strcmp(argv[1], "closefrom")) closefrom(4);
    if (!strcmp(argv[1], "loop"))
        for (int fd = 4; fd < 4096; fd++) syscall(SYS_close, fd);
    work("after.bin", 100);
    MUST(write(keep, "0123456789", 10) == 10);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        work("child.bin", 100);
        _exit(0);
    }
    reap(child, 0);
    return 0;
}
