/* Hazard: posix_spawn shares memory with the parent (CLONE_VM|CLONE_VFORK inside glibc) and runs file actions.
 * Holds: parent and spawned children are traced, with the caller's, an explicit, and an empty environment. */
#include "hazard.h"
#include <spawn.h>

extern char **environ;

int main(int argc, char **argv) {
    if (argc > 1) {
        work(argv[1], 100);
        return write(3, "from the child\n", 15) == 15 ? 8 : 1;
    }
    char *const none[] = {NULL}, *const one[] = {"ONLY=this", NULL};
    char *const first[] = {"spawn", "first.bin", NULL}, *const second[] = {"spawn", "second.bin", NULL},
               *const third[] = {"spawn", "third.bin", NULL}, *const missing[] = {"missing", NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    work("before.bin", 100);
    MUST(posix_spawn_file_actions_init(&actions) == 0);
    MUST(posix_spawn_file_actions_addopen(&actions, 3, "actions.txt", O_CREAT | O_WRONLY | O_APPEND, 0644) == 0);
    MUST(posix_spawn(&child, "/proc/self/exe", &actions, NULL, first, environ) == 0);
    reap(child, 8);
    MUST(posix_spawn(&child, "/proc/self/exe", &actions, NULL, second, none) == 0);
    reap(child, 8);
    MUST(posix_spawnp(&child, "/proc/self/exe", &actions, NULL, third, one) == 0);
    reap(child, 8);
    MUST(posix_spawnp(&child, "no-such-program-anywhere", NULL, NULL, missing, environ) == ENOENT);
    work("after.bin", 100);
    return 0;
}
