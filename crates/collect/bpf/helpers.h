/* What a BPF program is made of: sections, map declarations, the kernel's helper functions by their fixed numbers
 * (linux/bpf.h, `enum bpf_func_id`). Own declarations, so that a build needs clang and nothing else. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

#define MAP_UINT(name, value) int (*name)[value]
#define MAP_TYPE(name, value) typeof(value) *name

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_RINGBUF = 27 };
enum { ANY = 0 };
enum { RING_NO_WAKEUP = 1, RING_FORCE_WAKEUP = 2, RING_AVAILABLE = 0, RING_PRODUCED = 3 };

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const now)(void) = (void *)5;
static u64 (*const current_pid_tgid)(void) = (void *)14;
static long (*const current_comm)(void *out, u32 size) = (void *)16;
static long (*const read_kernel)(void *out, u32 size, const void *address) = (void *)113;
static long (*const read_user_text)(void *out, u32 size, const void *address) = (void *)114;
static long (*const read_kernel_text)(void *out, u32 size, const void *address) = (void *)115;
static long (*const ring_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*const ring_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const ring_submit)(void *record, u64 flags) = (void *)132;
static u64 (*const ring_query)(void *ring, u64 what) = (void *)134;

/* A field of a kernel structure behind a pointer that the verifier does not know; its place is found at load time. */
#define READ(out, pointer, field) \
	read_kernel(&(out), sizeof(out), __builtin_preserve_access_index(&(pointer)->field))
/* Whether this kernel's structure has the field. */
#define HAS_FIELD(type, field) __builtin_preserve_field_info(((type *)0)->field, 2)
