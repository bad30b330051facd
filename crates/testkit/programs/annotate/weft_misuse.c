/* Everything that a caller can do wrong with weft.h. The program must end well; its first argument may name a directory to record into. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>

static weft_site site = WEFT_SITE("misuse", "app");

static void nothing(weft_span *span, const char *key) {
    weft_int(span, key, 1);
    weft_uint(span, key, 1);
    weft_double(span, key, 1);
    weft_bool(span, key, 1);
    weft_str(span, key, "text");
    weft_str(span, key, NULL);
    weft_bytes(span, key, NULL, 100);
    weft_tell(span, WEFT_KIND_INSTANT, 0);
    weft_end(span);
    weft_end(span);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        const char *why = weft_start(argv[1]);
        if (why) {
            fprintf(stderr, "%s\n", why);
            return 1;
        }
    }
    weft_stop();
    if (argc > 1 && weft_start(argv[1])) return 1;

    nothing(NULL, NULL);
    nothing(NULL, "key");
    weft_begin(NULL, NULL);
    weft_begin(NULL, &site);

    /* Never begun. */
    weft_span span;
    memset(&span, 0, sizeof span);
    nothing(&span, "key");
    memset(&span, 0xff, sizeof span);
    nothing(&span, "key");

    /* Keys that are NULL, a site that is NULL, texts that are NULL. */
    weft_begin(&span, &site);
    nothing(&span, NULL);
    weft_begin(&span, NULL);
    weft_end(&span);
    weft_site nameless = WEFT_SITE(NULL, NULL);
    weft_begin(&span, &nameless);
    weft_end(&span);

    /* Ended twice, told twice, kinds that do not exist. */
    weft_begin(&span, &site);
    weft_end(&span);
    nothing(&span, "key");
    for (int kind = -2; kind < 20; kind++) {
        weft_begin(&span, &site);
        weft_str(&span, "key", "value");
        weft_tell(&span, kind, 1);
        nothing(&span, "key");
    }

    /* A copy is not open; begun again without an end. */
    weft_begin(&span, &site);
    weft_span copy = span;
    nothing(&copy, "key");
    weft_begin(&span, &site);
    weft_end(&span);

    /* Texts of any length and content, more than a span holds. */
    size_t length = 3 << 20;
    char *text = malloc(length + 1);
    if (!text) return 1;
    memset(text, 'x', length);
    text[length] = 0;
    weft_site long_site = WEFT_SITE(text, text);
    weft_begin(&span, &long_site);
    weft_int(&span, text, 1);
    weft_bytes(&span, "whole", text, length);
    weft_bytes(&span, "nothing", text, 0);
    weft_end(&span);
    memset(text, 0xff, length);
    weft_begin(&span, &long_site);
    weft_str(&span, text, text);
    weft_end(&span);
    free(text);
    for (int i = 0; i < 50; i++) {
        weft_begin(&span, &site);
        for (int j = 0; j < 200; j++) weft_str(&span, "key", "some text that is not long");
        if (i % 2) weft_end(&span);
        else weft_tell(&span, -1, 0);
    }

    if (weft_start("/proc/no/such/place") == NULL && argc < 2) return 1;
    weft_stop();
    weft_stop();
    weft_begin(&span, &site);
    weft_end(&span);
    puts("survived");
    return 0;
}
