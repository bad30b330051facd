/* Hazard: constructors, atexit handlers, destructors and thread-specific destructors do I/O before and after main.
 * Holds: all of it is recorded. */
#include "hazard.h"

static pthread_key_t key;

__attribute__((constructor(101))) static void earliest(void) { work("constructor-early.bin", 10); }
__attribute__((constructor)) static void early(void) { work("constructor.bin", 10); }
__attribute__((destructor)) static void late(void) { work("destructor.bin", 10); }
__attribute__((destructor(101))) static void latest(void) { work("destructor-late.bin", 10); }
static void at_exit(void) { work("atexit.bin", 10); }
static void thread_end(void *unused) {
    (void)unused;
    work("thread-destructor.bin", 10);
}
static void *thread(void *unused) {
    MUST(pthread_setspecific(key, &key) == 0);
    return unused;
}

int main(void) {
    pthread_t handle;
    MUST(atexit(at_exit) == 0 && pthread_key_create(&key, thread_end) == 0);
    MUST(pthread_create(&handle, NULL, thread, NULL) == 0 && pthread_join(handle, NULL) == 0);
    work("main.bin", 10);
    return 0;
}
