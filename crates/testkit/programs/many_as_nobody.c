/* Hazard: a program of another user makes more calls than its first arena has room for, and may neither make files in the live directory nor open
 * those of the user it was.
 * Holds: in a shared run nothing is lost, however it became another user.
 * Usage: many_as_nobody drop|limited|sandbox|exec; the last by itself with "go". */
#include "hazard.h"
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

/* All threads are there at once, so each needs a segment: an arena has 28 at first. */
enum { THREADS = 50, MANY = 10000, INSIDE = 40, FEWER = 1000, STACK = 64 << 10 };

#define KILL_ON(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void enter_sandbox(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL_ON(SYS_openat), KILL_ON(SYS_open), KILL_ON(SYS_mmap), KILL_ON(SYS_fallocate),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static int fd, calls;
static pthread_barrier_t together;

static void *reads(void *unused) {
    char byte;
    MUST(pread(fd, &byte, 1, 0) == 1);
    pthread_barrier_wait(&together);
    for (int i = 1; i < calls; i++) MUST(pread(fd, &byte, 1, i % 8) == 1);
    return unused;
}

static void in_threads(int count, int each, char *stacks) {
    pthread_t threads[THREADS];
    calls = each;
    MUST(pthread_barrier_init(&together, NULL, count) == 0);
    for (int i = 0; i < count; i++) {
        pthread_attr_t attributes;
        MUST(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stacks + i * STACK, STACK) == 0);
        MUST(pthread_create(&threads[i], &attributes, reads, NULL) == 0);
    }
    for (int i = 0; i < count; i++) MUST(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv) {
    MUST(argc == 2);
    const char *how = argv[1];
    char *stacks = mmap(NULL, THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(stacks != MAP_FAILED);
    fd = open("input", O_RDONLY);
    MUST(fd >= 0);
    if (strcmp(how, "go"))
        MUST(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    if (!strcmp(how, "exec")) {
        execl(argv[0], argv[0], "go", (char *)NULL);
        MUST(!"exec failed");
    }
    if (!strcmp(how, "limited")) {
        struct rlimit limit = {1 << 20, 1 << 20};
        MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    if (strcmp(how, "sandbox")) {
        in_threads(THREADS, strcmp(how, "limited") ? MANY : FEWER, stacks);
    } else {
        enter_sandbox();
        in_threads(INSIDE, FEWER, stacks);
    }
    return 0;
}
