/* A plug-in that calls a function of its host which happens to have a name of libc's, for late.c; built with -shared. */
#include "hazard.h"

long host_sum(long, long) __asm__("sync");
void library_work(void) { MUST(host_sum(3, 4) == 7); }
