/* Who is followed: children from their fork on, until the last thread of a process ends. */
#pragma once

SEC("tp_btf/sched_process_fork")
int forked(u64 *context)
{
	struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
	u32 parent_tgid = parent->tgid, tgid = child->tgid;
	if (tgid == parent_tgid)
		return 0;
	if (!map_lookup(&followed, &parent_tgid))
		return 0;
	u8 how = FOLLOW_SELF;
	if (map_update(&followed, &tgid, &how, ANY)) {
		lost(LOST_MAP_FULL);
		return 0;
	}
	struct record *record = reserve(KIND_FORK, parent_tgid, parent->pid);
	if (!record)
		return 0;
	record->start = record->end = now();
	record->result = tgid;
	submit(record);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int executed(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	u32 old_tid = context[1], tgid = task->tgid;
	struct linux_binprm *program = (void *)context[2];
	if (!is_followed(tgid))
		return 0;
	/* A thread that is not the first one takes over its number. */
	map_delete(&under_way, &old_tid);
	u32 zero = 0;
	struct record_with_paths *out = map_lookup(&scratch, &zero);
	if (!out)
		return 0;
	__builtin_memset(&out->record, 0, sizeof(out->record));
	out->record.kind = KIND_EXEC;
	out->record.tgid = out->record.tid = tgid;
	out->record.start = out->record.end = now();
	long len = read_kernel_text(out->paths, PATH_ROOM, program->filename);
	if (len < 0 || len > PATH_ROOM)
		len = 0;
	u32 total = len;
	if (total > PATH_ROOM)
		return 0;
	out->record.path_len = total;
	/* The program itself: of a script, its interpreter. */
	long more = read_kernel_text(out->paths + total, PATH_ROOM, program->interp);
	if (more > 0 && more <= PATH_ROOM) {
		out->record.second_path_len = more;
		total += more;
	}
	if (total > 2 * PATH_ROOM)
		return 0;
	if (ring_output(&ring, out, sizeof(out->record) + total, wakeup()))
		lost(LOST_RING_FULL);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int exited(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	u32 tgid = task->tgid, tid = task->pid;
	u8 *how = map_lookup(&followed, &tgid);
	if (!how)
		return 0;
	int recorded = *how == FOLLOW_SELF;
	if (recorded) {
		map_delete(&under_way, &tid);
		flush_fault(tgid, tid);
	}
	/* Counted down before this tracepoint: nothing is left with the last thread. */
	if (task->signal->live.counter > 0)
		return 0;
	map_delete(&followed, &tgid);
	if (!recorded)
		return 0;
	struct record *record = reserve(KIND_EXIT, tgid, tid);
	if (!record)
		return 0;
	record->start = record->end = now();
	submit(record);
	return 0;
}
