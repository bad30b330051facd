/* Hazard: open's mode argument exists only with O_CREAT or O_TMPFILE; dropping it makes files of mode 000.
 * Holds: all forms of open make files with the mode that was asked for. */
#include "hazard.h"

static int mode_of(int fd) {
    struct stat metadata;
    MUST(fd >= 0 && fstat(fd, &metadata) == 0);
    return metadata.st_mode & 07777;
}

int main(void) {
    umask(0);
    printf("open %o\n", mode_of(open("open.bin", O_CREAT | O_RDWR, 0640)));
    printf("open64 %o\n", mode_of(open64("open64.bin", O_CREAT | O_RDWR, 0604)));
    printf("openat %o\n", mode_of(openat(AT_FDCWD, "openat.bin", O_CREAT | O_RDWR, 0751)));
    printf("openat64 %o\n", mode_of(openat64(AT_FDCWD, "openat64.bin", O_CREAT | O_RDWR, 0700)));
    printf("creat %o\n", mode_of(creat("creat.bin", 0123)));
    printf("creat64 %o\n", mode_of(creat64("creat64.bin", 0321)));
    printf("O_TMPFILE %o\n", mode_of(open(".", O_TMPFILE | O_RDWR, 0640)));
    printf("O_TMPFILE openat %o\n", mode_of(openat(AT_FDCWD, ".", O_TMPFILE | O_RDWR, 04755)));
    printf("without mode %o\n", mode_of(open("open.bin", O_RDONLY)));
    return 0;
}
