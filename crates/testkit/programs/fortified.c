/* Hazard: with _FORTIFY_SOURCE the compiler calls __open_2, __read_chk, __pread_chk, __fread_chk, __fgets_chk,
 * __fprintf_chk, __readlink_chk and others instead of the plain functions.
 * Holds: they are seen like the plain ones. Built with -O2 -D_FORTIFY_SOURCE=2 and =3. */
#include "hazard.h"

int main(int argc, char **argv) {
    (void)argv;
    char block[100], target[100];
    int flags = argc > 5 ? O_WRONLY : O_RDONLY; /* not a constant, so open becomes __open_2 */
    volatile size_t wanted = 100;               /* likewise: the checks stay */
    work("data.bin", 100);
    int fd = open("data.bin", flags), again = openat(AT_FDCWD, "data.bin", flags);
    MUST(fd >= 0 && again >= 0);
    for (int i = 0; i < 10; i++) MUST(read(fd, block, wanted) == 100);
    for (int i = 0; i < 10; i++) MUST(pread(again, block, wanted, 5) == 100);
    MUST(close(fd) == 0 && close(again) == 0);
    FILE *stream = fopen("data.txt", "w+");
    MUST(stream);
    for (int i = 0; i < 10; i++) MUST(fprintf(stream, "%s %d %g\n", "value", i, i / 2.0) > 0);
    rewind(stream);
    MUST(fread(block, 1, wanted, stream) == 100 && fgets(block, (int)wanted, stream));
    MUST(fclose(stream) == 0);
    MUST(symlink("data.bin", "link") == 0 && readlink("link", target, wanted) == 8);
    dprintf(1, "%.*s %d %.3f\n", 8, target, 12, 0.125);
    return 0;
}
