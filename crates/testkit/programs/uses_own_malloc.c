/* Says whether own_malloc.c is loaded, and works with streams, which allocate. */
#include "hazard.h"
#include <dlfcn.h>

int main(void) {
    int (*here)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "own_malloc_is_here");
    for (int i = 0; i < 20; i++) {
        FILE *stream = fopen("stream.txt", "a");
        MUST(stream && fprintf(stream, "%d %p\n", here ? here() : 0, (void *)0) > 0 && fclose(stream) == 0);
    }
    char *text = malloc(100);
    MUST(text);
    printf("own malloc: %d\n", here ? here() : 0);
    return 0;
}
