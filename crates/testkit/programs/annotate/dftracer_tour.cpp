// Every C++ macro of dftracer/dftracer.h, and the class behind them. What must be in the trace is said in
// tests/suite/annotate_c/dftracer.rs.
#include <dftracer/dftracer.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

static int function(int n) {
    DFTRACER_CPP_FUNCTION();
    DFTRACER_CPP_FUNCTION_UPDATE("n", n);
    DFTRACER_CPP_FUNCTION_UPDATE("text", "with \"quotes\"");
    DFTRACER_CPP_FUNCTION_UPDATE_TYPE("value", 2, MetadataType::MT_VALUE);
    DFTRACER_CPP_FUNCTION_UPDATE_TYPE("ignored", "told all the same", MT_IGNORE);
    if (n == 0) throw std::runtime_error("leaves");
    return n;
}

static void regions() {
    DFTRACER_CPP_REGION(block)
    DFTRACER_CPP_REGION_UPDATE(block, "n", 1);
    DFTRACER_CPP_REGION_UPDATE_TYPE(block, "text", "b", MT_KEY);
    DFTRACER_CPP_REGION_START(started);
    DFTRACER_CPP_REGION_DYN_UPDATE(started, "n", 2);
    DFTRACER_CPP_REGION_DYN_UPDATE_TYPE(started, "text", "s", MT_VALUE);
    DFTRACER_CPP_REGION_END(started);
    DFTRACER_CPP_METADATA(meta, "key", "value");
}

static void by_hand() {
    DFTracer tracer(std::string("by hand").c_str(), "OTHER");
    tracer.update("n", 3);
    tracer.finalize();
    tracer.update("late", 4);
    tracer.finalize();
    DFTracer moved = DFTracer("moved", "OTHER", DF_DATA_EVENT, TraceEventType::TRACE_TYPE_CPP_APP);
    DFTracer target(std::move(moved));
    target.update("n", 5);
}

int main(int argc, char **) {
    if (argc > 1) {
        DFTRACER_CPP_INIT_NO_BIND(nullptr, nullptr, nullptr);
    } else {
        DFTRACER_CPP_INIT(nullptr, nullptr, nullptr);
    }
    DFTRACER_CPP_APP_METADATA_INT("ranks", 4);
    DFTRACER_CPP_APP_METADATA_STR("dataset", "imagenet");
    DFTRACER_CPP_MARK_USED("mine");
    function(1);
    try {
        function(0);
    } catch (const std::exception &) {
    }
    regions();
    by_hand();
    {
        DFTRACER_C_REGION_START(c_in_cpp);
        DFTRACER_C_REGION_END(c_in_cpp);
    }
    std::puts("done");
    DFTRACER_CPP_FINI();
    return 0;
}
