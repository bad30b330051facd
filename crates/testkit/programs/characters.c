/* Hazard: programs read and write single characters by the million; one event each would drown everything else.
 * Holds: they are folded into events that say how many calls and bytes they stand for; the sums are exact. */
#include "hazard.h"

int main(void) {
    FILE *out = fopen("letters.txt", "w");
    MUST(out);
    for (int i = 0; i < 100000; i++) MUST(putc('a' + i % 26, out) != EOF);
    for (int i = 0; i < 1000; i++) MUST(fputc('A', out) == 'A');
    for (int i = 0; i < 1000; i++) MUST(putc_unlocked('B', out) == 'B');
    for (int i = 0; i < 1000; i++) MUST(fputc_unlocked('C', out) == 'C');
    MUST(fclose(out) == 0);
    FILE *in = fopen("letters.txt", "r");
    MUST(in);
    for (int i = 0; i < 100000; i++) MUST(getc(in) == 'a' + i % 26);
    MUST(fgetc(in) == 'A' && ungetc('Z', in) == 'Z' && fgetc(in) == 'Z');
    for (int i = 1; i < 1000; i++) MUST(fgetc(in) == 'A');
    for (int i = 0; i < 1000; i++) MUST(getc_unlocked(in) == 'B');
    for (int i = 0; i < 1000; i++) MUST(fgetc_unlocked(in) == 'C');
    MUST(getc(in) == EOF && feof(in));
    MUST(fclose(in) == 0);
    for (int i = 0; i < 10; i++) MUST(putchar('.') == '.');
    MUST(putchar('\n') == '\n' && puts("done") >= 0);
    return 0;
}
