/* Hazard: folded character calls live in a sum that is not yet an event when the process ends without warning.
 * Holds: the sum is kept. Usage: characters_at_death _exit|kill|exec */
#include "hazard.h"

int main(int argc, char **argv) {
    MUST(argc == 2);
    FILE *out = fopen("letters.txt", "w");
    MUST(out && setvbuf(out, NULL, _IONBF, 0) == 0);
    for (int i = 0; i < 5000; i++) MUST(putc('x', out) == 'x');
    if (!strcmp(argv[1], "_exit")) _exit(0);
    if (!strcmp(argv[1], "kill")) raise(SIGKILL);
    if (!strcmp(argv[1], "exec")) execl("/bin/true", "true", (char *)NULL);
    MUST(!"unknown way to end");
}
