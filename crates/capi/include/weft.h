/*
 * weft.h: annotate C and C++ programs for tracing.
 *
 *     #include <weft.h>
 *
 *     void load(const char *path, int index) {
 *         WEFT_SPAN(span, "load");            // ends when the enclosing block is left, in any way
 *         weft_str(&span, "path", path);
 *         weft_int(&span, "index", index);
 *         WEFT_COUNTER("queue", "length", 3); // a value as it is now
 *         ...
 *     }
 *
 * Run the program under `weft run`, or call weft_start() in it. While nothing is recorded, an annotation costs a call that
 * does nothing.
 *
 * Every pointer may be NULL. No function fails, blocks or sets errno, except weft_start() and weft_stop(). All others may be
 * called from any thread, after fork() and in signal handlers; in a handler a span should have less than 150 bytes of
 * arguments, because more are kept on the heap.
 *
 * Names, categories and keys are C strings. They are cut after 1,024 bytes; bytes that are not UTF-8 are escaped.
 *
 * Made by `cargo xtask docs` from weft.h.in and the library's source; do not edit.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A string of the program. `known` starts as 0: the library stores the recorder's id of the string there. */
typedef struct weft_name {
    const char *text;
    uint64_t known;
} weft_name;

/* A place in the program that makes events, usually a static variable: `static weft_site site = WEFT_SITE("load", "io");` */
typedef struct weft_site {
    weft_name name;
    weft_name category;
} weft_site;

/* An open event. Its content belongs to the library; a copy of an open event is not open. */
typedef struct weft_span {
    uint64_t opaque[32];
} weft_span;

/* The kinds of events. */
typedef enum weft_kind {
    /* A span on the thread's stack, recorded at its end. */
    WEFT_KIND_SPAN = 0,
    /* The start of a span on the thread's stack, recorded separately. */
    WEFT_KIND_BEGIN = 1,
    /* The end of the thread's newest open span. */
    WEFT_KIND_END = 2,
    /* A span that may overlap others of its thread, recorded at its end. */
    WEFT_KIND_ASYNC_SPAN = 3,
    /* The start of an async span, recorded separately. */
    WEFT_KIND_ASYNC_BEGIN = 4,
    /* Its end, perhaps on another thread. */
    WEFT_KIND_ASYNC_END = 5,
    /* An instant within an async span. */
    WEFT_KIND_ASYNC_INSTANT = 6,
    /* An instant. */
    WEFT_KIND_INSTANT = 7,
    /* Values at a point in time. */
    WEFT_KIND_COUNTER = 8,
    /* Metadata of the process. */
    WEFT_KIND_META = 9,
    /* The start of an arrow between spans. */
    WEFT_KIND_FLOW_START = 10,
    /* A step on its way. */
    WEFT_KIND_FLOW_STEP = 11,
    /* Its end. */
    WEFT_KIND_FLOW_END = 12
} weft_kind;

/*
 * Records this process and the children that it forks into a run directory: annotations and I/O calls. NULL chooses a
 * directory below `weft-runs`. Does nothing if something records already, as under `weft run`. Returns NULL if the
 * process is recorded now, else a sentence with the reason, which is valid until the thread's next call.
 */
const char *weft_start(const char *directory);

/*
 * Stops the recording of `weft_start` and writes the trace. Calling it is optional: the end of the process does the
 * same.
 */
void weft_stop(void);

/* Whether anything is recorded now. Use it before computing costly arguments. */
int weft_is_on(void);

/*
 * Begins an event at `site`; add arguments until `weft_end`. `span` is memory of the caller and needs no
 * initialisation; `site` is read during the call only.
 */
void weft_begin(weft_span *span, weft_site *site);

/* Ends a span: it lasted from `weft_begin` until now. Ending a span that is not open does nothing. */
void weft_end(weft_span *span);

/*
 * Closes a span as an event of another kind (see `weft_kind`), at the time of its `weft_begin`. `id` joins the events
 * of an async span or a flow, and is 0 otherwise. An unknown kind records nothing.
 */
void weft_tell(weft_span *span, int kind, uint64_t id);

/* Adds an integer to an open span. */
void weft_int(weft_span *span, const char *key, int64_t value);

/* Adds an unsigned integer to an open span. */
void weft_uint(weft_span *span, const char *key, uint64_t value);

/* Adds a number to an open span. */
void weft_double(weft_span *span, const char *key, double value);

/* Adds `true` or `false` to an open span. */
void weft_bool(weft_span *span, const char *key, int value);

/*
 * Adds text of `length` bytes to an open span; the bytes are copied. A NULL `text` is recorded as `null`. Text that is
 * longer than about 3,800 bytes is cut, and its full length is recorded.
 */
void weft_bytes(weft_span *span, const char *key, const char *text, size_t length);

/* Returns an id that is unique in the run, to join the events of an async span or a flow. */
uint64_t weft_new_id(void);

/*
 * The rest of this block is for code that `weft weave` compiles, and for nobody else: a function that was woven, and what it calls.
 */
typedef struct weft_woven {
    weft_site site;
    /* NULL when there is none. */
    const char *scope;
    const char *file;
    uint32_t line;
    /* 0 before, 1 after, 2 around. */
    uint8_t pointcut;
    uint8_t is_async;
    /* 0 none, 1 in, 2 out, 3 inout, 4 outin. */
    uint8_t flow;
    /* 1. */
    uint8_t version;
    uint64_t reserved;
} weft_woven;

/* A function begins. Returns the token for `weft_weave_end`, or 0 if that need not be called. */
uint64_t weft_weave_begin(weft_woven *function);

/* A function returns, or is about to call one that does not return. */
void weft_weave_end(weft_woven *function, uint64_t token);

/* An exception leaves a function. */
void weft_weave_thrown(weft_woven *function, uint64_t token);

/* A function with more than a plain span begins: `before`, an async span, or arrows. */
uint64_t weft_weave_enter(weft_woven *function);

/* Its end, with the token of `weft_weave_enter`, or 0 for an `after`. */
void weft_weave_leave(weft_woven *function, uint64_t token);

#ifdef __cplusplus
}
#endif

/* Adds a C string to an open span. */
static inline void weft_str(weft_span *span, const char *key, const char *text) {
    weft_bytes(span, key, text, text ? strlen(text) : 0);
}

/* Called by the macros below when a block is left. A span that was never on needs no call. */
static inline void weft_leave_(weft_span *span) {
    if (span->opaque[0]) weft_end(span);
}

/* Initialises a weft_site. */
#define WEFT_SITE(name, category) {{(name), 0}, {(category), 0}}

/* Category of the macros that name none; may be defined before this header is included. */
#ifndef WEFT_CATEGORY
#define WEFT_CATEGORY "app"
#endif

#define WEFT_JOIN_2_(left, right) left##right
#define WEFT_JOIN_(left, right) WEFT_JOIN_2_(left, right)

/*
 * A span from here to the end of the enclosing block: its last line, return, break, goto or a C++ exception. The
 * variable `span` takes arguments: weft_int(&span, "index", 3). These macros declare variables, so use them as statements
 * of a block, not after an `if` without braces.
 */
#define WEFT_SPAN_CAT(span, name, category)                                         \
    static weft_site WEFT_JOIN_(span, _weft_site_) = WEFT_SITE(name, category);     \
    weft_span span __attribute__((cleanup(weft_leave_)));                           \
    weft_begin(&span, &WEFT_JOIN_(span, _weft_site_))
#define WEFT_SPAN(span, name) WEFT_SPAN_CAT(span, name, WEFT_CATEGORY)

/* A span without arguments. */
#define WEFT_SCOPE_CAT(name, category) WEFT_SPAN_CAT(WEFT_JOIN_(weft_scope_, __COUNTER__), name, category)
#define WEFT_SCOPE(name) WEFT_SCOPE_CAT(name, WEFT_CATEGORY)

/* A span with the name of the enclosing function. */
#define WEFT_FUNCTION_CAT(category) WEFT_SCOPE_CAT(__func__, category)
#define WEFT_FUNCTION() WEFT_FUNCTION_CAT(WEFT_CATEGORY)

/* Makes an event without a duration; `add` is a call that adds arguments to the open `weft_event_`. */
#define WEFT_EVENT_(kind, name, category, add)                         \
    do {                                                               \
        static weft_site weft_site_ = WEFT_SITE(name, category);       \
        weft_span weft_event_;                                         \
        weft_begin(&weft_event_, &weft_site_);                         \
        if (weft_event_.opaque[0]) {                                   \
            add;                                                       \
            weft_tell(&weft_event_, kind, 0);                          \
        }                                                              \
    } while (0)

/* Something that happened now. */
#define WEFT_INSTANT_CAT(name, category) WEFT_EVENT_(WEFT_KIND_INSTANT, name, category, (void)0)
#define WEFT_INSTANT(name) WEFT_INSTANT_CAT(name, WEFT_CATEGORY)

/* A value as it is now. */
#define WEFT_COUNTER_CAT(name, category, key, value) \
    WEFT_EVENT_(WEFT_KIND_COUNTER, name, category, weft_double(&weft_event_, key, (double)(value)))
#define WEFT_COUNTER(name, key, value) WEFT_COUNTER_CAT(name, WEFT_CATEGORY, key, value)

/* Metadata of the process. */
#define WEFT_META_CAT(name, category, key, text) \
    WEFT_EVENT_(WEFT_KIND_META, name, category, weft_str(&weft_event_, key, text))
#define WEFT_META(name, key, text) WEFT_META_CAT(name, WEFT_CATEGORY, key, text)

#endif /* WEFT_H */
