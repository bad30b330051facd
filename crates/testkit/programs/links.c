/* Hazard: calls with two paths, with and without directory descriptors.
 * Holds: each is one event that names the file; results are unchanged. */
#include "hazard.h"

int main(void) {
    char target[64] = "";
    work("file", 1);
    int here = open(".", O_RDONLY);
    MUST(here >= 0);
    MUST(link("file", "hard") == 0 && linkat(here, "file", here, "hard-at", 0) == 0);
    MUST(symlink("file", "soft") == 0 && symlinkat("file", here, "soft-at") == 0);
    MUST(readlink("soft", target, sizeof target) == 4 && !memcmp(target, "file", 4));
    MUST(readlinkat(here, "soft-at", target, sizeof target) == 4);
    MUST(rename("hard", "renamed") == 0 && renameat(here, "hard-at", here, "renamed-at") == 0);
    MUST(renameat2(here, "renamed", here, "renamed-at", RENAME_NOREPLACE) == -1 && errno == EEXIST);
    MUST(unlink("renamed") == 0 && unlinkat(here, "renamed-at", 0) == 0 && remove("soft") == 0);
    MUST(unlink("missing") == -1 && errno == ENOENT);
    char *resolved = realpath("soft-at", NULL);
    MUST(resolved && !strcmp(strrchr(resolved, '/'), "/file"));
    free(resolved);
    return 0;
}
