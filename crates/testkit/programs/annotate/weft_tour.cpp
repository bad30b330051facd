// weft.hpp: RAII, exceptions, arguments of every type. What must be in the trace is said in tests/suite/annotate_c/weft.rs.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#if __cplusplus >= 201703L
#include <string_view>
#endif
#include <weft.hpp>

enum class Colour : unsigned char { red = 2 };

template <class T>
T twice(T value) {
    WEFT_FUNCTION();
    return value + value;
}

struct Model {
    std::string name;
    explicit Model(const char *given) : name(given) { WEFT_FUNCTION_CAT("made"); }
    void train(int epochs) const {
        WEFT_SPAN(span, "train");
        span.arg("model", name).arg("epochs", epochs);
    }
};

static void throws(int depth) {
    WEFT_SPAN(span, "throws");
    span.arg("depth", depth);
    if (depth == 0) throw std::runtime_error("no");
    throws(depth - 1);
}

struct TracesWhileUnwinding {
    ~TracesWhileUnwinding() { WEFT_SCOPE("in destructor"); }
};

static void values() {
    WEFT_SPAN_CAT(span, "values", "types");
    const std::string text("a string");
    char array[4] = "abc";
    span.arg("bool", true).arg("char", 'c').arg("short", static_cast<short>(-3)).arg("unsigned", 3u);
    span.arg("most", ~0ull).arg("least", static_cast<long long>(INT64_MIN)).arg("float", 1.5f).arg("enum", Colour::red);
    span.arg("literal", "text").arg("string", text).arg("array", array).arg("null", nullptr).arg("size", text.size());
#if __cplusplus >= 201703L
    span.arg("view", std::string_view(text).substr(2)).arg("empty", std::string_view());
#else
    span.arg("view", text.substr(2)).arg("empty", std::string());
#endif
}

int main() {
    values();
    weft::Instant("happened").arg("n", 1);
    weft::Counter("queue").arg("length", 3).arg("free", 0.5);
    weft::Meta("model", "metadata").arg("name", "unet3d");
    twice(2);
    twice(1.5);
    Model("unet").train(3);
    try {
        throws(1);
    } catch (const std::exception &) {
        WEFT_SCOPE("caught");
    }
    try {
        TracesWhileUnwinding last;
        throw 1;
    } catch (int) {
    }
    {
        weft::Span span(std::string("made at run time").c_str(), "made");
        span.end();
        span.arg("late", 1);
    }
    {
        WEFT_SPAN(span, "by functions");
        weft_int(span.get(), "n", 4);
    }
    std::puts(weft::is_on() ? "" : "");
    return 0;
}
