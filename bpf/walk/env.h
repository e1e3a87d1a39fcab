/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The walker's environment. In the kernel it consists of helpers and maps. In user space (tests,
 * stopped processes, core files) it is a reader of memory and plain arrays. The walker's source is
 * the same in both.
 */
#ifndef BPF_WALK_ENV_H
#define BPF_WALK_ENV_H

#include "bpf/deferred.h"
#include "bpf/tables.h"

#ifdef __bpf__

#include <bpf/bpf_helpers.h>

struct slab_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__uint(value_size, TABLES_SLAB_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, TABLES_MAX_SLABS);
	__type(key, __u32);
	__array(values, struct slab_map);
} slabs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLES_MAX_FILES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct file_entry);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLES_MAX_RULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rule_entry);
} rules SEC(".maps");

#define ENV_FUNCTION __attribute__((noinline))
/* Prevents the compiler from comparing a copy of the value that is used afterwards: the verifier
 * would then not know its range. */
#define ENV_OPAQUE(x) asm volatile("" : "+r"(x))
/* For a loop that older verifiers (5.10) would refuse. */
#define ENV_UNROLL _Pragma("clang loop unroll(full)")
/* Makes the compiler reload values from memory. */
#define ENV_FORGET() asm volatile("" ::: "memory")
#define ENV_INLINE static __always_inline

ENV_INLINE long env_read_user(void *dst, __u32 size, __u64 addr)
{
	return bpf_probe_read_user(dst, size, (const void *)addr);
}

ENV_INLINE const struct slab *env_slab(__u32 position, __u32 words)
{
	__u32 i = position >> TABLES_SLAB_WORDS_SHIFT, zero = 0;
	void *inner = bpf_map_lookup_elem(&slabs, &i);

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

ENV_INLINE const struct file_entry *env_file(__u32 slot)
{
	return bpf_map_lookup_elem(&files, &slot);
}

ENV_INLINE const struct unwind_rule *env_rule(__u32 number)
{
	const struct rule_entry *e = bpf_map_lookup_elem(&rules, &number);

	return e ? &e->rule : NULL;
}

/* The TLS base of the walked thread: the address of fs:0. 0: unknown. */
static __always_inline __u64 env_tls(void);
/* Gives the offset of g from the TLS base, if it is already known and need not be read. */
static __always_inline bool env_tls_word(__u64 *ret)
{
	return false;
}
/*
 * Corrects a pc outside all files that uprobes put there: the kernel's trampoline in place of a
 * return address, or a copy of an instruction. Sets *pc and *sp to their values without the probe.
 * leaf: pc is the thread's own.
 */
static __always_inline bool env_probed(__u64 *pc, __u64 *sp, bool leaf);

#else /* user space */

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#define ENV_FUNCTION static inline
#define ENV_OPAQUE(x)
#define ENV_UNROLL
#define ENV_FORGET()
#define ENV_INLINE static inline

/* The environment of a walk in user space. read_user: returns 0, or a negative number if [addr,
 * addr+size) is not fully readable. slab: returns the slab of a position, of which `words` from
 * there on will be read; NULL after the last slab. Its result is valid until the next call. */
struct env {
	long (*read_user)(void *ctx, void *dst, uint32_t size, uint64_t addr);
	void *ctx;
	const struct slab *(*slab)(void *tables, uint32_t position, uint32_t words);
	void *tables;
	const struct file_entry *files; /* TABLES_MAX_FILES entries */
	const void *rules; /* TABLES_MAX_RULES entries, TABLES_RULE_STRIDE bytes apart */
	uint64_t tls;	   /* of the walked thread; 0: unknown */
	uint64_t g_below;  /* how far below tls g was found, in bytes; 0: read the
					 * word */
	/* Copies an object that may move (bpf/walk/runtime_walk.h); may be NULL. told: its first
	 * piece, or NULL. */
	void (*object)(void *ctx, const struct runtime_copy *how, uint64_t key, uint64_t check,
		       uint64_t address, const __u64 *told);
	bool is_copy;  /* the memory is a copy, which may be too short */
	bool is_short; /* a read failed because the copy was too short */
	/* Return addresses that uretprobes replaced; `returns` is their number. */
	const struct probed_return *returned;
	uint32_t returns;
};
/* The environment of the walk that is running; defined in common/walk/env.c. */
extern const struct env *env_current;

ENV_INLINE long env_read_user(void *dst, __u32 size, __u64 addr)
{
	return env_current->read_user(env_current->ctx, dst, size, addr);
}

ENV_INLINE const struct slab *env_slab(__u32 position, __u32 words)
{
	return env_current->slab(env_current->tables, position, words);
}

ENV_INLINE const struct file_entry *env_file(__u32 slot)
{
	return slot < TABLES_MAX_FILES ? &env_current->files[slot] : NULL;
}

ENV_INLINE const struct unwind_rule *env_rule(__u32 number)
{
	return number < TABLES_MAX_RULES
		       ? (const struct unwind_rule *)((const char *)env_current->rules +
						      number * TABLES_RULE_STRIDE)
		       : NULL;
}

ENV_INLINE bool env_probed(__u64 *pc, __u64 *sp, bool leaf)
{
	for (uint32_t i = 0; i < env_current->returns; i++) {
		const struct probed_return *r = &env_current->returned[i];

		if (r->stack && r->stack == *sp - 8) {
			*pc = r->pc;
			return true;
		}
	}
	return false;
}

ENV_INLINE __u64 env_tls(void)
{
	return env_current->tls;
}

ENV_INLINE bool env_tls_word(__u64 *ret)
{
	*ret = env_current->g_below ? -(uint64_t)env_current->g_below : *ret;
	return env_current->g_below;
}

#endif

/* The words of a slab at a position, which is a multiple of its unit (2: block_entry, 8: map_entry,
 * 1: row). The mask keeps the access inside the slab. */
#define ENV_AT(slab, position, type, unit) \
	((const type *)&(slab)->bytes[((position) & (TABLES_SLAB_WORDS - (unit))) * 4])

#endif
