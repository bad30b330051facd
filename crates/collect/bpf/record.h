/* What goes to user space: `crates/collect/src/kernel/record.rs` reads exactly this. */
#pragma once
#include "helpers.h"

enum kind {
	KIND_CALL = 1,
	KIND_BLOCK = 2,
	KIND_URING = 3,
	KIND_FAULT = 4,
	KIND_FORK = 5,
	KIND_EXEC = 6,
	KIND_EXIT = 7,
};

/* Kernel addresses of open files and inodes are identities: user space compares them and never shows them. */
struct identity {
	u64 file;
	u64 inode;
};

struct record {
	u8 kind;
	u8 reserved_flags;
	u16 number; /* of the call or the io_uring operation */
	u32 device;
	u32 tgid;
	u32 tid;
	u64 start;
	u64 end;
	s64 result;
	u64 args[6];
	struct identity first;
	struct identity second;
	u64 missed; /* bytes that were brought into the page cache meanwhile */
	u16 path_len;
	u16 second_path_len;
	u32 reserved;
};

/* The longest path with its zero. */
#define PATH_ROOM 4096

struct record_with_paths {
	struct record record;
	char paths[2 * PATH_ROOM];
};
