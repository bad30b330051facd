/* Hazard: a signal arrives while a call is being recorded, and its handler does I/O itself.
 * Holds: the calls of main and of the handler are all recorded; their number is known exactly, because the handler
 * appends one byte per call and stops after 500. */
#include "hazard.h"

static volatile int handled;
static int log_fd;

static void handler(int number) {
    (void)number;
    int saved = errno;
    if (handled < 500) {
        handled++;
        MUST(write(log_fd, "h", 1) == 1);
    }
    errno = saved;
}

int main(void) {
    char byte;
    log_fd = open("handler.log", O_CREAT | O_WRONLY | O_APPEND, 0644);
    work("data.bin", 1);
    int fd = open("data.bin", O_RDONLY);
    MUST(log_fd >= 0 && fd >= 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    int calls = 0;
    while (handled < 500 || calls < 20000) {
        MUST(pread(fd, &byte, 1, 0) == 1);
        calls++;
    }
    MUST(setitimer(ITIMER_REAL, &never, NULL) == 0);
    uint32_t truth = (uint32_t)calls;
    int out = syscall(SYS_creat, "calls", 0644); /* raw: the truth file is not part of the counted work */
    MUST(out >= 0 && syscall(SYS_write, out, &truth, 4) == 4);
    return 0;
}
