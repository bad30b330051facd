/* Hazard: optimised programs (cut, tr, wc …) have getc_unlocked and putc_unlocked inlined; only the refill and the flush of the
 * buffer, __uflow and __overflow, are calls. Built with -O2 and builtins.
 * Holds: the bytes are counted. */
#define _GNU_SOURCE
#include <stdio.h>

int main(void) {
    FILE *out = fopen("letters.txt", "w");
    if (!out) return 1;
    for (int i = 0; i < 100000; i++)
        if (putc_unlocked('a' + i % 26, out) == EOF) return 2;
    if (fclose(out)) return 3;
    FILE *in = fopen("letters.txt", "r");
    int letters = 0;
    if (!in) return 4;
    while (getc_unlocked(in) != EOF) letters++;
    if (fclose(in)) return 5;
    return letters == 100000 ? 0 : 6;
}
