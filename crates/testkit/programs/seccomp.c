/* Hazard: a sandboxed process is killed by the kernel for any open, openat or mmap, ours included.
 * Holds: it lives, its I/O on open descriptors is recorded, also by threads' and children's that started after the filter. */
#include "hazard.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define KILL_ON(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static int fd;

static void writes(int n) {
    for (int i = 0; i < n; i++) MUST(write(fd, "0123456789", 10) == 10);
}

static void *in_thread(void *unused) {
    (void)unused;
    writes(1000);
    return NULL;
}

int main(void) {
    static char stack[256 << 10] __attribute__((aligned(4096)));
    pthread_t thread;
    pthread_attr_t attributes;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL_ON(SYS_open), KILL_ON(SYS_openat), KILL_ON(SYS_mmap), KILL_ON(SYS_ftruncate), KILL_ON(SYS_socket),
        KILL_ON(SYS_fallocate), KILL_ON(SYS_memfd_create), KILL_ON(SYS_unlink), KILL_ON(SYS_madvise),
        KILL_ON(SYS_readlink), KILL_ON(SYS_flock), KILL_ON(SYS_statfs), KILL_ON(SYS_getcwd), KILL_ON(SYS_gettid),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    work("before.bin", 100);
    fd = open("sandboxed.bin", O_CREAT | O_WRONLY | O_APPEND, 0644);
    MUST(fd >= 0);
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    writes(20000); /* several segments: buffers must be exchanged without a forbidden call */
    MUST(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, sizeof stack) == 0);
    MUST(pthread_create(&thread, &attributes, in_thread, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        writes(1000);
        _exit(0);
    }
    reap(child, 0);
    writes(1000);
    return 0;
}
