/* Hazard: fcntl's third argument is an int, a pointer or missing, depending on the command.
 * Holds: every command gets its argument unchanged. */
#include "hazard.h"

int main(void) {
    int ends[2];
    MUST(pipe(ends) == 0);
    printf("F_SETPIPE_SZ %d\n", fcntl(ends[0], F_SETPIPE_SZ, 1 << 20));
    printf("F_GETPIPE_SZ %d\n", fcntl(ends[1], F_GETPIPE_SZ));
    printf("F_SETSIG %d\n", fcntl(ends[0], F_SETSIG, 10));
    printf("F_GETSIG %d\n", fcntl(ends[0], F_GETSIG));
    struct f_owner_ex owner = {F_OWNER_PID, getpid()}, seen = {0, 0};
    printf("F_SETOWN_EX %d\n", fcntl(ends[0], F_SETOWN_EX, &owner));
    printf("F_GETOWN_EX %d", fcntl(ends[0], F_GETOWN_EX, &seen));
    printf(" %d\n", seen.pid == getpid());
    int memory = memfd_create("sealed", MFD_ALLOW_SEALING);
    MUST(memory >= 0 && ftruncate(memory, 4096) == 0);
    printf("F_ADD_SEALS %d\n", fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
    printf("F_GET_SEALS %d\n", fcntl(memory, F_GET_SEALS));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};
    int locked = open("locked.bin", O_CREAT | O_RDWR, 0644), other = open("locked.bin", O_RDWR);
    MUST(locked >= 0 && other >= 0);
    printf("F_OFD_SETLK %d\n", fcntl(locked, F_OFD_SETLK, &lock));
    struct flock probe = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 100};
    printf("F_OFD_GETLK %d", fcntl(other, F_OFD_GETLK, &probe));
    printf(" start %d len %d\n", (int)probe.l_start, (int)probe.l_len);
    printf("F_DUPFD %d\n", fcntl(locked, F_DUPFD, 40));
    printf("F_DUPFD_CLOEXEC %d\n", fcntl(locked, F_DUPFD_CLOEXEC, 50));
    printf("F_GETFD %d %d\n", fcntl(40, F_GETFD), fcntl(50, F_GETFD));
    printf("F_GETFL %d\n", fcntl(locked, F_GETFL) & O_ACCMODE);
    printf("F_SETFL %d\n", fcntl(locked, F_SETFL, O_APPEND));
    printf("F_GETFL %d\n", (fcntl(locked, F_GETFL) & O_APPEND) == O_APPEND);
    printf("F_GETLEASE %d\n", fcntl(locked, F_GETLEASE));
    errno = 0;
    printf("bad command %d", fcntl(locked, 123456, 1L << 40));
    printf(" %d\n", errno);
    return 0;
}
