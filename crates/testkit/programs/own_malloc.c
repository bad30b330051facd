/* A replacement of malloc for LD_PRELOAD, built with -shared: a bump allocator which opens and reads a file during its
 * own first use, as allocators that read their configuration do. Hazard: hooks that run inside malloc's start-up must
 * not allocate. Holds: programs run on it as without tracing, and it still is the allocator. */
#include "hazard.h"

static char arena[64 << 20];
static size_t used;

static void first_use(void) {
    char buffer[64];
    int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY);
    if (fd >= 0) {
        (void)!read(fd, buffer, sizeof buffer);
        close(fd);
    }
}

void *malloc(size_t size) {
    static int started;
    if (!__atomic_exchange_n(&started, 1, __ATOMIC_SEQ_CST)) first_use();
    size_t whole = (size + 16 + 15) & ~(size_t)15;
    size_t at = __atomic_fetch_add(&used, whole, __ATOMIC_SEQ_CST);
    if (at + whole > sizeof arena) return NULL;
    char *block = arena + ((at + 15) & ~(size_t)15) + 16;
    ((size_t *)block)[-1] = size;
    return block;
}
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t size) { return malloc(count * size); /* never reused, so still zero */ }
void *realloc(void *old, size_t size) {
    void *block = malloc(size);
    if (block && old) memcpy(block, old, ((size_t *)old)[-1] < size ? ((size_t *)old)[-1] : size);
    return block;
}
int own_malloc_is_here(void) { return 4711; }
