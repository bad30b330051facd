/*
 * Two spans, the second one after the program has loaded the libraries that its arguments name: what a program that computes on a GPU does.
 * What must be in the trace is said in tests/suite/annotate_c/weft.rs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <weft.h>

int main(int argc, char **argv) {
    { WEFT_SCOPE("before"); }
    for (int i = 1; i < argc; i++) {
        if (!dlopen(argv[i], RTLD_NOW)) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    }
    { WEFT_SCOPE("after"); }
    return 0;
}
