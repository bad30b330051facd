/* Hazard: directories are read through streams and callbacks.
 * Holds: all entries arrive; calls are exact. The directory holds ., .. and ten files. */
#include "hazard.h"
#include <dirent.h>

static int count(DIR *directory) {
    int entries = 0;
    while (readdir(directory)) entries++;
    return entries;
}
static int no_dots(const struct dirent *entry) { return entry->d_name[0] != '.'; }

int main(void) {
    char name[] = "dir/0";
    MUST(mkdir("dir", 0755) == 0 && mkdir("dir", 0755) == -1 && errno == EEXIST);
    for (; name[4] <= '9'; name[4]++) work(name, 0);
    DIR *directory = opendir("dir");
    MUST(directory && count(directory) == 12);
    rewinddir(directory);
    MUST(count(directory) == 12 && closedir(directory) == 0);
    int fd = open("dir", O_RDONLY | O_DIRECTORY);
    MUST(fd >= 0 && (directory = fdopendir(fd)) && count(directory) == 12 && closedir(directory) == 0);
    struct dirent **list;
    int found = scandir("dir", &list, no_dots, alphasort);
    for (int i = 0; i < found; i++) printf("%s\n", list[i]->d_name);
    MUST(opendir("missing") == NULL && errno == ENOENT);
    MUST(mkdir("empty", 0755) == 0 && rmdir("empty") == 0 && rmdir("dir") == -1 && errno == ENOTEMPTY);
    return 0;
}
