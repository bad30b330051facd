/* Hazard: the printf family takes any number of arguments of any class: integer registers, vector registers (their
 * number is in al), the stack, 16-byte long doubles. A wrapper must pass all of them on bit by bit.
 * Holds: the text is the same. Built at -O0, and at -O2 with _FORTIFY_SOURCE (then the __*_chk forms are called). */
#include "hazard.h"
#include <stdarg.h>
#include <wchar.h>

static int forward(int (*sink)(void *, const char *, va_list), void *where, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int written = sink(where, format, list);
    va_end(list);
    return written;
}
static int to_stream(void *where, const char *format, va_list list) { return vfprintf(where, format, list); }
static int to_fd(void *where, const char *format, va_list list) { return vdprintf(*(int *)where, format, list); }
static int to_stdout(void *where, const char *format, va_list list) { (void)where; return vprintf(format, list); }

#define NUMBERS 1, 1.0 / 3, "text", 2.0L / 3, 1L << 60, -0.0, 'q', -5LL, 1e308, 2.5e-308, 3.25, 4.5, 5.75, 6.125, 1e22, \
        1e4000L, 17, 0xbeef, 300
#define PLAIN "%d %.17g %s %.21Lf %ld %.17g %c %lld %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.21Lg %d %x %hhd\n"

int main(void) {
    int fd = open("fd.txt", O_CREAT | O_WRONLY, 0644);
    FILE *stream = fopen("stream.txt", "w");
    MUST(fd >= 0 && stream);
    for (int i = 0; i < 100; i++) {
        MUST(fprintf(stream, PLAIN, NUMBERS) > 150);
        MUST(dprintf(fd, PLAIN, NUMBERS) > 150);
        MUST(printf(PLAIN, NUMBERS) > 150);
        MUST(forward(to_stream, stream, PLAIN, NUMBERS) > 150);
        MUST(forward(to_fd, &fd, PLAIN, NUMBERS) > 150);
        MUST(forward(to_stdout, NULL, PLAIN, NUMBERS) > 150);
    }
    MUST(fprintf(stream, "%2$s %1$*3$d|\n", 42, "positions", 8) == 20);
    MUST(fprintf(stream, "no arguments\n") == 13);
    MUST(fclose(stream) == 0 && close(fd) == 0);
    FILE *wide = fopen("wide.txt", "w");
    MUST(wide && fwprintf(wide, L"%d %.17g %ls %Lf\n", 3, 0.1, L"wide", 0.5L) > 0 && fclose(wide) == 0);
    return 0;
}
