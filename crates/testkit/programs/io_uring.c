/* Hazard: io_uring does I/O without a call per operation, so hooks see nothing of it.
 * Holds: the program works as untraced, and the ledger names io_uring as the reason for the missing megabyte. */
#include "hazard.h"
#include <linux/io_uring.h>

int main(void) {
    static char block[1 << 16];
    struct io_uring_params params = {0};
    int fd = open("ring.bin", O_CREAT | O_WRONLY, 0644), ring = syscall(SYS_io_uring_setup, 4, &params);
    MUST(fd >= 0 && ring >= 0);
    size_t size = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t completion = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    if (completion > size) size = completion; /* one mapping holds both rings (IORING_FEAT_SINGLE_MMAP) */
    MUST(params.features & IORING_FEAT_SINGLE_MMAP);
    char *rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, params.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
                                        IORING_OFF_SQES);
    MUST(rings != MAP_FAILED && entries != MAP_FAILED);
    unsigned *tail = (unsigned *)(rings + params.sq_off.tail), *mask = (unsigned *)(rings + params.sq_off.ring_mask),
             *array = (unsigned *)(rings + params.sq_off.array), *head = (unsigned *)(rings + params.cq_off.head),
             *done_mask = (unsigned *)(rings + params.cq_off.ring_mask);
    struct io_uring_cqe *done = (struct io_uring_cqe *)(rings + params.cq_off.cqes);
    for (int i = 0; i < 16; i++) {
        unsigned slot = *tail & *mask;
        entries[slot] = (struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = fd, .addr = (uintptr_t)block,
                                              .len = sizeof block, .off = (uint64_t)i * sizeof block};
        array[slot] = slot;
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        MUST(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
        MUST(done[*head & *done_mask].res == sizeof block);
        __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    }
    MUST(close(fd) == 0);
    return 0;
}
