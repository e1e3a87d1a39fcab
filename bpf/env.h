/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * What the walker stands on. In the kernel these are helpers and maps; in user space (tests,
 * stopped processes, core files) they are a reader of memory and plain arrays. The walker's text is
 * the same in both.
 */
#ifndef PROFPIPE_ENV_H
#define PROFPIPE_ENV_H

#include "bpf/sample.h"
#include "bpf/tables.h"

#ifdef __bpf__

#include <bpf/bpf_helpers.h>

struct slab_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__uint(value_size, SLAB_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SLAB_MAX);
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
/* What is compared is what is used then: the compiler must not compare something equal. */
#define ENV_OPAQUE(x) asm volatile("" : "+r"(x))
#define ENV_INLINE static __always_inline

ENV_INLINE long env_read_user(void *dst, __u32 size, __u64 addr)
{
	return bpf_probe_read_user(dst, size, (const void *)addr);
}

ENV_INLINE const struct slab *env_slab(__u32 position, __u32 words)
{
	__u32 i = position >> SLAB_WORDS_SHIFT, zero = 0;
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

/* The TLS base of the thread that is walked: where fs:0 lies. 0: not known. */
static __always_inline __u64 env_tls(void);
/* Where from there g is, when the word that says so need not be read. */
static __always_inline bool env_tls_word(__u64 *ret)
{
	return false;
}
/*
 * Where pc, which lies in no file, stands for another address since uprobes are at work: a return
 * address that the kernel took for its trampoline's, or an instruction that runs in a copy. *pc and
 * *sp are as without the probe. leaf: pc is the thread's own.
 */
static __always_inline bool env_probed(__u64 *pc, __u64 *sp, bool leaf);

#else /* user space */

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#define ENV_FUNCTION static inline
#define ENV_OPAQUE(x)
#define ENV_INLINE static inline

/* What a user-space walk reads. read_user: 0, or negative where [addr, addr+size) is not all
 * readable. slab: that of a position, of which `words` from there on will be read; NULL past the
 * last; holds until the next call. */
struct env {
	long (*read_user)(void *ctx, void *dst, uint32_t size, uint64_t addr);
	void *ctx;
	const struct slab *(*slab)(void *tables, uint32_t position, uint32_t words);
	void *tables;
	const struct file_entry *files; /* TABLES_MAX_FILES of them */
	const void *rules;		/* TABLES_MAX_RULES of them, RULE_STRIDE bytes apart */
	uint64_t tls;			/* of the thread that is walked; 0: not known */
	uint64_t g_below;		/* bytes below it that g was found; 0: is to be read */
	/* Return addresses that uretprobes took away: returns of them. */
	const struct probed_return *returned;
	uint32_t returns;
};
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
						      number * RULE_STRIDE)
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

/* The words of a slab, at a position whose unit (2: block_entry, 8: map_entry, 1: row) it is a
 * multiple of: the mask is what keeps it inside. */
#define ENV_AT(slab, position, type, unit) \
	((const type *)&(slab)->bytes[((position) & (SLAB_WORDS - (unit))) * 4])

#endif
