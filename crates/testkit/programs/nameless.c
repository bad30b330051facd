/* Hazard: descriptors that no path names: memfd, O_TMPFILE, pipes, socket pairs, eventfd.
 * Holds: their I/O is counted under a name that says what they are, and never under a file's name. */
#include "hazard.h"
#include <sys/eventfd.h>
#include <sys/socket.h>

static void there_and_back(int out, int in) {
    char buffer[10];
    for (int i = 0; i < 10; i++) MUST(write(out, "0123456789", 10) == 10 && read(in, buffer, 10) == 10);
}

int main(void) {
    int ends[2], pair[2], ends2[2];
    char buffer[10];
    int file = open("file.bin", O_CREAT | O_RDWR, 0644);
    MUST(file >= 0 && close(file) == 0); /* its number is the memfd's now */
    int memory = memfd_create("scratch", 0);
    MUST(memory == file);
    for (int i = 0; i < 10; i++) MUST(pwrite(memory, "0123456789", 10, 0) == 10 && pread(memory, buffer, 10, 0) == 10);
    MUST(pipe(ends) == 0);
    there_and_back(ends[1], ends[0]);
    MUST(pipe2(ends2, O_CLOEXEC) == 0);
    there_and_back(ends2[1], ends2[0]);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    there_and_back(pair[0], pair[1]);
    int temporary = open(".", O_TMPFILE | O_RDWR, 0600);
    MUST(temporary >= 0);
    for (int i = 0; i < 10; i++) MUST(pwrite(temporary, "0123456789", 10, 0) == 10);
    int event = eventfd(0, 0);
    uint64_t one = 1;
    MUST(event >= 0 && write(event, &one, 8) == 8 && read(event, &one, 8) == 8);
    return 0;
}
