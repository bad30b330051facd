/*
 * The hooks of -finstrument-functions with the same runtime as woven code: what it takes to make events of them. A hook knows only an
 * address, so it looks its function up, and it keeps a stack for each thread, because the hook at the end is told nothing of the one at the
 * beginning.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <weft.h>

enum { FUNCTIONS = 1024, DEEPEST = 4096 };

static struct {
    void *address;
    weft_woven function;
} known[FUNCTIONS];

static __thread struct {
    weft_woven *function;
    uint64_t token;
} open[DEEPEST];
static __thread unsigned depth;

#define HOOK __attribute__((no_instrument_function))

void HOOK __cyg_profile_func_enter(void *function, void *caller);
void HOOK __cyg_profile_func_exit(void *function, void *caller);

HOOK static weft_woven *find(void *address) {
    for (size_t at = (size_t)address / 16 % FUNCTIONS;; at = (at + 1) % FUNCTIONS) {
        void *there = __atomic_load_n(&known[at].address, __ATOMIC_ACQUIRE);
        if (there == address) return &known[at].function;
        if (!there) {
            Dl_info info;
            int is_known = dladdr(address, &info) && info.dli_sname;
            known[at].function.site.name.text = is_known ? info.dli_sname : "unknown";
            known[at].function.pointcut = 2;
            __atomic_store_n(&known[at].address, address, __ATOMIC_RELEASE);
            return &known[at].function;
        }
    }
}

void __cyg_profile_func_enter(void *function, void *caller) {
    (void)caller;
    unsigned at = depth++;
    if (at >= DEEPEST) return;
    open[at].token = 0;
    if (!weft_is_on()) return;
    open[at].function = find(function);
    open[at].token = weft_weave_begin(open[at].function);
}

void __cyg_profile_func_exit(void *function, void *caller) {
    (void)function;
    (void)caller;
    if (depth == 0 || --depth >= DEEPEST || !open[depth].token) return;
    weft_weave_end(open[depth].function, open[depth].token);
}
