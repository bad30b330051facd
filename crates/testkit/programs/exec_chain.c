/* Hazard: exec keeps the pid, so the images of one process can overwrite each other's records.
 * Holds: five images, each with its own work, end in _exit; every image's calls are kept.
 * Usage: exec_chain [LEFT] */
#include "hazard.h"

int main(int argc, char **argv) {
    int left = argc > 1 ? atoi(argv[1]) : 4;
    char name[16] = {'i', 'm', 'a', 'g', 'e', '0' + left, 0}, digit[2] = {'0' + left - 1, 0};
    work(name, 100);
    if (left == 0) _exit(0);
    execl("/proc/self/exe", "exec_chain", digit, (char *)NULL);
    MUST(!"exec failed");
}
