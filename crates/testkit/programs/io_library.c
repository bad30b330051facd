/* A library with I/O in it, for dlopen_io.c: built with -shared. */
#include "hazard.h"

void library_work(void) { work("library.bin", 100); }
__attribute__((constructor)) static void loaded(void) { work("loaded.bin", 10); }
__attribute__((destructor)) static void unloaded(void) { work("unloaded.bin", 10); }
