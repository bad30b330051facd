/* Shared by all hazard programs: fail loudly, and one standard piece of work whose calls can be counted.
 * MUST reports with write(2) only when something is wrong, so a passing program makes no call that is not in its text. */
#ifndef HAZARD_H
#define HAZARD_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)
#define MUST(condition) \
    do { \
        if (!(condition)) \
            must_failed(__FILE__ ":" STRINGIFY(__LINE__) ": " #condition, errno); \
    } while (0)

static inline void must_failed(const char *what, int error) {
    const char *reason = strerror(error);
    (void)!write(2, what, strlen(what));
    (void)!write(2, ": ", 2);
    (void)!write(2, reason, strlen(reason));
    (void)!write(2, "\n", 1);
    _exit(99);
}

/* The standard work: 1 open, n pwrite of 64 bytes at offsets 0, 64, 128 …, 1 close. */
static inline void work(const char *path, int n) {
    char block[64];
    memset(block, 'w', sizeof block);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    MUST(fd >= 0);
    for (int i = 0; i < n; i++)
        MUST(pwrite(fd, block, sizeof block, (off_t)i * 64) == 64);
    MUST(close(fd) == 0);
}

/* Waits for one child and insists on how it ended: an exit code, or 128 + the signal that killed it. */
static inline void reap(pid_t child, int expected) {
    int status;
    MUST(waitpid(child, &status, 0) == child);
    int got = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    MUST(got == expected);
}

#endif
