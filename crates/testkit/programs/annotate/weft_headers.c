/* weft.h in a program that may be C or C++: the macros, and an exception that passes through a scope. */
#include <weft.h>

static int scoped(int n) {
    WEFT_FUNCTION();
    WEFT_SPAN(span, "span");
    weft_int(&span, "n", n);
    WEFT_SCOPE_CAT("scope", "category");
    if (n > 1) WEFT_INSTANT("more");
    else WEFT_COUNTER("less", "n", n);
    WEFT_META("model", "name", "unet3d");
#ifdef __cplusplus
    if (n > 1) throw n;
#endif
    return n;
}

int main(void) {
#ifdef __cplusplus
    try {
        scoped(2);
        return 1;
    } catch (int) {
    }
#endif
    return scoped(0);
}
