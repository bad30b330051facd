/* Hooks of the truly variadic functions.
 *
 * Stable Rust cannot define a C variadic function. Each of these turns its arguments into a va_list and goes on in the
 * hook of the function's `v` form (printf, scanf) or in the exec hooks (execl). The exported symbols are naked jumps in
 * variadic.rs, because a cdylib exports Rust symbols only; the jump touches neither registers nor stack. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

extern int weft_vfprintf(FILE *stream, const char *format, va_list args);
extern int weft_vfprintf_chk(FILE *stream, int flag, const char *format, va_list args);
extern int weft_vprintf(const char *format, va_list args);
extern int weft_vprintf_chk(int flag, const char *format, va_list args);
extern int weft_vdprintf(int fd, const char *format, va_list args);
extern int weft_vdprintf_chk(int fd, int flag, const char *format, va_list args);
extern int weft_vfscanf(FILE *stream, const char *format, va_list args);
extern int weft_isoc99_vfscanf(FILE *stream, const char *format, va_list args);
extern int weft_isoc23_vfscanf(FILE *stream, const char *format, va_list args);
extern int weft_vscanf(const char *format, va_list args);
extern int weft_isoc99_vscanf(const char *format, va_list args);
extern int weft_isoc23_vscanf(const char *format, va_list args);
extern int weft_execl(int which, const char *path, char *const *argv, char *const *environment);

#define FORWARD(name, parameters, last, target) \
    int weft_c_##name parameters                \
    {                                           \
        va_list args;                           \
        va_start(args, last);                   \
        int result = target;                    \
        va_end(args);                           \
        return result;                          \
    }

FORWARD(fprintf, (FILE *stream, const char *format, ...), format, weft_vfprintf(stream, format, args))
FORWARD(fprintf_chk, (FILE *stream, int flag, const char *format, ...), format, weft_vfprintf_chk(stream, flag, format, args))
FORWARD(printf, (const char *format, ...), format, weft_vprintf(format, args))
FORWARD(printf_chk, (int flag, const char *format, ...), format, weft_vprintf_chk(flag, format, args))
FORWARD(dprintf, (int fd, const char *format, ...), format, weft_vdprintf(fd, format, args))
FORWARD(dprintf_chk, (int fd, int flag, const char *format, ...), format, weft_vdprintf_chk(fd, flag, format, args))
FORWARD(fscanf, (FILE *stream, const char *format, ...), format, weft_vfscanf(stream, format, args))
FORWARD(isoc99_fscanf, (FILE *stream, const char *format, ...), format, weft_isoc99_vfscanf(stream, format, args))
FORWARD(isoc23_fscanf, (FILE *stream, const char *format, ...), format, weft_isoc23_vfscanf(stream, format, args))
FORWARD(scanf, (const char *format, ...), format, weft_vscanf(format, args))
FORWARD(isoc99_scanf, (const char *format, ...), format, weft_isoc99_vscanf(format, args))
FORWARD(isoc23_scanf, (const char *format, ...), format, weft_isoc23_vscanf(format, args))

/* exec with a list: the arguments are counted, then laid out as an array on the stack, as the C library does itself. */
enum { EXECL, EXECLP, EXECLE };

#define EXEC_LIST(name, which, environment_argument)                                      \
    int weft_c_##name(const char *path, const char *first, ...)                           \
    {                                                                                     \
        size_t count = first ? 1 : 0;                                                     \
        va_list args;                                                                     \
        va_start(args, first);                                                            \
        while (first && va_arg(args, const char *))                                       \
            count++;                                                                      \
        va_end(args);                                                                     \
        char *argv[count + 1];                                                            \
        argv[0] = (char *)first;                                                          \
        va_start(args, first);                                                            \
        for (size_t i = 1; i <= count; i++)                                               \
            argv[i] = va_arg(args, char *);                                               \
        char *const *environment = (environment_argument) ? va_arg(args, char *const *) : NULL; \
        va_end(args);                                                                     \
        return weft_execl(which, path, argv, environment);                                \
    }

EXEC_LIST(execl, EXECL, 0)
EXEC_LIST(execlp, EXECLP, 0)
EXEC_LIST(execle, EXECLE, 1)
