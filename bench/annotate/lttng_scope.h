/* The tracepoints of lttng_scope.c. LTTng includes this file several times, each time with other meanings of its macros. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER weft_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_scope.h"

#if !defined(LTTNG_SCOPE_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_SCOPE_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(weft_bench, step_begin, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(weft_bench, step_end, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(
    weft_bench, load_begin, LTTNG_UST_TP_ARGS(long, index, double, loss, const char *, path),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, index, index) lttng_ust_field_float(double, loss, loss)
                            lttng_ust_field_string(path, path)))
LTTNG_UST_TRACEPOINT_EVENT(weft_bench, load_end, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

#endif

#include <lttng/tracepoint-event.h>
