/* Hazard: execl, execlp and execle are truly variadic; a wrapper that forwards a fixed number of arguments breaks them.
 * Holds: all arguments (8, and 40: more than any register or small array holds) and execle's environment arrive.
 * Usage: execl_args execl|execlp|execle|many */
#include "hazard.h"

int main(int argc, char **argv) {
    MUST(argc == 2);
    char *const environment[] = {"GREETING=hello from execle", NULL};
    if (!strcmp(argv[1], "execl"))
        execl("/bin/echo", "echo", "a", "b", "c", "d", "e", "f", "g", "h", (char *)NULL);
    if (!strcmp(argv[1], "execlp"))
        execlp("echo", "echo", "a", "b", "c", "d", "e", "f", "g", "h", (char *)NULL);
    if (!strcmp(argv[1], "execle"))
        execle("/bin/sh", "sh", "-c", "echo \"$GREETING $0 $1 $2 $3 $4 $5\"", "a", "b", "c", "d", "e", "f", (char *)NULL,
               environment);
    if (!strcmp(argv[1], "many"))
        execl("/bin/echo", "echo", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16",
              "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34",
              "35", "36", "37", "38", "39", "40", (char *)NULL);
    MUST(!"exec failed");
}
