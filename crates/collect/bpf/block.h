/* Requests of block devices, of all processes: a device is shared, and writeback is done by the kernel's own threads. */
#pragma once

struct issued {
	u64 start;
	u64 sector;
	u64 queued;
	u32 tgid;
	u32 tid;
	u32 bytes;
	u32 flags;
	u32 device;
	u32 reserved;
	char comm[16];
};

struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 16384);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct issued);
} requests SEC(".maps");

SEC("tp_btf/block_rq_issue")
int block_issued(u64 *context)
{
	struct request *request = (void *)context[0];
	struct issued issued = {};
	u64 both = current_pid_tgid();
	issued.tgid = both >> 32;
	issued.tid = both;
	issued.bytes = request->__data_len;
	issued.sector = request->__sector;
	issued.flags = request->cmd_flags;
	struct gendisk *disk = request->q->disk;
	if (disk)
		issued.device = disk->major << 20 | disk->first_minor;
	current_comm(issued.comm, sizeof(issued.comm));
	issued.start = now();
	u64 made = request->start_time_ns;
	if (made && made < issued.start)
		issued.queued = issued.start - made;
	u64 key = (u64)request;
	if (map_update(&requests, &key, &issued, ANY))
		lost(LOST_MAP_FULL);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int block_completed(u64 *context)
{
	u64 key = context[0];
	struct issued *issued = map_lookup(&requests, &key);
	if (!issued)
		return 0;
	u64 end = now();
	struct fault *fault = map_lookup(&faults, &issued->tid);
	if (fault && fault->bytes && fault->start <= issued->start)
		fault->end = end;
	struct record *record = reserve(KIND_BLOCK, issued->tgid, issued->tid);
	if (record) {
		record->device = issued->device;
		record->start = issued->start;
		record->end = end;
		record->result = (s32)context[1];
		record->args[0] = (u32)context[2];
		record->args[1] = issued->sector;
		record->args[2] = issued->flags;
		record->args[3] = issued->queued;
		__builtin_memcpy(&record->args[4], issued->comm, sizeof(issued->comm));
		submit(record);
	}
	map_delete(&requests, &key);
	return 0;
}
