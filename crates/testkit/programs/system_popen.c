/* Hazard: system and popen start shells from inside glibc, where no hook of fork or exec is on the way.
 * Holds: the shells and their children behave as before and are traced; popen's pipe is attributed to a pipe. */
#include "hazard.h"

int main(void) {
    char line[64];
    MUST(system("exit 3") == 3 << 8);
    FILE *in = popen("echo one; echo two; exit 4", "r");
    MUST(in && fgets(line, sizeof line, in) && !strcmp(line, "one\n"));
    MUST(fgets(line, sizeof line, in) && !strcmp(line, "two\n") && !fgets(line, sizeof line, in));
    MUST(pclose(in) == 4 << 8);
    FILE *out = popen("cat", "w");
    MUST(out && fputs("through the pipe\n", out) >= 0 && pclose(out) == 0);
    return 0;
}
