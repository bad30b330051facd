/* Hazard: many children alive at once, more than any pool of prepared buffers holds.
 * Holds: every child's calls are kept. Usage: many_children COUNT */
#include "hazard.h"

int main(int argc, char **argv) {
    MUST(argc == 2);
    int count = atoi(argv[1]), go[2];
    char byte;
    MUST(pipe(go) == 0);
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            char name[32] = "child-";
            for (int digit = 8, n = i; digit >= 6; digit--, n /= 10) name[digit] = '0' + n % 10;
            close(go[1]);
            MUST(read(go[0], &byte, 1) == 0); /* all children wait here until the parent has started the last one */
            work(name, 10);
            _exit(0);
        }
    }
    MUST(close(go[1]) == 0);
    for (int i = 0, status; i < count; i++) MUST(wait(&status) > 0 && status == 0);
    return 0;
}
