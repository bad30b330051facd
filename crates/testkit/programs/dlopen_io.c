/* Hazard: a library that does I/O is loaded at run time, used from a thread, and unloaded.
 * Holds: its calls are recorded like the program's own; unloading disturbs nothing. Usage: dlopen_io LIBRARY */
#include "hazard.h"
#include <dlfcn.h>

static void *in_thread(void *function) {
    ((void (*)(void))function)();
    return NULL;
}

int main(int argc, char **argv) {
    MUST(argc == 2);
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(argv[1], round == 1 ? RTLD_LAZY | RTLD_GLOBAL : RTLD_NOW | RTLD_LOCAL);
        MUST(library);
        void *function = dlsym(library, "library_work");
        MUST(function);
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, in_thread, function) == 0 && pthread_join(thread, NULL) == 0);
        MUST(dlclose(library) == 0);
    }
    return 0;
}
