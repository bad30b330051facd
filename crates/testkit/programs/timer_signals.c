/* Hazard: a 1 kHz timer with SA_RESTART interrupts blocking calls all the time.
 * Holds: no call fails with EINTR that would not fail untraced, and the counts are exact. */
#include "hazard.h"

static void nothing(int number) { (void)number; }

int main(void) {
    int ends[2];
    char block[100];
    memset(block, 't', sizeof block);
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 1000}, {0, 1000}};
    MUST(pipe(ends) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 50; i++) {
            usleep(2000);
            MUST(write(ends[1], block, 100) == 100);
        }
        _exit(0);
    }
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < 50; i++) MUST(read(ends[0], block, 100) == 100);
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    work("data.bin", 20000);
    return 0;
}
