/* Hazard: a descriptor number is reused after its stream, not the descriptor, was closed.
 * Holds: I/O on the reused number is attributed to the new file: after fclose(fdopen()), fclose, freopen, closedir,
 * pclose and close_range. */
#include "hazard.h"
#include <dirent.h>

static int expected_fd;

static void use(const char *path) {
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    MUST(fd == expected_fd);
    for (int i = 0; i < 10; i++) MUST(write(fd, "0123456789", 10) == 10);
    MUST(close(fd) == 0);
}

int main(void) {
    expected_fd = open("probe.bin", O_CREAT | O_RDWR, 0644);
    MUST(expected_fd >= 0);
    FILE *stream = fdopen(expected_fd, "w");
    MUST(stream && fclose(stream) == 0);
    use("after-fdopen.bin");
    MUST((stream = fopen("stream.bin", "w")) && fileno(stream) == expected_fd && fclose(stream) == 0);
    use("after-fclose.bin");
    DIR *directory = opendir(".");
    MUST(directory && dirfd(directory) == expected_fd && closedir(directory) == 0);
    use("after-closedir.bin");
    MUST((stream = popen("true", "r")) && pclose(stream) == 0);
    use("after-pclose.bin");
    MUST(open("probe.bin", O_RDWR) == expected_fd && close_range(expected_fd, ~0u, 0) == 0);
    use("after-close_range.bin");
    MUST(open("probe.bin", O_RDWR) == expected_fd && syscall(SYS_close, expected_fd) == 0);
    use("after-raw-close.bin");
    return 0;
}
