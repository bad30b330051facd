/* System calls: timed at their entry, told at their exit, when the pages that hold paths are present. */
#pragma once

INLINE u64 argument(struct pt_regs *regs, u32 place)
{
#if defined(__TARGET_ARCH_x86)
	switch (place) {
	case 1: return regs->di;
	case 2: return regs->si;
	case 3: return regs->dx;
	case 4: return regs->r10;
	case 5: return regs->r8;
	case 6: return regs->r9;
	}
	return 0;
#else
	switch (place) {
	case 1: return regs->orig_x0;
	case 2: return regs->regs[1];
	case 3: return regs->regs[2];
	case 4: return regs->regs[3];
	case 5: return regs->regs[4];
	case 6: return regs->regs[5];
	}
	return 0;
#endif
}

/* A 32-bit call on a 64-bit kernel has other numbers and registers. */
INLINE int is_foreign(void)
{
#if defined(__TARGET_ARCH_x86)
	return current_task()->thread_info.status & 2; /* TS_COMPAT */
#else
	return 0;
#endif
}

INLINE u32 call_number(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#else
	return regs->syscallno;
#endif
}

/* The rule of a call that is told or timed and made by a process that is followed; else nothing. */
INLINE u32 *rule_of(u32 number, u64 pid_tgid)
{
	u32 *rule = map_lookup(&calls, &number);
	return rule && *rule & (CALL_RECORDED | CALL_TIMED) && is_followed(pid_tgid >> 32) ? rule : 0;
}

static void flush_fault(u32 tgid, u32 tid);

SEC("tp_btf/sys_enter")
int enter_call(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	u32 number = context[1];
	u64 both = current_pid_tgid();
	u32 tgid = both >> 32, tid = both;
	u32 *rule = rule_of(number, both);
	if (!rule)
		return 0;
	if (is_foreign()) {
		lost(LOST_FOREIGN_CALLS);
		return 0;
	}
	u32 file = CALL_FILE(*rule), second_file = CALL_SECOND_FILE(*rule);
	if (*rule & CALL_NEEDS_FILE && (s32)argument(regs, file) < 0)
		return 0;
	struct call call = {};
	if (file)
		identify_fd(argument(regs, file), &call.first);
	if (second_file)
		identify_fd(argument(regs, second_file), &call.second);
	flush_fault(tgid, tid);
	call.start = now();
	if (map_update(&under_way, &tid, &call, ANY))
		lost(LOST_MAP_FULL);
	return 0;
}

INLINE void fill_call(struct record *record, struct pt_regs *regs, struct call *call, u32 number, u32 rule, s64 result)
{
	record->number = number;
	record->start = call->start;
	record->result = result;
	record->args[0] = argument(regs, 1);
	record->args[1] = argument(regs, 2);
	record->args[2] = argument(regs, 3);
	record->args[3] = argument(regs, 4);
	record->args[4] = argument(regs, 5);
	record->args[5] = argument(regs, 6);
	record->first = call->first;
	record->second = call->second;
	record->missed = call->missed;
	if (rule & CALL_RETURNS_FILE && result >= 0)
		identify_fd(result, &record->second);
}

/* Calls with paths are put together in a scratch page, since the ring reserves only sizes that are known to the verifier. */
INLINE void tell_with_paths(struct pt_regs *regs, struct call *call, u32 number, u32 rule, s64 result, u64 both, u64 end)
{
	u32 zero = 0;
	struct record_with_paths *out = map_lookup(&scratch, &zero);
	if (!out)
		return;
	__builtin_memset(&out->record, 0, sizeof(out->record));
	out->record.kind = KIND_CALL;
	out->record.tgid = both >> 32;
	out->record.tid = both;
	out->record.end = end;
	fill_call(&out->record, regs, call, number, rule, result);
	long len = read_user_text(out->paths, PATH_ROOM, (void *)argument(regs, CALL_PATH(rule)));
	if (len < 0)
		len = 0;
	u32 total = len;
	if (total > PATH_ROOM)
		total = PATH_ROOM;
	out->record.path_len = total;
	u32 second = CALL_SECOND_PATH(rule);
	if (second) {
		long more = read_user_text(out->paths + total, PATH_ROOM, (void *)argument(regs, second));
		if (more > 0 && more <= PATH_ROOM) {
			out->record.second_path_len = more;
			total += more;
		}
	}
	if (total > 2 * PATH_ROOM)
		return;
	if (ring_output(&ring, out, sizeof(out->record) + total, wakeup()))
		lost(LOST_RING_FULL);
}

SEC("tp_btf/sys_exit")
int exit_call(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	u32 number = call_number(regs);
	u64 both = current_pid_tgid();
	u32 tgid = both >> 32, tid = both;
	u32 *rule = rule_of(number, both);
	if (!rule)
		return 0;
	struct call *found = map_lookup(&under_way, &tid);
	if (!found)
		return 0;
	u64 end = now();
	struct call call = *found;
	map_delete(&under_way, &tid);
	if (!(*rule & CALL_RECORDED))
		return 0;
	if (CALL_PATH(*rule)) {
		tell_with_paths(regs, &call, number, *rule, context[1], both, end);
		return 0;
	}
	struct record *record = reserve(KIND_CALL, tgid, tid);
	if (!record)
		return 0;
	record->end = end;
	fill_call(record, regs, &call, number, *rule, context[1]);
	submit(record);
	return 0;
}
