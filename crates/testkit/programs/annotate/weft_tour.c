/* Every part of weft.h; the first argument chooses one. What must be in the trace of each is said in tests/suite/annotate_c/weft.rs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weft.h>

static void nap(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}

static int early(int n) {
    WEFT_FUNCTION();
    if (n == 1) return 1;
    for (int i = 0; i < 3; i++) {
        WEFT_SCOPE("round");
        if (i == n) break;
    }
    {
        WEFT_FUNCTION_CAT("late");
        if (n == 2) goto out;
    }
out:
    return n;
}

static void scopes(void) {
    WEFT_SCOPE_CAT("outer", "phase");
    {
        WEFT_SCOPE("inner");
        nap(20);
    }
    early(1);
    early(2);
    early(0);
}

static void values(void) {
    static char long_text[5000];
    memset(long_text, 'y', sizeof long_text - 1);
    WEFT_SPAN(span, "values");
    weft_int(&span, "int", -7);
    weft_int(&span, "least", INT64_MIN);
    weft_uint(&span, "most", UINT64_MAX);
    weft_double(&span, "half", 0.5);
    weft_double(&span, "nan", __builtin_nan(""));
    weft_bool(&span, "yes", 2);
    weft_bool(&span, "no", 0);
    weft_str(&span, "text", "a \"quoted\"\n\\ line");
    weft_str(&span, "none", NULL);
    weft_str(&span, "empty", "");
    weft_bytes(&span, "bytes", "part of it", 4);
    weft_str(&span, "latin1", "caf\xe9");
    weft_str(&span, "k\xe9y", "value");
    WEFT_SPAN_CAT(long_span, "long", "texts");
    weft_str(&long_span, "text", long_text);
}

static void events(void) {
    WEFT_INSTANT("happened");
    WEFT_INSTANT_CAT("happened", "other");
    WEFT_COUNTER("queue", "length", 3);
    WEFT_COUNTER_CAT("queue", "other", "length", 2.5);
    WEFT_META("model", "name", "unet3d");
    WEFT_META_CAT("model", "other", "name", NULL);
    static weft_site site = WEFT_SITE("by hand", "app");
    weft_span span;
    weft_begin(&span, &site);
    weft_int(&span, "a", 1);
    weft_int(&span, "b", 2);
    weft_tell(&span, WEFT_KIND_COUNTER, 0);
}

/* The ends of an async span on two threads, and an arrow between them. */
static uint64_t async_id, flow_id;

static void tell(const char *name, int kind, uint64_t id) {
    weft_site site = WEFT_SITE(name, NULL);
    weft_span span;
    weft_begin(&span, &site);
    weft_tell(&span, kind, id);
}

static void *ends(void *unused) {
    (void)unused;
    tell("download", WEFT_KIND_ASYNC_INSTANT, async_id);
    tell("download", WEFT_KIND_ASYNC_END, async_id);
    tell("arrow", WEFT_KIND_FLOW_END, flow_id);
    return NULL;
}

static void across(void) {
    async_id = weft_new_id();
    flow_id = weft_new_id();
    tell("download", WEFT_KIND_ASYNC_BEGIN, async_id);
    tell("arrow", WEFT_KIND_FLOW_START, flow_id);
    pthread_t thread;
    pthread_create(&thread, NULL, ends, NULL);
    pthread_join(thread, NULL);
    weft_site site = WEFT_SITE("overlapping", NULL);
    weft_span first, second;
    weft_begin(&first, &site);
    weft_begin(&second, &site);
    nap(5);
    weft_tell(&first, WEFT_KIND_ASYNC_SPAN, weft_new_id());
    weft_tell(&second, WEFT_KIND_ASYNC_SPAN, weft_new_id());
}

static void io(void) {
    WEFT_SPAN(span, "save");
    int fd = open("saved.bin", O_CREAT | O_WRONLY | O_TRUNC, 0644);
    {
        WEFT_SCOPE("payload");
        if (write(fd, "0123456789", 10) != 10) exit(1);
    }
    close(fd);
    weft_int(&span, "bytes", 10);
}

static void forked(void) {
    WEFT_SCOPE("parent");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        {
            WEFT_SCOPE("child");
            nap(1);
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

enum { THREADS = 8, SPANS = 1000 };

static void *works(void *number) {
    for (int i = 0; i < SPANS; i++) {
        WEFT_SPAN(span, "unit");
        weft_int(&span, "thread", (long)number);
        weft_int(&span, "i", i);
    }
    return NULL;
}

static void threads(void) {
    pthread_t all[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&all[i], NULL, works, (void *)i);
    for (long i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
}

static void handles(int number) {
    WEFT_SPAN(span, "handler");
    weft_int(&span, "signal", number);
}

static void signals(void) {
    signal(SIGUSR1, handles);
    for (int i = 0; i < 100; i++) {
        WEFT_SPAN(span, "interrupted");
        weft_int(&span, "i", i);
        raise(SIGUSR1);
    }
}

/* A name that changes in place, and more names than one place has. */
static void made_names(void) {
    char name[16], key[16];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "step %d", i);
        snprintf(key, sizeof key, "key %d", i);
        weft_site site = WEFT_SITE(name, "made");
        weft_span span;
        weft_begin(&span, &site);
        weft_int(&span, key, i);
        memset(name, 'x', sizeof name - 1);
        weft_end(&span);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"scopes", scopes},   {"values", values},   {"events", events},   {"across", across}, {"io", io},
                 {"forked", forked},   {"threads", threads}, {"signals", signals}, {"made_names", made_names}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (argc > 1 && strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run();
            puts(argv[1]);
            return 0;
        }
    }
    return 2;
}
