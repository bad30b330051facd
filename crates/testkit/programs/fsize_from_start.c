/* Hazard: the limit RLIMIT_FSIZE is there before the image starts, so even our first file may be too large.
 * Holds: no SIGXFSZ, the image is recorded. */
#include "hazard.h"

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        work("executed.bin", 100);
        return 0;
    }
    struct rlimit limit = {6400, 6400};
    MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    execl("/proc/self/exe", "fsize_from_start", "again", (char *)NULL);
    MUST(!"exec failed");
}
