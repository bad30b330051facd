/* Hazard: copies of a descriptor made by dup, dup2, dup3 and F_DUPFD point to the same file.
 * Holds: I/O on every copy is attributed to the file, also after the original is closed, and dup2 onto an open
 * descriptor moves the name. */
#include "hazard.h"

static void ten_writes(int fd) {
    for (int i = 0; i < 10; i++) MUST(write(fd, "0123456789", 10) == 10);
}

int main(void) {
    int first = open("first.bin", O_CREAT | O_WRONLY, 0644), second = open("second.bin", O_CREAT | O_WRONLY, 0644);
    MUST(first >= 0 && second >= 0);
    int by_dup = dup(first), by_dup2 = dup2(first, 60), by_dup3 = dup3(first, 61, O_CLOEXEC),
        by_fcntl = fcntl(first, F_DUPFD, 70), by_cloexec = fcntl(first, F_DUPFD_CLOEXEC, 80);
    MUST(by_dup >= 0 && by_dup2 == 60 && by_dup3 == 61 && by_fcntl == 70 && by_cloexec == 80);
    MUST(close(first) == 0);
    ten_writes(by_dup);
    ten_writes(by_dup2);
    ten_writes(by_dup3);
    ten_writes(by_fcntl);
    ten_writes(by_cloexec);
    MUST(dup2(second, by_dup) == by_dup); /* by_dup now is second.bin */
    ten_writes(by_dup);
    MUST(dup2(by_dup2, by_dup2) == by_dup2); /* onto itself: nothing changes */
    ten_writes(by_dup2);
    MUST(dup2(second, STDOUT_FILENO) == STDOUT_FILENO); /* what shells and dd do */
    ten_writes(STDOUT_FILENO);
    return 0;
}
