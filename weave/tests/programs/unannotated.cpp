// Not a word about weaving in here: rules and -weft-weave-all do it.
#include <cstring>

namespace codec {
__attribute__((noinline)) int step(int a) { return a + 1; }
__attribute__((noinline)) int decode(int a) {
    for (int i = 0; i < 3; ++i) a += step(a) * (a % 7) - (a ^ i) + (a << 2);
    return a;
}
__attribute__((noinline)) int decode_fast(int a) { return a * 2; }
}  // namespace codec

struct Initialised {
    Initialised() { value = codec::decode_fast(4); }
    int value;
} global;

__attribute__((noinline, no_profile_instrument_function)) int never_woven(int a) {
    for (int i = 0; i < 3; ++i) a += (a % 7) - (a ^ i) + (a << 2) + (a * 5) - (a / 3);
    return a;
}

__attribute__((noinline, annotate("@critical_path(pointcut='before')"))) int annotated(int a) { return a; }

int main() {
    volatile int value = codec::decode(1) + never_woven(2) + annotated(3);
    return value == 0 ? 1 : 0;
}
