/* Not a hazard: what recovery once did, so that the mutator of run directories can show that it would be found.
 * Reads run.d/NAME.live of a run and removes, with all that is in it, the directory that "path" names if it holds no `ctl`.
 * It removes nothing outside the sandbox that holds HOME.
 * Usage: old_recovery VERB RUN */
#include "hazard.h"
#include <dirent.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>

static int drop(const char *path, const struct stat *metadata, int kind, struct FTW *place) {
    (void)metadata, (void)kind, (void)place;
    return remove(path);
}

static void recover(const char *pointer) {
    static char text[1 << 16];
    char path[PATH_MAX], ctl[PATH_MAX + 8], sandbox[PATH_MAX], real[PATH_MAX];
    int fd = open(pointer, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *at = strstr(text, "\"path\"");
    if (at == NULL || sscanf(at, "\"path\" : \"%4095[^\"]\"", path) != 1)
        return;
    snprintf(ctl, sizeof ctl, "%s/ctl", path);
    snprintf(sandbox, sizeof sandbox, "%s", getenv("HOME"));
    const char *home = dirname(sandbox);
    if (access(ctl, F_OK) != 0 && realpath(path, real) != NULL && strncmp(real, home, strlen(home)) == 0)
        nftw(real, drop, 16, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv) {
    MUST(argc >= 3 && getenv("HOME") != NULL);
    char records[PATH_MAX], pointer[2 * PATH_MAX];
    snprintf(records, sizeof records, "%s/run.d", argv[argc - 1]);
    DIR *directory = opendir(records);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        const char *end = strrchr(entry->d_name, '.');
        if (end != NULL && strcmp(end, ".live") == 0) {
            snprintf(pointer, sizeof pointer, "%s/%s", records, entry->d_name);
            recover(pointer);
        }
    }
    return 0;
}
