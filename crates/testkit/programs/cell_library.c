/* A library that carries a recorder of its own, as far as others can see, for late.c; built with -shared. */
#include "hazard.h"

struct { char magic[8]; uint32_t size, on; char rest[1000]; } own = {"weftTBL1", sizeof own, 0, ""};
void *weft_recorder_v1 = &own;
