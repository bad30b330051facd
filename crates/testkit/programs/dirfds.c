/* Hazard: the *at calls take paths relative to a directory descriptor, which may itself be a copy or be reused.
 * Holds: events carry the absolute path. */
#include "hazard.h"

static void touch_at(int directory, const char *name, int n) {
    int fd = openat(directory, name, O_CREAT | O_WRONLY, 0644);
    MUST(fd >= 0);
    for (int i = 0; i < n; i++) MUST(write(fd, "0123456789", 10) == 10);
    MUST(close(fd) == 0);
}

int main(void) {
    MUST(mkdirat(AT_FDCWD, "x", 0755) == 0);
    int x = open("x", O_PATH | O_DIRECTORY);
    MUST(x >= 0 && mkdirat(x, "y", 0755) == 0);
    int y = openat(x, "y", O_RDONLY | O_DIRECTORY), copy = dup(x);
    MUST(y >= 0 && copy >= 0);
    touch_at(x, "in-x.bin", 1);
    touch_at(y, "in-y.bin", 2);
    touch_at(copy, "by-copy.bin", 3);
    touch_at(y, "../up.bin", 4);
    touch_at(AT_FDCWD, "here.bin", 5);
    MUST(renameat(x, "in-x.bin", y, "moved.bin") == 0);
    MUST(unlinkat(y, "in-y.bin", 0) == 0);
    MUST(dup2(y, x) == x);
    touch_at(x, "x-is-y.bin", 6);
    return 0;
}
