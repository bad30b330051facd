// A runtime for the tests: tells on stderr what woven code calls, one word for each call.
//   +name begin   -name end   !name an exception passes   >name(…) enter   <name(…) leave
// Tokens are checked: an end belongs to a beginning of the same site that has not ended. RUNTIME_OFF=1 switches it off.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    const char *text;
    uint64_t known;
} name_t;

typedef struct {
    name_t name, category;
    const char *scope, *file;
    uint32_t line;
    uint8_t pointcut, is_async, flow, version;
    uint64_t reserved;
} woven_t;

_Static_assert(sizeof(woven_t) == 64, "the layout of weft_woven");

static struct {
    uint64_t magic;
    uint32_t size, on;
} table = {0, 0, 2};
void *weft_recorder_v1 = &table;

enum { MOST = 4096 };
static const woven_t *open_sites[MOST];
static uint64_t tokens;

__attribute__((constructor)) static void look(void) {
    if (getenv("RUNTIME_OFF")) table.on = 0;
}

static void check(const woven_t *site) {
    // Without -g nobody knows the line of a function that a rule names.
    if (site->version != 1 || !site->file || (!site->line && !getenv("RUNTIME_NO_LINES"))) {
        dprintf(2, "WRONG-SITE\n");
        abort();
    }
}

static void tell(const char *sign, const woven_t *site) { dprintf(2, "%s%s\n", sign, site->name.text); }

static void tell_all(const char *sign, const woven_t *site) {
    static const char *const pointcuts[] = {"before", "after", "around"};
    static const char *const flows[] = {"NA", "in", "out", "inout", "outin"};
    dprintf(2, "%s%s(%s%s,%s,%s)\n", sign, site->name.text, pointcuts[site->pointcut], site->is_async ? "_async" : "",
            site->scope ? site->scope : "NA", flows[site->flow]);
}

static uint64_t open_token(const woven_t *site) {
    uint64_t token = ++tokens;
    if (token >= MOST) abort();
    open_sites[token] = site;
    return token;
}

static void close_token(const woven_t *site, uint64_t token) {
    if (!token || token > tokens || open_sites[token] != site) dprintf(2, "WRONG-TOKEN\n");
    else open_sites[token] = 0;
}

uint64_t weft_weave_begin(woven_t *site) {
    check(site);
    tell("+", site);
    if (site->category.text) dprintf(2, "[%s]\n", site->category.text);
    return open_token(site);
}

void weft_weave_end(woven_t *site, uint64_t token) {
    tell("-", site);
    close_token(site, token);
}

void weft_weave_thrown(woven_t *site, uint64_t token) {
    tell("!", site);
    close_token(site, token);
}

uint64_t weft_weave_enter(woven_t *site) {
    check(site);
    tell_all(">", site);
    return site->pointcut == 2 ? open_token(site) : 0;
}

void weft_weave_leave(woven_t *site, uint64_t token) {
    tell_all("<", site);
    if (site->pointcut == 2) close_token(site, token);
}

static void tell_perfflow(const char *sign, int is_async, const char *function, const char *scope, const char *flow, const char *pcut) {
    dprintf(2, "%s%s(%d,%s,%s,%s)\n", sign, function, is_async, scope, flow, pcut);
}

void perfflow_weave_before(int is_async, const char *module, const char *function, const char *scope, const char *flow, const char *pcut) {
    tell_perfflow(module ? "B:" : "?", is_async, function, scope, flow, pcut);
}

void perfflow_weave_after(int is_async, const char *module, const char *function, const char *scope, const char *flow, const char *pcut) {
    tell_perfflow(module ? "E:" : "?", is_async, function, scope, flow, pcut);
}
