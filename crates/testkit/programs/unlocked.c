/* Hazard: coreutils (sort, cat, dd …) use the _unlocked forms of stdio.
 * Holds: they are seen like the locked ones. */
#include "hazard.h"

int main(void) {
    char block[100], *line;
    memset(block, 'u', sizeof block);
    FILE *stream = fopen("unlocked.bin", "w+");
    MUST(stream);
    for (int i = 0; i < 50; i++) MUST(fwrite_unlocked(block, 1, 100, stream) == 100);
    for (int i = 0; i < 10; i++) MUST(fputs_unlocked("line\n", stream) >= 0);
    MUST(fflush_unlocked(stream) == 0 && fseek(stream, 0, SEEK_SET) == 0);
    for (int i = 0; i < 50; i++) MUST(fread_unlocked(block, 1, 100, stream) == 100);
    for (int i = 0; i < 10; i++) MUST((line = fgets_unlocked(block, 100, stream)) && !strcmp(line, "line\n"));
    MUST(fread_unlocked(block, 1, 100, stream) == 0 && feof_unlocked(stream) && fclose(stream) == 0);
    return 0;
}
