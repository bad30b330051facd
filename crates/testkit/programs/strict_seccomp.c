/* Hazard: strict seccomp allows read, write and exit, and forbids the time-stamp counter.
 * Holds: the program does its work, more of it than a segment holds, and all of it is recorded.
 * Usage: strict_seccomp prctl|syscall */
#include "hazard.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>

int main(int argc, char **argv) {
    MUST(argc == 2);
    work("before.bin", 100);
    int fd = open("strict.bin", O_CREAT | O_WRONLY | O_APPEND, 0644);
    MUST(fd >= 0);
    if (!strcmp(argv[1], "prctl"))
        MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    else
        MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) == 0);
    for (int i = 0; i < 5000; i++)
        if (write(fd, "0123456789", 10) != 10) syscall(SYS_exit, 9);
    syscall(SYS_exit, 0);
}
