/* Hazard: every exec form must find our variables again in the new image, and keep the environment the caller chose.
 * Holds: the new image prints exactly the caller's environment, does its work, and is traced.
 * Usage: exec_forms execv|execve|execvp|execvpe|fexecve|execve_empty|clearenv */
#include "hazard.h"

extern char **environ;

int main(int argc, char **argv) {
    MUST(argc == 2);
    const char *how = argv[1];
    char *const next[] = {"exec_forms", "child", NULL}, *const one[] = {"CHOSEN=yes", NULL}, *const none[] = {NULL};
    if (!strcmp(how, "child")) {
        work("child.bin", 50);
        printf("CHOSEN=%s HOME=%s\n", getenv("CHOSEN"), getenv("HOME"));
        return 9;
    }
    work("first.bin", 50);
    if (!strcmp(how, "execv")) execv("/proc/self/exe", next);
    if (!strcmp(how, "execve")) execve("/proc/self/exe", next, one);
    if (!strcmp(how, "execvp")) execvp("/proc/self/exe", next);
    if (!strcmp(how, "execvpe")) execvpe("/proc/self/exe", next, one);
    if (!strcmp(how, "fexecve")) fexecve(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), next, one);
    if (!strcmp(how, "execve_empty")) execve("/proc/self/exe", next, none);
    if (!strcmp(how, "clearenv")) {
        MUST(clearenv() == 0);
        execv("/proc/self/exe", next);
    }
    MUST(!"exec failed");
}
