/* Hazard: threads open, write and close streams at the same time; a stream's address is reused at once.
 * Holds: no crash, and every call is attributed to its own thread's file. Usage: stdio_threads THREADS ROUNDS */
#include "hazard.h"

static int rounds;

static void *own_file(void *number) {
    char name[16] = {'t', 'h', 'r', 'e', 'a', 'd', '0' + (char)(intptr_t)number, 0};
    for (int i = 0; i < rounds; i++) {
        FILE *stream = fopen(name, "w");
        MUST(stream && fwrite("0123456789", 1, 10, stream) == 10 && fclose(stream) == 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    MUST(argc == 3);
    int count = atoi(argv[1]);
    pthread_t threads[9];
    rounds = atoi(argv[2]);
    for (intptr_t i = 0; i < count; i++) MUST(pthread_create(&threads[i], NULL, own_file, (void *)i) == 0);
    for (int i = 0; i < count; i++) MUST(pthread_join(threads[i], NULL) == 0);
    return 0;
}
