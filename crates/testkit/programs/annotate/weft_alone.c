/*
 * Records itself: weft_alone DIRECTORY ENDING. A span with a write in it, then the ending: return, exit, _exit, kill, stop, again (stop and
 * start once more), fork (a child with a span of its own), late (nothing before the start is recorded), joins (starts under
 * `weft run`).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft.h>

static void work(const char *name, const char *path) {
    weft_site site = WEFT_SITE(name, "app");
    weft_span span;
    weft_begin(&span, &site);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (write(fd, "0123456789", 10) != 10) exit(1);
    close(fd);
    weft_end(&span);
}

static void start(const char *directory) {
    const char *why = weft_start(directory);
    if (why) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
    if (!weft_is_on()) exit(3);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *ending = argv[2];
    work("before", "before.bin");
    start(argv[1]);
    start(argv[1]);
    work("during", "during.bin");
    if (strcmp(ending, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            work("in child", "child.bin");
            return 0;
        }
        waitpid(child, NULL, 0);
    }
    if (strcmp(ending, "stop") == 0 || strcmp(ending, "again") == 0) {
        weft_stop();
        if (weft_is_on()) return 4;
        work("after", "after.bin");
    }
    if (strcmp(ending, "again") == 0) {
        start(argv[1]);
        work("again", "again.bin");
    }
    if (strcmp(ending, "exit") == 0) exit(5);
    if (strcmp(ending, "_exit") == 0) _exit(6);
    if (strcmp(ending, "kill") == 0) raise(SIGKILL);
    return 0;
}
