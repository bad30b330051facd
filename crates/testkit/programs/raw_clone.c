/* Hazard: clone by raw syscall runs no atfork handler, so the child still believes it is its parent.
 * Holds: the child never writes into the parent's records; both works are kept.
 * Usage: raw_clone fork|vm_vfork */
#include "hazard.h"

static int shared_memory_child(void *unused) {
    (void)unused;
    work("child.bin", 1000);
    _exit(4);
}

int main(int argc, char **argv) {
    MUST(argc == 2);
    work("before.bin", 1000);
    pid_t child;
    if (!strcmp(argv[1], "vm_vfork")) {
        char *stack = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(stack != MAP_FAILED);
        child = clone(shared_memory_child, stack + (1 << 20), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    } else {
        child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) shared_memory_child(NULL);
    }
    MUST(child > 0);
    reap(child, 4);
    work("after.bin", 1000);
    return 0;
}
