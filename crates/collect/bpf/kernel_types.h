/* The few fields of the kernel's structures that are read. Places are those of the running kernel: the loader moves every
 * access by the kernel's own type information (CO-RE), so only names and types must match. */
#pragma once
#include "helpers.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r9, r8, r10, dx, si, di, orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
};
#else
#error "system calls are known for x86-64 and arm64"
#endif

struct thread_info {
	u32 status;
};

struct super_block {
	u32 s_dev;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};


typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct task_struct {
#if defined(__TARGET_ARCH_x86)
	struct thread_info thread_info;
#endif
	s32 pid;
	s32 tgid;
	struct files_struct *files;
	struct signal_struct *signal;
};

struct linux_binprm {
	const char *filename;
	const char *interp;
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
	u64 start_time_ns;
};

struct address_space {
	struct inode *host;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned long _flags_1;
};

/* Before Linux 6.6 the order of a folio had a field of its own. */
struct folio___with_order {
	u8 _folio_order;
};

struct kiocb {
	s64 ki_pos;
};

struct io_rw {
	struct kiocb kiocb;
	u32 len;
};

struct io_cqe {
	u64 user_data;
	int fd;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
};

struct io_uring_cqe {
	s32 res;
	u32 flags;
};

#pragma clang attribute pop

/* The running task, as a pointer whose fields are read without a helper. */
static struct task_struct *(*const current_task)(void) = (void *)158;
