/* Hazard: fd tables of fixed size confuse descriptors that differ by a multiple of it (fd 4 and fd 1028), or stop.
 * Holds: I/O on descriptors 4, 1028, TOP - 1 and TOP is attributed to four different files.
 * Usage: big_fds TOP (the highest descriptor that the hard limit allows; above 65,536 where it can be had) */
#include "hazard.h"

int main(int argc, char **argv) {
    MUST(argc == 2);
    int top = atoi(argv[1]);
    struct rlimit limit = {top + 1, top + 1};
    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    const int numbers[] = {4, 1028, top - 1, top};
    const char *names[] = {"fd4.bin", "fd1028.bin", "fd-below-top.bin", "fd-top.bin"};
    for (int i = 0; i < 4; i++) {
        int fd = open(names[i], O_CREAT | O_WRONLY, 0644);
        MUST(fd >= 0);
        if (fd != numbers[i]) MUST(dup2(fd, numbers[i]) == numbers[i] && close(fd) == 0);
    }
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < 4; i++) MUST(write(numbers[i], "0123456789", 10) == 10);
    for (int i = 0; i < 4; i++) MUST(close(numbers[i]) == 0);
    MUST(write(1028, "x", 1) == -1 && errno == EBADF);
    return 0;
}
