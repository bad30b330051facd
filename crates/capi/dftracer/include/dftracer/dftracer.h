/*
 * dftracer/dftracer.h: the interface of DFTracer for C and C++, recorded by Weftline.
 *
 * Programs that were written for DFTracer compile and run unchanged: they link with -ldftracer_core and heed the variables
 * DFTRACER_*. Under `weft run` their annotations are part of the run, and no variable is needed.
 *
 * Where this differs from the original: DFTRACER_*_FINI may be left out, every pointer may be NULL, texts may hold any
 * character, the C++ class needs no other header and C++11 only, and an exception ends a region.
 */
#ifndef DFTRACER_DFTRACER_H
#define DFTRACER_DFTRACER_H

#include <stddef.h>

typedef unsigned long long int TimeResolution;
typedef unsigned long int ThreadID;
typedef int ProcessID;
typedef char *EventNameType;
typedef const char *ConstEventNameType;
typedef char *HashType;

/* What initialize_region() makes: a region of the program, or metadata whose key and value are `name` and `cat`. */
#define DF_DATA_EVENT 0
#define DF_METADATA_EVENT 1

__attribute__((unused)) static ConstEventNameType C_LOG_CATEGORY = "C_APP";

#ifdef __cplusplus
extern "C" {
#endif

/* A region that is open. */
struct DFTracerData {
    void *profiler;
};

/* Begins to record annotations and I/O calls; what is NULL is taken from the environment. */
void initialize_main(const char *log_file, const char *data_dirs, int *process_id);
/* Begins to record annotations alone. */
void initialize_no_bind(const char *log_file, const char *data_dirs, int *process_id);
/* Ends what either began, and writes its file. The end of the process does the same. */
void finalize(void);

/* Metadata of the process. */
void set_app_metadata_int(const char *key, int value);
void set_app_metadata_string(const char *key, const char *value);
/* Tells that a layer is in use. */
void mark_used(const char *name);

/* Begins a region; NULL, which all functions take, when nothing is recorded. */
struct DFTracerData *initialize_region(ConstEventNameType name, ConstEventNameType cat, int event_type);
/* Ends it. */
void finalize_region(struct DFTracerData *data);
void finalize_region_cleanup(struct DFTracerData **data);

/* Arguments of a region. `type` is one of MetadataType and changes nothing: no event is folded away here. */
void update_metadata_int(struct DFTracerData *data, const char *key, int value);
void update_metadata_string(struct DFTracerData *data, const char *key, const char *value);
void update_metadata_int_type(struct DFTracerData *data, const char *key, int value, int type);
void update_metadata_string_type(struct DFTracerData *data, const char *key, const char *value, int type);

#ifdef __cplusplus
} /* extern "C" */
#endif

/*
 * C. Most macros end with a semicolon, as they do in the original: programs were written with and without their own.
 */
#define DFTRACER_C_INIT(log_file, data_dirs, process_id) \
    initialize_main(log_file, data_dirs, process_id);    \
    mark_used("C_APP");
#define DFTRACER_C_INIT_NO_BIND(log_file, data_dirs, process_id) \
    initialize_no_bind(log_file, data_dirs, process_id);         \
    mark_used("C_APP");
#define DFTRACER_C_FINI() finalize()

#define DFTRACER_C_APP_METADATA_INT(key, val) set_app_metadata_int(key, val);
#define DFTRACER_C_APP_METADATA_STR(key, val) set_app_metadata_string(key, val);
#define DFTRACER_C_MARK_USED(name) mark_used(name);

/* Ends a region with its block where the program does not. */
#if defined(__GNUC__) || defined(__clang__)
#define DFTRACER_C_REGION_CLEANUP __attribute__((unused, cleanup(finalize_region_cleanup)))
#else
#define DFTRACER_C_REGION_CLEANUP
#endif

#define DFTRACER_C_FUNCTION_START()                          \
    struct DFTracerData *data_fn DFTRACER_C_REGION_CLEANUP = \
        initialize_region(__func__, C_LOG_CATEGORY, DF_DATA_EVENT);
#define DFTRACER_C_FUNCTION_END() \
    finalize_region(data_fn);     \
    data_fn = NULL;

#define DFTRACER_C_REGION_START(name)                            \
    struct DFTracerData *data_##name DFTRACER_C_REGION_CLEANUP = \
        initialize_region(#name, C_LOG_CATEGORY, DF_DATA_EVENT);
#define DFTRACER_C_REGION_END(name) \
    finalize_region(data_##name);   \
    data_##name = NULL;

/* Metadata; `name` is not told. */
#define DFTRACER_C_METADATA(name, key, val)                                                    \
    {                                                                                          \
        struct DFTracerData *data_##name = initialize_region(key, val, DF_METADATA_EVENT);     \
        finalize_region(data_##name);                                                          \
    }

#define DFTRACER_C_FUNCTION_UPDATE_INT(key, val) update_metadata_int(data_fn, key, val);
#define DFTRACER_C_FUNCTION_UPDATE_STR(key, val) update_metadata_string(data_fn, key, val);
#define DFTRACER_C_FUNCTION_UPDATE_INT_TYPE(key, val, type) update_metadata_int_type(data_fn, key, val, type);
#define DFTRACER_C_FUNCTION_UPDATE_STR_TYPE(key, val, type) update_metadata_string_type(data_fn, key, val, type);

#define DFTRACER_C_REGION_UPDATE_INT(name, key, val) update_metadata_int(data_##name, key, val);
#define DFTRACER_C_REGION_UPDATE_STR(name, key, val) update_metadata_string(data_##name, key, val);
#define DFTRACER_C_REGION_UPDATE_INT_TYPE(name, key, val, type) update_metadata_int_type(data_##name, key, val, type);
#define DFTRACER_C_REGION_UPDATE_STR_TYPE(name, key, val, type) \
    update_metadata_string_type(data_##name, key, val, type);

#ifdef __cplusplus
/*
 * C++.
 */
#include <cstdint>

__attribute__((unused)) static ConstEventNameType CPP_LOG_CATEGORY = "CPP_APP";

/* What an argument is where events are aggregated. */
enum MetadataType : std::uint8_t { MT_KEY = 0, MT_VALUE = 1, MT_IGNORE = 2 };

/* Which layer of a program an event comes from. */
enum TraceEventType : std::uint8_t {
    TRACE_TYPE_UNKNOWN = 0,
    TRACE_TYPE_DFTRACER = 1,
    TRACE_TYPE_C_APP = 2,
    TRACE_TYPE_LIBC_IO = 3,
    TRACE_TYPE_HIP = 4,
    TRACE_TYPE_HDF5 = 5,
    TRACE_TYPE_PYTHON = 6,
    TRACE_TYPE_PSUTIL = 7,
    TRACE_TYPE_FINSTRUMENT = 8,
    TRACE_TYPE_CPP_APP = 9,
    TRACE_TYPE_MPI = 10,
    TRACE_TYPE_PAPI = 11,
    TRACE_TYPE_OMNISTAT = 12,
    TRACE_TYPE_VARIORUM = 13,
    TRACE_TYPE_CUDA = 14,
    TRACE_TYPE_MAX
};

/* A region from its making to its end, or to that of its block. */
class DFTracer {
   public:
    DFTracer(ConstEventNameType name, ConstEventNameType cat, int event_type = DF_DATA_EVENT,
             TraceEventType type = TraceEventType::TRACE_TYPE_CPP_APP)
        : data_(initialize_region(name, cat, event_type)) {
        static_cast<void>(type); /* the category says the same */
    }
    DFTracer(const DFTracer &) = delete;
    DFTracer &operator=(const DFTracer &) = delete;
    DFTracer(DFTracer &&other) noexcept : data_(other.data_) { other.data_ = nullptr; }
    ~DFTracer() { finalize(); }

    void update(const char *key, int value, MetadataType type = MetadataType::MT_KEY) {
        update_metadata_int_type(data_, key, value, type);
    }
    void update(const char *key, const char *value, MetadataType type = MetadataType::MT_KEY) {
        update_metadata_string_type(data_, key, value, type);
    }
    void finalize() {
        finalize_region(data_);
        data_ = nullptr;
    }

   private:
    DFTracerData *data_;
};

#define DFTRACER_CPP_INIT(log_file, data_dirs, process_id) \
    initialize_main(log_file, data_dirs, process_id);      \
    mark_used("CPP_APP");
#define DFTRACER_CPP_INIT_NO_BIND(log_file, data_dirs, process_id) \
    initialize_no_bind(log_file, data_dirs, process_id);           \
    mark_used("CPP_APP");
#define DFTRACER_CPP_FINI() finalize()

#define DFTRACER_CPP_APP_METADATA_INT(key, val) set_app_metadata_int(key, val);
#define DFTRACER_CPP_APP_METADATA_STR(key, val) set_app_metadata_string(key, val);
#define DFTRACER_CPP_MARK_USED(name) mark_used(name);

#define DFTRACER_CPP_FUNCTION() DFTracer profiler_dft_fn(__func__, CPP_LOG_CATEGORY, DF_DATA_EVENT);
#define DFTRACER_CPP_REGION(name) DFTracer profiler_##name(#name, CPP_LOG_CATEGORY, DF_DATA_EVENT);
#define DFTRACER_CPP_REGION_START(name) \
    DFTracer *profiler_##name = new DFTracer(#name, CPP_LOG_CATEGORY, DF_DATA_EVENT);
#define DFTRACER_CPP_REGION_END(name) delete profiler_##name

/* Metadata; `name` is not told. */
#define DFTRACER_CPP_METADATA(name, key, value)                    \
    {                                                              \
        DFTracer profiler_##name(key, value, DF_METADATA_EVENT);   \
    }

#define DFTRACER_CPP_FUNCTION_UPDATE(key, val) profiler_dft_fn.update(key, val);
#define DFTRACER_CPP_FUNCTION_UPDATE_TYPE(key, val, type) profiler_dft_fn.update(key, val, type);
#define DFTRACER_CPP_REGION_UPDATE(name, key, val) profiler_##name.update(key, val);
#define DFTRACER_CPP_REGION_UPDATE_TYPE(name, key, val, type) profiler_##name.update(key, val, type);
#define DFTRACER_CPP_REGION_DYN_UPDATE(name, key, val) profiler_##name->update(key, val);
#define DFTRACER_CPP_REGION_DYN_UPDATE_TYPE(name, key, val, type) profiler_##name->update(key, val, type);

#endif /* __cplusplus */

#endif /* DFTRACER_DFTRACER_H */
