/* Hazard: getline and getdelim give memory back through pointers; fgets and fputs are counted by their text.
 * Holds: same lines, exact bytes. */
#include "hazard.h"

int main(void) {
    FILE *out = fopen("lines.txt", "w");
    MUST(out);
    for (int i = 0; i < 1000; i++) MUST(fputs("a line of text\n", out) >= 0); /* 15 bytes */
    MUST(fclose(out) == 0);
    FILE *in = fopen("lines.txt", "r");
    char *line = NULL, buffer[8];
    size_t room = 0;
    MUST(in);
    for (int i = 0; i < 500; i++) MUST(getline(&line, &room, in) == 15 && !strcmp(line, "a line of text\n"));
    for (int i = 0; i < 100; i++) MUST(getdelim(&line, &room, '\n', in) == 15);
    for (int i = 0; i < 100; i++) /* 7 + 7 + 1 bytes */
        MUST(fgets(buffer, 8, in) && fgets(buffer, 8, in) && fgets(buffer, 8, in) && !strcmp(buffer, "\n"));
    while (getline(&line, &room, in) == 15) {}
    MUST(feof(in));
    free(line);
    MUST(fclose(in) == 0);
    return 0;
}
