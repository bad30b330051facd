/* Hazard: the scanf family writes through any number of pointers.
 * Holds: every pointer receives its value, through fscanf, vfscanf, scanf, vscanf, both ISO C99 and GNU forms. */
#include "hazard.h"
#include <stdarg.h>

static int indirect(FILE *stream, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int items = vfscanf(stream, format, list);
    va_end(list);
    return items;
}

int main(void) {
    int a, b, c, d, e, f, g, h, i, j;
    double x;
    long double y;
    char word[32];
    FILE *out = fopen("numbers.txt", "w");
    MUST(out && fputs("1 2 3 4 5 6 7 8 9 10 0.25 1e400 word\n11 12 13 14 15 16 17 18 19 20 0.5 2e400 other\n", out) >= 0);
    MUST(fclose(out) == 0);
    FILE *in = fopen("numbers.txt", "r");
    MUST(in);
    MUST(fscanf(in, "%d%d%d%d%d%d%d%d%d%d%lf%Lf%31s", &a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &x, &y, word) == 13);
    printf("%d %d %d %g %Lg %s\n", a, f, j, x, y, word);
    MUST(indirect(in, "%d%d%d%d%d%d%d%d%d%d%lf%Lf%31s", &a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &x, &y, word) == 13);
    printf("%d %d %d %g %Lg %s\n", a, f, j, x, y, word);
    MUST(fscanf(in, "%d", &a) == EOF);
    MUST(fclose(in) == 0);
    MUST(freopen("numbers.txt", "r", stdin) && scanf("%d %d", &a, &b) == 2);
    printf("%d %d\n", a, b);
    return 0;
}
