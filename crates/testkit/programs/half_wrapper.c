/* Another tracer that wraps one function of a family and not the others; built with -shared and preloaded.
 * Hazard: a hook that calls another function of the family passes its wrapper by. */
#include "hazard.h"
#include <stdarg.h>

int dprintf(int fd, const char *format, ...) {
    (void)!write(fd, "wrapped: ", 9);
    va_list arguments;
    va_start(arguments, format);
    int written = vdprintf(fd, format, arguments);
    va_end(arguments);
    return written;
}
