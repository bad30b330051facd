/* Hazard: a path longer than PATH_MAX overflows fixed buffers.
 * Holds: ENAMETOOLONG as without tracing, one event each, and the program lives on. A path of exactly 4,095 bytes works. */
#include "hazard.h"

int main(void) {
    static char path[5001], longest[4096];
    memset(path, 'a', 5000);
    printf("open %d\n", open(path, O_RDONLY) == -1 && errno == ENAMETOOLONG);
    printf("fopen %d\n", fopen(path, "r") == NULL && errno == ENAMETOOLONG);
    struct stat metadata;
    printf("stat %d\n", stat(path, &metadata) == -1 && errno == ENAMETOOLONG);
    printf("unlink %d\n", unlink(path) == -1 && errno == ENAMETOOLONG);
    printf("rename %d\n", rename(path, path) == -1 && errno == ENAMETOOLONG);
    for (int i = 0; i < 4086; i += 2) memcpy(longest + i, "./", 2);
    strcpy(longest + 4086, "short.bin");
    work(longest, 10);
    return 0;
}
