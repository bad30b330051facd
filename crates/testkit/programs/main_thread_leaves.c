/* Hazard: main calls pthread_exit and a second thread carries on alone, then ends the process.
 * Holds: the work of both is kept. */
#include "hazard.h"

static pthread_t main_thread;

static void *second(void *unused) {
    (void)unused;
    MUST(pthread_join(main_thread, NULL) == 0);
    work("second.bin", 500);
    exit(3);
}

int main(void) {
    pthread_t thread;
    main_thread = pthread_self();
    work("main.bin", 500);
    MUST(pthread_create(&thread, NULL, second, NULL) == 0);
    pthread_exit(NULL);
}
