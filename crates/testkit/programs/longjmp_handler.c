/* Hazard: a handler leaves by siglongjmp, so the interrupted call's wrapper never finishes.
 * Holds: the program and the recording go on; calls completed before and after are exact. */
#include "hazard.h"

static sigjmp_buf back;
static void handler(int number) {
    (void)number;
    siglongjmp(back, 1);
}

int main(void) {
    int ends[2];
    volatile int jumps = 0;
    char byte;
    struct sigaction action = {.sa_handler = handler};
    MUST(pipe(ends) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    work("before.bin", 100);
    if (sigsetjmp(back, 1)) jumps++;
    if (jumps < 50) {
        ualarm(1000, 0);
        (void)!read(ends[0], &byte, 1); /* never returns: nobody writes */
        MUST(!"read came back");
    }
    work("after.bin", 100);
    printf("jumps %d\n", jumps);
    return 0;
}
