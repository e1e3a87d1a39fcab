/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Deferring a walk: sends registers and a copy of the thread's stacks to user space, which walks
 * them once it knows enough (tools/prof-bpf/stream/deferred.c). Only sample.bpf.c includes this
 * file. */
#ifndef BPF_PROGRAMS_DEFER_BPF_H
#define BPF_PROGRAMS_DEFER_BPF_H

#include "bpf/programs/shared.bpf.h"
#include "bpf/programs/task.bpf.h"

const volatile __u32 signal_state; /* bytes of extended state in a signal frame; 0: unknown */

/* The ring of deferred samples: far fewer than others, but each with a copy of stacks. When it is
 * half full, each sample wakes prof-bpf. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} deferred_ring SEC(".maps");

/* Whether user space may be able to walk further: it learns of processes and files a moment
 * later. */
static __always_inline bool can_defer(const struct walk *w)
{
	return w->reason == WALK_NO_PROCESS || w->reason == WALK_NO_MAPPING ||
	       w->reason == WALK_ROWS_PENDING || w->reason == WALK_STALE;
}

/* Returns the end of the copy on a process's first stack: where the stack began, plus the walker's
 * window. So most copies are only a page or two. The end of another thread's stack is unknown. */
static __always_inline __u64 stack_end(__u64 sp)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 top = BPF_CORE_READ(task, mm, start_stack);

	return sp <= top && top - sp < DEFERRED_STACK ? top + WALK_WINDOW : (__u64)-1;
}

/* Adds a stack to the copy, at most `chunks` chunks. */
static __always_inline void take_range(struct deferred *d, enum deferred_stack which, __u64 sp,
				       __u64 end, __u32 chunks)
{
	__u64 start = sp & ~(__u64)(DEFERRED_CHUNK - 1);

	d->ranges[which].start = start;
	d->ranges[which].end = end - start > chunks * DEFERRED_CHUNK
				       ? start + chunks * DEFERRED_CHUNK
				       : end;
}

#define DEFER_UCONTEXT_STACK 16	    /* offset in a ucontext: uc_stack */
#define DEFER_UCONTEXT_RSP 160	    /* likewise: gregs[REG_RSP] */
#define DEFER_UCONTEXT_TO_STATE 448 /* bytes from a ucontext to the extended state behind it */

/* Returns RSP before the first signal handler, if the thread runs on the stack for signal handlers;
 * otherwise 0. The kernel lays out the frame from the top (arch/x86/kernel/signal.c:
 * get_sigframe). */
static __always_inline __u64 interrupted(struct deferred *d)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 start = BPF_CORE_READ(task, sas_ss_sp), size = BPF_CORE_READ(task, sas_ss_size);
	__u64 sp = d->regs[UNWIND_REG_RSP];
	struct {
		__u64 sp, flags, size;
	} said;

	if (!signal_state || sp - start >= size)
		return 0;
	__u64 ucontext = ((start + size - signal_state) & ~63ull) - DEFER_UCONTEXT_TO_STATE;
	if (bpf_probe_read_user(&said, sizeof(said), (void *)(ucontext + DEFER_UCONTEXT_STACK)) ||
	    said.sp != start || said.size != size ||
	    bpf_probe_read_user(&sp, sizeof(sp), (void *)(ucontext + DEFER_UCONTEXT_RSP)))
		return 0;
	d->ranges[DEFERRED_LEAF].end = start + size;
	return sp;
}

/* Offsets of fields of Go's g and m, in words; unchanged since at least 1.9. Back pointers verify
 * each g and m. These words only decide what to copy; rows have their own offsets, from the
 * program. */
enum go {
	DEFER_GO_LO = 0,
	DEFER_GO_HI = 1,
	DEFER_GO_M = 6,
	DEFER_GO_SCHED_SP = 7,
	DEFER_GO_M_G0 = 0,
	DEFER_GO_M_CURG = 24,
	DEFER_GO_M_CURG_1_25 = 23, /* from 1.25 on */
};
/* A stack up to this size is Go's own. A goroutine's stack is copied whole: around calls of the
 * vDSO, its g does not tell how far down it extends. A larger stack is C's, and Go may not know its
 * end. */
#define DEFER_GO_OWN_STACK 32768
#define DEFER_GO_ABOVE_C 16384

static __always_inline bool take_words(struct deferred *d, enum deferred_object which, __u64 at)
{
	struct deferred_words *o = &d->objects[which];

	o->at = at < 4096 || bpf_probe_read_user(o->words, sizeof(o->words), (void *)at) ? 0 : at;
	return o->at;
}

/* Adds the stack of a g. If the leaf is on it, the g is only used for the end of the leaf's
 * stack. */
static __always_inline void take_g_stack(struct deferred *d, enum deferred_object g,
					 enum deferred_stack which, __u64 before_signal,
					 __u32 chunks)
{
	__u64 lo = d->objects[g].words[DEFER_GO_LO], hi = d->objects[g].words[DEFER_GO_HI];
	__u64 sp = d->objects[g].words[DEFER_GO_SCHED_SP];
	bool own = hi - lo <= DEFER_GO_OWN_STACK || which == DEFERRED_CURG;
	__u64 end = hi + (own ? WALK_WINDOW : DEFER_GO_ABOVE_C), first = stack_end(sp);

	if (end > first)
		end = first;

	if (d->regs[UNWIND_REG_RSP] - lo < hi - lo) {
		if (own)
			d->ranges[DEFERRED_LEAF].end = end;
		return;
	}
	if (before_signal - lo < hi - lo) {
		d->ranges[DEFERRED_INTERRUPTED].end = 0;
		sp = before_signal;
	} else if (which == DEFERRED_CURG && hi - lo <= DEFER_GO_OWN_STACK) {
		sp = lo;
	}
	if (sp - lo < hi - lo)
		take_range(d, which, sp, end, chunks);
}

/* Adds the stacks of a thread of Go: it has two, and one for signals. */
static __always_inline void take_go(struct deferred *d, __u64 before_signal)
{
	__u64 at = d->tls - d->g_below;

	if (!d->g_below || !take_words(d, DEFERRED_TLS, at) ||
	    !take_words(d, DEFERRED_G_NOW, d->objects[DEFERRED_TLS].words[0]))
		return;
	__u64 m = d->objects[DEFERRED_G_NOW].words[DEFER_GO_M];
	if (!take_words(d, DEFERRED_M, m) ||
	    !take_words(d, DEFERRED_G_OF_THREAD, d->objects[DEFERRED_M].words[DEFER_GO_M_G0]) ||
	    d->objects[DEFERRED_G_OF_THREAD].words[DEFER_GO_M] != m)
		return;
	take_g_stack(d, DEFERRED_G_OF_THREAD, DEFERRED_G0, before_signal, 4);
	if ((take_words(d, DEFERRED_G_OF_USER, d->objects[DEFERRED_M].words[DEFER_GO_M_CURG]) &&
	     d->objects[DEFERRED_G_OF_USER].words[DEFER_GO_M] == m) ||
	    (take_words(d, DEFERRED_G_OF_USER,
			d->objects[DEFERRED_M].words[DEFER_GO_M_CURG_1_25]) &&
	     d->objects[DEFERRED_G_OF_USER].words[DEFER_GO_M] == m))
		take_g_stack(d, DEFERRED_G_OF_USER, DEFERRED_CURG, before_signal, 24);
}

/* Copies the stacks that a walk may reach, or only the leaf's (others is false); at most `chunks`
 * chunks, a constant. */
static __always_inline void take_stacks(struct deferred *d, bool others, __u32 chunks)
{
	__u64 sp = d->regs[UNWIND_REG_RSP];

	for (int i = 0; i < DEFERRED_STACKS; i++)
		d->ranges[i].start = d->ranges[i].end = 0;
	for (int i = 0; i < DEFERRED_OBJECTS; i++)
		d->objects[i].at = 0;
	take_range(d, DEFERRED_LEAF, sp, stack_end(sp), chunks);
	if (others) {
		__u64 before_signal = interrupted(d);

		if (before_signal)
			take_range(d, DEFERRED_INTERRUPTED, before_signal, stack_end(before_signal),
				   24);
		take_go(d, before_signal);
	}

	/* The position is kept in memory, which the verifier does not track. */
	d->next = d->chunks = 0;
	__u64 at = d->ranges[0].start;
	for (__u32 i = 0; i < chunks + DEFERRED_STACKS - 1; i++) {
		__u64 n = d->chunks, which = d->next;

		ENV_OPAQUE(n);
		ENV_OPAQUE(which);
		if (n >= chunks || which >= DEFERRED_STACKS)
			break;
		if (at >= d->ranges[which].end) {
			if (which == DEFERRED_LEAF)
				break;
			d->next = which + 1;
			at = d->ranges[which + 1].start;
			continue;
		}
		if (!bpf_probe_read_user(d->stack + n * DEFERRED_CHUNK, DEFERRED_CHUNK,
					 (void *)at)) {
			d->chunk_at[n] = at;
			d->chunks = n + 1;
		}
		at += DEFERRED_CHUNK;
	}
	/* The stack at which the last copy ended. */
	__u64 last = d->next;
	ENV_OPAQUE(last);
	if (last < DEFERRED_STACKS)
		d->ranges[last].end = at;
}

static __always_inline void take_returns(struct probed_return *to)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct return_instance *r = NULL;

	if (bpf_core_field_exists(task->utask)) {
		struct uprobe_task *utask = BPF_CORE_READ(task, utask);

		r = utask ? BPF_CORE_READ(utask, return_instances) : NULL;
	}
	for (int i = 0; i < DEFERRED_RETURNS; i++) {
		to[i].stack = r ? BPF_CORE_READ(r, stack) : 0;
		to[i].pc = r ? BPF_CORE_READ(r, orig_ret_vaddr) : 0;
		r = r ? BPF_CORE_READ(r, next) : NULL;
	}
}

/* Whether a g is at this address, by the same check as in take_go. */
__attribute__((noinline)) int is_g(__u64 g)
{
	__u64 m, g0, back;

	return g >= 4096 && !(g & 7) && !bpf_probe_read_user(&m, 8, (void *)(g + 8 * DEFER_GO_M)) &&
	       !bpf_probe_read_user(&g0, 8, (void *)(m + 8 * DEFER_GO_M_G0)) &&
	       !bpf_probe_read_user(&back, 8, (void *)(g0 + 8 * DEFER_GO_M)) && back == m;
}

/* How many words below the TLS base may point to a g. A program's own is the first. In a library
 * that was loaded later, it comes after libc's words. */
#define DEFER_G_WORDS 32

/* Returns how many bytes below the TLS base the pointer to g is; 0: the thread does not run Go.
 * Overwrites the walk's window. */
__attribute__((noinline)) int find_g(void)
{
	struct walk *w = scratch();
	__u64 tls = env_tls(), g;

	if (!w || !tls || bpf_probe_read_user(&g, 8, (void *)(tls - 8)))
		return 0;
	if (is_g(g))
		return 8;
	if (bpf_probe_read_user(w->window, DEFER_G_WORDS * 8, (void *)(tls - DEFER_G_WORDS * 8)))
		return 0;
	for (__u32 i = 2; i <= DEFER_G_WORDS; i++) {
		if (is_g(w->window[DEFER_G_WORDS - i]))
			return i * 8;
	}
	return 0;
}

/* Whether the small size is enough: the leaf is near the top of a process's first stack, and there
 * is no other stack. This is the usual case. */
static __always_inline bool is_small(const struct walk *w, __u32 g_below)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 sp = w->regs[UNWIND_REG_RSP], start = sp & ~(__u64)(DEFERRED_CHUNK - 1);

	return stack_end(sp) - start <= DEFERRED_SMALL_CHUNKS * DEFERRED_CHUNK &&
	       sp - BPF_CORE_READ(task, sas_ss_sp) >= BPF_CORE_READ(task, sas_ss_size) && !g_below;
}

/* Writes the leaf's registers and the top of the stack to the space reserved in the ring. Returns
 * false if d is NULL, since the ring had no space. Then the sample is sent as it is, and its own
 * reason tells what the walk lacked, so no loss is counted. small: a constant. */
static __always_inline bool defer_into(struct walk *w, struct deferred_sample *d, __u32 g_below,
				       bool small)
{
	if (!d)
		return false;
	w->sample.flags |= SAMPLE_DEFERRED;
	w->sample.reason = w->reason;
	w->sample.user_frames = 0;
	w->sample.at_slot = w->at_slot;
	d->sample = w->sample;
	bpf_probe_read_kernel(d->kernel, sizeof(d->kernel), w->words);
	d->deferred.pc = w->leaf_pc;
	d->deferred.exact = w->leaf_exact;
	d->deferred.tls = env_tls();
	d->deferred.g_below = g_below;
	/* If this fails, the helper leaves zeros. */
	bpf_probe_read_user(d->deferred.code, sizeof(d->deferred.code), (void *)(w->leaf_pc - 4));
	for (int i = 0; i < 16; i++)
		d->deferred.regs[i] = w->regs[i];
	take_returns(d->deferred.returns);
	take_stacks(&d->deferred, !small, small ? DEFERRED_SMALL_CHUNKS : DEFERRED_CHUNKS);
	bpf_ringbuf_submit(d,
			   shared_fills(&deferred_ring) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return true;
}

/* Sends the runtimes' items first, as a separate sample, since few deferred samples have any. */
static __always_inline void send_items(struct walk *w)
{
	__u64 head = at_most(w->sample.kernel_frames + 2u * w->sample.items, SAMPLE_MAX_HEAD);
	__u16 flags = w->sample.flags;

	w->sample.flags |= SAMPLE_ITEMS;
	w->sample.user_frames = 0;
	if (bpf_ringbuf_output(&ring, &w->sample, sizeof(w->sample) + head * sizeof(__u64),
			       BPF_RB_NO_WAKEUP))
		w->sample.items = 0;
	w->sample.flags = flags;
}

static __always_inline bool defer(struct walk *w)
{
	if (w->sample.items)
		send_items(w);
	__u32 g_below = find_g();

	if (is_small(w, g_below))
		return defer_into(w, bpf_ringbuf_reserve(&deferred_ring, DEFERRED_SMALL_BYTES, 0),
				  0, true);
	return defer_into(w, bpf_ringbuf_reserve(&deferred_ring, sizeof(struct deferred_sample), 0),
			  g_below, false);
}

/* Puts the sample into a ring. A global function, which the verifier checks once: both programs end
 * with it. */
__attribute__((noinline)) int finish(void)
{
	struct walk *w = scratch();

	if (!w)
		return 1;
	__u32 head = w->sample.kernel_frames + 2u * w->sample.items;
	__u32 n = w->count;

	if (w->sample.flags & SAMPLE_IN_EXEC && !can_defer(w)) {
		walk_exec(w);
		n = w->count;
	}
	if (can_defer(w) && defer(w)) {
		count(SHARED_COUNTER_RUNS, 1);
		count(SHARED_COUNTER_NS, bpf_ktime_get_ns() - w->sample.time_ns);
		return 0;
	}
	n = at_most(n, SAMPLE_WORDS);
	w->sample.reason = w->reason;
	w->sample.at_slot = w->at_slot;
	w->sample.user_frames = n;
	/* walk_place made sure that the words fit, but the verifier cannot know that. */
	__u64 words = at_most(head + n, SAMPLE_WORDS);
	if (bpf_ringbuf_output(&ring, &w->sample, sizeof(w->sample) + words * sizeof(__u64),
			       BPF_RB_NO_WAKEUP))
		count(SHARED_COUNTER_RING_FULL, 1);
	count(SHARED_COUNTER_RUNS, 1);
	count(SHARED_COUNTER_NS, bpf_ktime_get_ns() - w->sample.time_ns);
	return 0;
}

#endif
