/* Hazard: Go programs and others make syscalls without libc; no hook can see them.
 * Holds: the program is not disturbed, libc calls beside them are recorded, and the ledger names the gap. */
#include "hazard.h"

static long raw(long number, long a, long b, long c) {
#if defined __x86_64__
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
#else
    return syscall(number, a, b, c);
#endif
}

int main(void) {
    static char block[1 << 16];
    int fd = open("raw.bin", O_CREAT | O_WRONLY, 0644);
    MUST(fd >= 0);
    for (int i = 0; i < 16; i++) MUST(raw(SYS_write, fd, (long)block, sizeof block) == sizeof block);
    for (int i = 0; i < 10; i++) MUST(write(fd, "0123456789", 10) == 10);
    for (int i = 0; i < 10; i++) MUST(syscall(SYS_write, fd, "0123456789", 10) == 10);
    MUST(close(fd) == 0);
    return 0;
}
