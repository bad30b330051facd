/* Starts a program many times, one after the other: spawn COUNT PROGRAM
 * The difference between two counts is what one more process costs. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: spawn COUNT PROGRAM\n");
        return 2;
    }
    char *arguments[] = {argv[2], NULL};
    for (long count = atol(argv[1]); count > 0; count--) {
        pid_t child;
        int status;
        if (posix_spawn(&child, argv[2], NULL, NULL, arguments, environ) != 0) return 1;
        if (waitpid(child, &status, 0) != child || status != 0) return 1;
    }
    return 0;
}
