/*
 * Spans under a seccomp filter that kills for what a reading of the used processor time and memory would ask: getrusage, clock_gettime and
 * opening a file of /proc.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <weft.h>

#define KILL_ON(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void span(const char *name) {
    weft_site site = WEFT_SITE(name, "app");
    weft_span span;
    weft_begin(&span, &site);
    weft_end(&span);
}

int main(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL_ON(SYS_getrusage), KILL_ON(SYS_clock_gettime), KILL_ON(SYS_openat), KILL_ON(SYS_read),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    span("before");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 1;
    span("after");
    return 0;
}
