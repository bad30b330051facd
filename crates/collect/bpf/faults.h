/* Page faults that read files: a fault of a thread in user mode, and the pages that came into the page cache until the thread is
 * next seen. The kernel has no tracepoint at the end of a fault, so its end is that of the last request which the
 * thread issued to a device meanwhile, or, where another thread issued it, the moment the last page was asked for. */
#pragma once

struct fault {
	u64 start;
	u64 end;
	u64 address;
	u64 inode;
	u64 number; /* the inode's */
	u64 offset;
	u64 bytes;
	u32 device;
	u32 reserved;
};

struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 65536);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct fault);
} faults SEC(".maps");

#define PAGE_SHIFT 12 /* x86-64; arm64 kernels with larger pages set it through `page_shift` */
volatile const u32 page_shift = PAGE_SHIFT;

INLINE void tell_fault(u32 tgid, u32 tid, struct fault *fault)
{
	struct record *record = reserve(KIND_FAULT, tgid, tid);
	if (!record)
		return;
	record->start = fault->start;
	record->end = fault->end;
	record->result = fault->bytes;
	record->args[0] = fault->address;
	record->args[1] = fault->offset;
	record->args[2] = fault->number;
	record->first.inode = fault->inode;
	record->device = fault->device;
	submit(record);
}

INLINE void flush_fault(u32 tgid, u32 tid)
{
	struct fault *fault = map_lookup(&faults, &tid);
	if (!fault)
		return;
	if (fault->bytes)
		tell_fault(tgid, tid, fault);
	map_delete(&faults, &tid);
}

SEC("tp_btf/page_fault_user")
int faulted(u64 *context)
{
	u64 both = current_pid_tgid();
	u32 tgid = both >> 32, tid = both;
	if (!is_followed(tgid))
		return 0;
	struct fault *known = map_lookup(&faults, &tid);
	if (known) {
		if (known->bytes) {
			tell_fault(tgid, tid, known);
			known->bytes = 0;
		}
		known->start = known->end = now();
		known->address = context[0];
		return 0;
	}
	struct fault fault = {};
	fault.start = fault.end = now();
	fault.address = context[0];
	if (map_update(&faults, &tid, &fault, ANY))
		lost(LOST_MAP_FULL);
	return 0;
}

/* Pages of a folio, as a power of two. */
INLINE u32 folio_order(struct folio *folio)
{
	unsigned long flags = 0;
	read_kernel(&flags, sizeof(flags), folio); /* the first word of every folio */
	if (!(flags & 1 << 6)) /* PG_head */
		return 0;
	u8 order = 0;
	struct folio___with_order *older = (void *)folio;
	if (HAS_FIELD(struct folio___with_order, _folio_order))
		READ(order, older, _folio_order);
	else
		order = folio->_flags_1 & 0xff;
	return order & 31;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int page_added(u64 *context)
{
	struct folio *folio = (void *)context[0];
	u64 both = current_pid_tgid();
	u32 tgid = both >> 32, tid = both;
	if (!is_followed(tgid))
		return 0;
	u64 bytes = 1ull << (folio_order(folio) + page_shift);
	struct call *call = map_lookup(&under_way, &tid);
	if (call) {
		call->missed += bytes;
		return 0;
	}
	struct fault *fault = map_lookup(&faults, &tid);
	if (!fault)
		return 0;
	struct inode *inode = folio->mapping->host;
	u64 offset = (u64)folio->index << page_shift;
	if (fault->bytes && fault->inode != (u64)inode) {
		tell_fault(tgid, tid, fault);
		fault->bytes = 0;
	}
	if (!fault->bytes) {
		fault->inode = (u64)inode;
		fault->number = inode->i_ino;
		fault->device = inode->i_sb->s_dev;
		fault->offset = offset;
	}
	if (offset < fault->offset)
		fault->offset = offset;
	fault->bytes += bytes;
	fault->end = now();
	return 0;
}
