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

static pthread_barrier_t inside;

/* Sandboxed processes have threads too, more than an arena has segments at first. */
enum { INSIDE = 40, STACK = 64 << 10 };

static void *in_thread(void *unused) {
    (void)unused;
    writes(25);
    pthread_barrier_wait(&inside);
    return NULL;
}

static pthread_barrier_t together;

static void *one_of_many(void *unused) {
    (void)unused;
    work("many.bin", 1);
    pthread_barrier_wait(&together);
    return NULL;
}

static void many_threads(void) {
    enum { MANY = 100 };
    pthread_t threads[MANY];
    MUST(pthread_barrier_init(&together, NULL, MANY) == 0);
    for (int i = 0; i < MANY; i++) MUST(pthread_create(&threads[i], NULL, one_of_many, NULL) == 0);
    for (int i = 0; i < MANY; i++) MUST(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
    static char stacks[INSIDE][STACK] __attribute__((aligned(4096)));
    pthread_t threads[INSIDE];
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
    /* To ask whether there are filters restricts nobody: more threads than the arena has segments need room that is made now. */
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 && errno == EFAULT);
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
    many_threads();
    fd = open("sandboxed.bin", O_CREAT | O_WRONLY | O_APPEND, 0644);
    MUST(fd >= 0);
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    writes(20000); /* several segments: buffers must be exchanged without a forbidden call */
    MUST(pthread_barrier_init(&inside, NULL, INSIDE) == 0 && pthread_attr_init(&attributes) == 0);
    for (int i = 0; i < INSIDE; i++) {
        MUST(pthread_attr_setstack(&attributes, stacks[i], STACK) == 0);
        MUST(pthread_create(&threads[i], &attributes, in_thread, NULL) == 0);
    }
    for (int i = 0; i < INSIDE; i++) MUST(pthread_join(threads[i], NULL) == 0);
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
