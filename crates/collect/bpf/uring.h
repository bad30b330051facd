/* io_uring: a request from its submission to its completion, whoever completes it. */
#pragma once

struct submission {
	u64 start;
	u32 tgid;
	u32 tid;
	s64 offset;
	u32 len;
	u32 operation;
};

struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 65536);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct submission);
} submissions SEC(".maps");

SEC("tp_btf/io_uring_submit_req")
int uring_submitted(u64 *context)
{
	struct io_kiocb *request = (void *)context[0];
	u64 both = current_pid_tgid();
	if (!is_followed(both >> 32))
		return 0;
	struct submission submission = {};
	submission.tgid = both >> 32;
	submission.tid = both;
	submission.operation = request->opcode;
	/* Reads and writes keep their position and length at the start of the request. */
	struct io_rw *transfer = (void *)request;
	READ(submission.offset, transfer, kiocb.ki_pos);
	READ(submission.len, transfer, len);
	submission.start = now();
	u64 key = (u64)request;
	if (map_update(&submissions, &key, &submission, ANY))
		lost(LOST_MAP_FULL);
	return 0;
}

INLINE int uring_done(struct io_kiocb *request, s32 result, u32 flags)
{
	u64 key = (u64)request;
	struct submission *submission = map_lookup(&submissions, &key);
	if (!submission)
		return 0;
	struct record *record = reserve(KIND_URING, submission->tgid, submission->tid);
	if (record) {
		record->number = submission->operation;
		record->start = submission->start;
		record->end = now();
		record->result = result;
		record->args[0] = submission->len;
		record->args[1] = submission->offset;
		struct file *file = 0;
		READ(file, request, file);
		identify(file, &record->first);
		submit(record);
	}
	if (!(flags & 2)) /* IORING_CQE_F_MORE: the request goes on */
		map_delete(&submissions, &key);
	return 0;
}

/* The tracepoint's arguments changed with Linux 6.14: the verifier refuses the wrong one of these two. */
SEC("tp_btf/io_uring_complete")
int uring_completed(u64 *context)
{
	struct io_uring_cqe *entry = (void *)context[2];
	return uring_done((void *)context[1], entry->res, entry->flags);
}

SEC("tp_btf/io_uring_complete")
int uring_completed_values(u64 *context)
{
	return uring_done((void *)context[1], context[3], context[4]);
}
