/* What the kernel saw: system calls of followed processes, io_uring, page faults that read files, requests of block devices.
 *
 * All programs are BTF tracepoints: they need neither tracefs nor kprobes. Whom to follow and which calls to tell is decided by
 * user space through maps; children of followed processes are added at fork, before they can make their first call. */
#include "kernel_types.h"
#include "record.h"

char weft_license[] SEC("license") = "GPL";

/* How a call is told: `crates/collect/src/kernel/calls.rs` fills these bits in. */
#define CALL_RECORDED 1 /* anything at all; without it the call is only timed, for page cache misses to belong to it */
#define CALL_TIMED 2
#define CALL_RETURNS_FILE 4
#define CALL_NEEDS_FILE 8 /* not told without a descriptor: anonymous mmap */
#define CALL_PATH(rule) ((rule) >> 4 & 7) /* places count from 1; 0 is none */
#define CALL_SECOND_PATH(rule) ((rule) >> 8 & 7)
#define CALL_FILE(rule) ((rule) >> 12 & 7)
#define CALL_SECOND_FILE(rule) ((rule) >> 16 & 7)
#define CALLS 512

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, CALLS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} calls SEC(".maps");

/* A process: FOLLOW_SELF tells its calls and follows its children; FOLLOW_CHILDREN only the latter. */
enum { FOLLOW_SELF = 1, FOLLOW_CHILDREN = 2 };

struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 65536);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u8);
} followed SEC(".maps");

enum { LOST_RING_FULL, LOST_MAP_FULL, LOST_FOREIGN_CALLS, LOSSES };

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, LOSSES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} losses SEC(".maps");

struct {
	MAP_UINT(type, MAP_RINGBUF);
	MAP_UINT(max_entries, 8 << 20); /* user space may choose another size */
} ring SEC(".maps");

/* Calls under way, by thread. */
struct call {
	u64 start;
	struct identity first;
	struct identity second;
	u64 missed;
};

struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 65536);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct call);
} under_way SEC(".maps");

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct record_with_paths);
} scratch SEC(".maps");

/* User space wakes by itself some times a second; it is woken where a quarter of the ring is full before that. */
volatile const u64 wake_at = 2 << 20;

INLINE void lost(u32 reason)
{
	u64 *count = map_lookup(&losses, &reason);
	if (count)
		__sync_fetch_and_add(count, 1);
}

INLINE u64 wakeup(void)
{
	if (ring_query(&ring, RING_AVAILABLE) < wake_at)
		return RING_NO_WAKEUP;
	/* A wake-up is an interrupt and costs more than the event: some for each eighth of that, for a reader that is behind. */
	return (ring_query(&ring, RING_PRODUCED) & (wake_at / 8 - 1)) < 512 ? RING_FORCE_WAKEUP : RING_NO_WAKEUP;
}

INLINE int is_followed(u32 tgid)
{
	u8 *how = map_lookup(&followed, &tgid);
	return how && *how == FOLLOW_SELF;
}

INLINE struct record *reserve(u8 kind, u32 tgid, u32 tid)
{
	struct record *record = ring_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		lost(LOST_RING_FULL);
		return 0;
	}
	__builtin_memset(record, 0, sizeof(*record));
	record->kind = kind;
	record->tgid = tgid;
	record->tid = tid;
	return record;
}

INLINE void submit(struct record *record)
{
	ring_submit(record, wakeup());
}

INLINE void identify(struct file *file, struct identity *out)
{
	out->file = (u64)file;
	if (file)
		READ(out->inode, file, f_inode);
}

/* The open file behind a descriptor of the running task. */
INLINE void identify_fd(u32 fd, struct identity *out)
{
	struct task_struct *task = current_task();
	struct files_struct *files = task->files;
	if (!files)
		return;
	struct fdtable *table = files->fdt;
	if (!table || fd >= table->max_fds)
		return;
	struct file *file = 0;
	read_kernel(&file, sizeof(file), table->fd + fd);
	identify(file, out);
}

#include "calls.h"
#include "processes.h"
#include "faults.h"
#include "uring.h"
#include "block.h"
