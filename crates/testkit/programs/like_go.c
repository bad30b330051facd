/* Hazard: a Go program that is linked to the C library takes our library, and yet makes all its system calls itself.
 * Holds: the program is not disturbed, and the ledger says that it is a Go program. Go's linker leaves sections that tell. */
#include "hazard.h"

__attribute__((section(".go.buildinfo"), used)) static const char build_info[32] = "\xff Go buildinf:";

int main(void) {
    static char block[1 << 16];
    for (int i = 0; i < 16; i++) {
#if defined __x86_64__
        long result, fd = 1;
        __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_write), "D"(fd), "S"(block), "d"(sizeof block) : "rcx", "r11", "memory");
        MUST(result == sizeof block);
#else
        MUST(syscall(SYS_write, 1, block, sizeof block) == sizeof block);
#endif
    }
    return 0;
}
