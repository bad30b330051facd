/* A library that finds another one beside itself, through the run path of the object that calls dlopen; built with -shared. */
#include "hazard.h"
#include <dlfcn.h>

void library_work(void) {
    void *inner = dlopen("libinner.so", RTLD_NOW);
    MUST(inner);
    ((void (*)(void))dlsym(inner, "library_work"))();
}
