/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Maps and helpers that the sampling program and the runtimes' programs share in the kernel. */
#ifndef BPF_PROGRAMS_SHARED_BPF_H
#define BPF_PROGRAMS_SHARED_BPF_H

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>
#include "bpf/walk/walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} ring SEC(".maps");

/* The programs, by enum runtime. RUNTIME_NONE is the native walk, which completes a sample. Those
 * from RUNTIME_MAX on take over frames of native code. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2 * RUNTIME_MAX);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

/* The maps that the runtimes' programs share, so that another runtime takes no more memory. */

/* The state of the runtime's walk that is running. */
struct runtime_state {
	__u64 words[RUNTIME_STATE / 8];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct runtime_state);
} states SEC(".maps");

/* Objects that were already copied. A tag is a hash of process and address space (the process may
 * exec), address and check value. A set has four tags, the newest in the lowest bits. An object
 * whose tag was displaced is copied again. An object whose tag collides, or that did not fit the
 * ring, is requested later. */
struct seen {
	__u64 sets[RUNTIME_SEEN_SETS];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct seen);
} seen_objects SEC(".maps");

/* The copy that is currently made. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_object);
} objects SEC(".maps");

/* The memory that a runtime fetches for a deferred walk, with an element for each cpu, since values
 * of per-cpu maps must be small. prof-bpf sets the number of elements. */
#define SHARED_FETCHED_INDEX 4096 /* a power of two */
struct fetched {
	struct sample_fetched sent;
	__u64 keep; /* lines are being stored */
	/* 1 + the number of the line with this hash, or an old value */
	__u16 index[SHARED_FETCHED_INDEX];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fetched);
} fetched SEC(".maps");

enum counter {
#define COUNTER(name) SHARED_COUNTER_##name,
#include "bpf/counters.def"
#undef COUNTER
	SHARED_COUNTERS,
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SHARED_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* Returns n, or max if n is larger. The verifier, at least before 6.8, needs this: it learns about
 * a register from a comparison, but not about a 32-bit copy of its lower half that the compiler
 * made. So numbers that are compared and then used have 64 bits, and the compiler cannot see their
 * origin. */
static __always_inline __u64 at_most(__u64 n, __u64 max)
{
	ENV_OPAQUE(n);
	return n > max ? max : n;
}

static __always_inline void count(__u32 which, __u64 n)
{
	__u64 *c = bpf_map_lookup_elem(&counters, &which);

	if (c)
		*c += n;
}

/* Whether a ring is more than half full. */
static __always_inline bool shared_fills(void *which)
{
	return bpf_ringbuf_query(which, BPF_RB_AVAIL_DATA) >
	       bpf_ringbuf_query(which, BPF_RB_RING_SIZE) / 2;
}

/* Whether the ring is so full that the rest is for samples, which have priority. */
static __always_inline bool shared_ring_fills(void)
{
	return shared_fills(&ring);
}

/* Sends n bytes that belong to a sample. One user's programs can cause many of them. So when the
 * ring is a quarter full they wake prof-bpf, which otherwise empties it at its timer. Returns
 * whether there was space. */
static __always_inline bool shared_send(void *data, __u64 n)
{
	const bool filling = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >
			     bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 4;

	return bpf_ringbuf_output(&ring, data, n,
				  filling ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP) == 0;
}

static __always_inline struct walk *scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&walks, &zero);
}

/* Returns the runtime_entry at a position, or NULL. */
static __always_inline const struct runtime_entry *runtime_entry(__u32 position)
{
	const struct slab *s = env_slab(position, 8);

	return s ? ENV_AT(s, position, struct runtime_entry, 8) : NULL;
}

/* Returns the position of the runtime_entry of the runtime that takes over the frame. */
static __always_inline __u32 runtime_taker(const struct walk *w)
{
	return w->runtime_first + w->taker % TABLES_PROCESS_RUNTIMES_MAX * 8;
}

/* Continues with the next runtime of the process. Returns if its program is missing. */
static __always_inline void runtime_next(void *ctx, struct walk *w)
{
	const struct runtime_entry *e = runtime_entry(w->runtimes);

	if (e && e->runtime != RUNTIME_NONE) {
		w->slot = e->slot;
		bpf_tail_call(ctx, &programs, e->runtime);
	}
	w->runtimes_left = 0;
}

/* Continues with the native walk. Returns only if the kernel refuses: the sample is then lost, and
 * the next one is not affected. A sample makes fewer tail calls than the kernel's limit, so this
 * case has no reason of its own: it counts as ring-full. */
static __always_inline void walk_next(void *ctx)
{
	bpf_tail_call(ctx, &programs, RUNTIME_NONE);
	count(SHARED_COUNTER_RING_FULL, 1);
}

/* Ends a runtime's program. */
static __always_inline void runtime_done(void *ctx, struct walk *w)
{
	w->runtimes += sizeof(struct runtime_entry) / 4;
	w->turn++;
	if (w->runtimes_left && --w->runtimes_left)
		runtime_next(ctx, w);
	walk_next(ctx);
}

#endif
