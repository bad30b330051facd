/* Hazard: the same small program in builds that cannot be traced or that LD_PRELOAD would kill: static, musl, 32 bit,
 * AddressSanitizer, ThreadSanitizer, setuid.
 * Holds: it runs as untraced, and the ledger says why it was left alone. */
#include "hazard.h"

int main(void) {
    work("plain.bin", 100);
    (void)!write(1, "plain work done\n", 16);
    return 11;
}
