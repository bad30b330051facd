/* Hazard: streams without a file: fmemopen, open_memstream, fopencookie; and files without a name: tmpfile, mkstemp.
 * Holds: they work, are not attributed to other files, and cookie functions run as the program's own code. */
#include "hazard.h"

static ssize_t cookie_write(void *cookie, const char *data, size_t size) {
    return write(*(int *)cookie, data, size);
}

int main(void) {
    char memory[64] = "", *text = NULL;
    size_t size;
    FILE *stream = fmemopen(memory, sizeof memory, "w");
    MUST(stream && fputs("into memory", stream) >= 0 && fclose(stream) == 0 && !strcmp(memory, "into memory"));
    MUST((stream = open_memstream(&text, &size)) && fwrite("growing", 1, 7, stream) == 7 && fclose(stream) == 0);
    MUST(size == 7 && !memcmp(text, "growing", 7));
    free(text);
    int fd = open("cookie.bin", O_CREAT | O_WRONLY, 0644);
    cookie_io_functions_t functions = {.write = cookie_write};
    MUST(fd >= 0 && (stream = fopencookie(&fd, "w", functions)));
    MUST(fputs("cookie text", stream) >= 0 && fclose(stream) == 0 && close(fd) == 0);
    MUST((stream = tmpfile()) && fwrite("temporary", 1, 9, stream) == 9 && fclose(stream) == 0);
    char name[] = "made-XXXXXX", suffixed[] = "made-XXXXXX.tmp";
    MUST((fd = mkstemp(name)) >= 0 && write(fd, "made", 4) == 4 && close(fd) == 0 && unlink(name) == 0);
    MUST((fd = mkostemp(strcpy(name, "made-XXXXXX"), O_CLOEXEC)) >= 0 && write(fd, "made", 4) == 4 && close(fd) == 0);
    MUST(unlink(name) == 0);
    MUST((fd = mkstemps(suffixed, 4)) >= 0 && write(fd, "made", 4) == 4 && close(fd) == 0 && unlink(suffixed) == 0);
    char directory[] = "dir-XXXXXX";
    MUST(mkdtemp(directory) && rmdir(directory) == 0);
    return 0;
}
