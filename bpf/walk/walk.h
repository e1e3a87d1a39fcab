/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The walker: finds the frames of a user stack from the registers, by the unwind tables (tables.h).
 *
 * One step goes from a frame to its caller. It finds the mapping of the pc, which is usually the
 * previous one. It finds the 2 KiB block of the file offset, and the row by binary search in that
 * block. Then it applies the row's rule. Without rows (JIT code, assembly) it falls back to the
 * frame pointer and marks the frame. It reads 512 bytes of stack at a time, since a read of user
 * memory costs as much as the rest of a step.
 *
 * A walk is complete if it ends at a proven root:
 *
 * - A rule whose return address is undefined. Tables, and the code itself, mark entry points and
 *   the start of threads this way.
 * - A return address of zero in a caller that was reached by tables alone. Tables are right at
 *   calls, since exceptions rely on them, so the function would really return to zero.
 *
 * In other cases a zero may be any word: after a guess or a frame pointer, and in the leaf, where
 * hand-written tables omit prologues. The walk then ends as WALK_NO_ROOT. It does the same at a
 * frame pointer of zero. If it followed a frame pointer that may not be the frame's own (owner.h),
 * it ends as WALK_CALLER_UNSURE.
 *
 * The same source runs in the kernel, under the verifier, and in user space: all loops are bounded,
 * and struct walk is the only state.
 */
#ifndef BPF_WALK_WALK_H
#define BPF_WALK_WALK_H

#include "bpf/walk/walk_rules.h"
#include "bpf/walk/walk_state.h"

/* Adds an item of the current runtime (bpf/runtime.h) after the existing ones. */
ENV_INLINE void walk_item(struct walk *w, __u64 kind, __u64 address, __u64 second)
{
	__u32 i = w->sample.kernel_frames + 2u * w->sample.items;

	if (i >= SAMPLE_MAX_HEAD - 1)
		return;
	w->words[i] = kind << RUNTIME_ITEM_SHIFT |
		      (w->slot & RUNTIME_ITEM_SLOT_MASK) << RUNTIME_ITEM_SLOT_SHIFT |
		      (address & RUNTIME_ADDRESS_MASK);
	w->words[i + 1] = second;
	w->sample.items++;
}

/* Adds an entry after the frames of its chain. address: in the C frame that runs them; 0:
 * unknown. */
ENV_INLINE void walk_entry(struct walk *w, __u64 address)
{
	struct walk_entries *e = &w->entries[w->turn % TABLES_PROCESS_RUNTIMES_MAX];
	__u32 i = w->sample.kernel_frames + 2u * w->sample.items, last = e->last;

	/* Memory below the stack pointer belongs to a call that has returned. */
	if (address < w->sp)
		address = 0;
	walk_item(w, RUNTIME_ENTRY, address, 0);
	if (!address)
		return;
	if (!e->at) {
		e->next = i;
		e->at = address;
		if (!w->entry_at || address < w->entry_at)
			w->entry_at = address;
	} else if (last < SAMPLE_MAX_HEAD - 1) {
		w->words[last + 1] = i;
	}
	e->last = i;
}

ENV_INLINE void walk_next_entry(const struct walk *w, struct walk_entries *e)
{
	__u32 next = 0;

	if (e->next < SAMPLE_MAX_HEAD - 1)
		next = w->words[e->next + 1];
	e->next = next;
	e->at = 0;
	if (!next)
		return;
	ENV_OPAQUE(next);
	if (next < SAMPLE_MAX_HEAD)
		e->at = w->words[next] & RUNTIME_ADDRESS_MASK;
}

/* Marks a frame, by its index in words[], as one that runs a chain. */
ENV_INLINE void walk_mark(struct walk *w, __u32 i)
{
	__u64 passed = w->entry_at, nearest = 0;

	if (i < SAMPLE_WORDS)
		w->words[i] |= SAMPLE_FRAME_ENTRY;
	for (__u32 k = 0; k < TABLES_PROCESS_RUNTIMES_MAX; k++) {
		struct walk_entries *e = &w->entries[k];

		if (passed && e->at == passed) {
			passed = 0;
			walk_next_entry(w, e);
		}
		if (e->at - 1 < nearest - 1)
			nearest = e->at;
	}
	w->entry_at = nearest;
}

/* Whether a place in a runtime's file is in its loop. entry: position of its runtime_entry. */
ENV_FUNCTION __u32 walk_loop_has(__u32 entry, __u64 offset)
{
	const struct slab *s = env_slab(entry, 8);

	if (!s)
		return 0;
	__u32 config = ENV_AT(s, entry, struct runtime_entry, 8)->config;

	s = env_slab(config, RUNTIME_CONFIG_WORDS);
	if (!s)
		return 0;
	const struct runtime_config *c = ENV_AT(s, config, struct runtime_config,
						RUNTIME_CONFIG_WORDS);

	for (__u32 i = 0; i < RUNTIME_RANGES; i++) {
		if (i < c->ranges && offset - c->loop[i].start < c->loop[i].end - c->loop[i].start)
			return 1;
	}
	return 0;
}

/* Returns 1 + the index of the first of the runtimes in `left` that must be asked, or 0. first:
 * position of runtime_entry[0]. loop: only those that have the offset in their loop. */
ENV_FUNCTION __u32 walk_taker(__u32 first, __u32 left, __u32 loop, __u64 offset)
{
	for (__u32 k = 0; k < TABLES_PROCESS_RUNTIMES_MAX; k++) {
		if (left >> k & 1 && (!loop || walk_loop_has(first + k * 8, offset)))
			return k + 1;
	}
	return 0;
}

/* Returns the number of the rule of generated code whose frames have one layout
 * (RUNTIME_RULES_GENERATED), or TABLES_RULE_GAP; with TABLES_RULE_STUB, all of config.rule. rulers:
 * a bit for each runtime that has such a rule. */
ENV_FUNCTION __u32 walk_constant_rule(__u32 first, __u32 rulers)
{
	__u32 k = rulers & 1 ? 0 : rulers & 2 ? 1 : rulers & 4 ? 2 : 3, entry = first + k * 8;
	const struct slab *s = env_slab(entry, 8);

	if (!s)
		return TABLES_RULE_GAP;
	__u32 config = ENV_AT(s, entry, struct runtime_entry, 8)->config;
	__u32 slot = ENV_AT(s, entry, struct runtime_entry, 8)->slot;

	s = env_slab(config, RUNTIME_CONFIG_WORDS);
	if (!s)
		return TABLES_RULE_GAP;
	const struct runtime_config *c = ENV_AT(s, config, struct runtime_config,
						RUNTIME_CONFIG_WORDS);
	__u32 rule = c->rule;
	__u64 alias = c->alias;

	if (rule & TABLES_RULE_SHORT)
		return rule;
	const struct file_entry *f = env_file(slot);

	return f && f->state == TABLES_FILE_READY ? walk_find_rule(f, alias) : TABLES_RULE_GAP;
}

/* Records that the runtime that was asked leaves the frame to the native walk. */
ENV_INLINE void walk_decline(struct walk *w)
{
	w->declined |= 1u << (w->taker & 7);
	if (++w->declines >= WALK_DECLINES)
		w->refused |= w->declined;
}

#define WALK_FOLLOWS_FP 2 /* result of walk_by_rule: there is no rule to apply */

/* Applies a rule of the rules' map. This is a function of its own, so that the code which looks for
 * the owner of RBP does not run on top of its stack frame. */
ENV_FUNCTION __u32 walk_by_rule(WALK_PARAMETER __u32 number)
{
	WALK_FIND(w);
	const struct unwind_rule *rule = env_rule(number);

	if (!rule)
		return walk_stop(w, WALK_STALE);
	if (rule->cfa != UNWIND_CFA_END || rule->flags & UNWIND_SIGNAL_FRAME ||
	    rule->ra == UNWIND_RA_UNDEFINED)
		return walk_apply(w, rule);
	/* The function has rules, but this one cannot be expressed. It may not have touched its
	 * caller's frame pointer, so following that would skip the caller. */
	if (rule->cfa_add == UNWIND_END_UNSUPPORTED)
		return walk_stop(w, WALK_UNSUPPORTED_RULE);
	return WALK_FOLLOWS_FP;
}

/* Walks one frame. Returns enum walk_next. */
ENV_INLINE int walk_step(struct walk *w)
{
	__u64 pc = w->exact ? w->pc : w->pc - 1;

	if (w->count >= w->room)
		return walk_stop(w, WALK_DEPTH);
	bool found = pc >= w->map.start && pc < w->map.end;

	if (!found) {
		found = walk_find_map(w, pc);
		if ((!found || !w->map.slot) && env_probed(&w->pc, &w->sp, w->leaf)) {
			pc = w->pc - 1;
			w->exact = 0;
			found = walk_find_map(w, pc);
		}
	}
	if (found && w->map.takers && w->exact != WALK_NOT_BEGUN) {
		__u32 asks = walk_taker(w->runtime_first,
					w->map.takers & ~(w->declined | w->refused),
					w->map.slot != 0, pc - w->map.bias);

		if (asks) {
			w->taker = asks - 1;
			return WALK_IS_TAKEN;
		}
	}
	if (!found || walk_is_behind(w)) {
		__u8 by_fp = w->by_fp;

		w->at_slot = (__u16)w->map.slot;
		w->map.slot = 0;
		w->map.start = w->map.end = 0;
		bool vsyscall = w->pc >> 12 == WALK_VSYSCALL && w->leaf;

		/* The return address may be any word, and its upper bits must not look like flags
		 * of a frame. */
		w->pc &= SAMPLE_FRAME_OFFSET_MASK;
		/* If a frame pointer led outside all mappings, there is no frame to emit. */
		if (!by_fp)
			walk_push(w);
		/* This is a call through a null pointer: nothing can be mapped there. */
		if (vsyscall || (w->exact && w->leaf && w->pc < WALK_NULL_END))
			return walk_called(w);
		w->reason = by_fp ? WALK_NO_ROWS : WALK_NO_MAPPING;
		return 1;
	}
	walk_push(w);
	w->declined = 0;
	if (w->exact == WALK_NOT_BEGUN)
		return walk_stop(w, WALK_COMPLETE);

	int stop = 0;
	bool by_fp = false;

	w->rule = TABLES_RULE_GAP;
	if (w->file.state == TABLES_FILE_READY)
		w->rule = walk_find_rule(&w->file, pc - w->map.bias);
	else if (w->map.takers >> TABLES_MAP_RULER)
		w->rule = walk_constant_rule(w->runtime_first, w->map.takers >> TABLES_MAP_RULER);
	/* Reload the number from memory, so that the verifier follows the code below once for both
	 * cases. */
	ENV_FORGET();
	__u32 number = w->rule;

	if (w->file.state == TABLES_FILE_READY || number != TABLES_RULE_GAP) {
		if ((number & 0xffff) == TABLES_RULE_STUB) {
			__u32 below = number >> TABLES_RULE_STUB_BELOW_SHIFT;
			__u64 stub = walk_stub(WALK_ARGUMENT(w) w->sp, below);

			by_fp = !stub;
			if (stub)
				stop = walk_by_stub(w, stub, below);
		} else if (number & TABLES_RULE_SHORT) {
			stop = walk_apply_short(w, number);
		} else {
			stop = (int)walk_by_rule(WALK_ARGUMENT(w) number);
			by_fp = stop == WALK_FOLLOWS_FP;
		}
	} else if (w->file.state == TABLES_FILE_NO_ROWS || w->file.state == TABLES_FILE_EVICTED) {
		by_fp = true;
	} else {
		stop = walk_stop(w, w->file.state == TABLES_FILE_FREE ? WALK_STALE
								      : WALK_ROWS_PENDING);
	}
	if (by_fp)
		stop = walk_by_fp(w);
	if (w->entry_at && w->sp > w->entry_at)
		walk_mark(w, w->base + w->count - 1);
	return stop;
}

/* Within execve the old program's stack disappears while its registers remain. So if the stack
 * cannot be walked to its root, the user stack counts as gone. */
ENV_INLINE void walk_exec(struct walk *w)
{
	if (w->reason == WALK_COMPLETE)
		return;
	w->reason = WALK_COMPLETE;
	w->at_slot = 0;
	w->count = 0;
}

/* Prepares w for a walk. The caller has set pc, sp, fp and regs[]. Frames are added after the
 * contents of words[]. */
ENV_INLINE void walk_begin(struct walk *w, const struct process_entry *p, __u8 exact)
{
	w->window_start = 0;
	w->map.start = w->map.end = 0;
	w->map.slot = 0;
	w->other_map.start = w->other_map.end = 0;
	w->maps = p->maps;
	w->map_count = p->map_count;
	w->runtimes = p->maps + p->map_count * 8;
	w->runtimes_left = p->flags >> TABLES_PROCESS_RUNTIMES_SHIFT;
	w->runtime_first = w->runtimes;
	w->runtime_count = w->runtimes_left;
	w->phase = WALK_BEGINS;
	w->declined = w->refused = w->declines = w->takes = 0;
	w->count = 0;
	w->turn = 0;
	for (__u32 k = 0; k < TABLES_PROCESS_RUNTIMES_MAX; k++)
		w->entries[k].at = 0;
	w->entry_at = 0;
	w->heap_end = 0;
	w->thread = 0;
	w->heap_pieces = 0;
	w->heap_from = w->heap_pause = 0;
	w->heap_above = w->heap_skip = 0;
	w->searches = 0;
	w->reason = WALK_DEPTH;
	w->at_slot = 0;
	w->exact = exact;
	w->near = 0;
	w->leaf = 1;
	w->regs_at = 0;
	w->tracked_at = 0;
	w->tracked = WALK_TRACKS_RBX | WALK_TRACKS_R12;
	w->by_fp = 0;
	w->jumps = 0;
	w->guessed = 0;
	w->unsure = 0;
	w->in_routine = 0;
}

/* Reserves the words for frames. Call it after walk_begin and all runtimes, when their items are
 * complete. */
ENV_INLINE void walk_place(struct walk *w)
{
	w->base = w->sample.kernel_frames + 2u * w->sample.items;
	w->room = SAMPLE_WORDS - SAMPLE_MAX_USER < w->base ? SAMPLE_WORDS - w->base
							   : SAMPLE_MAX_USER;
}

#ifndef __bpf__
/* Finds each runtime's first entry with an address, if the items were read elsewhere and are in
 * words[]. */
ENV_INLINE void walk_find_entries(struct walk *w)
{
	__u64 slot = 0;

	for (__u32 n = 0; n < w->sample.items; n++) {
		__u32 i = w->sample.kernel_frames + 2 * n;
		__u64 word = i < SAMPLE_MAX_HEAD ? w->words[i] : 0,
		      at = word & RUNTIME_ADDRESS_MASK;
		__u64 of = word >> RUNTIME_ITEM_SLOT_SHIFT & RUNTIME_ITEM_SLOT_MASK;

		if (n && of != slot && ++w->turn >= TABLES_PROCESS_RUNTIMES_MAX)
			return;
		slot = of;
		if (word >> RUNTIME_ITEM_SHIFT != RUNTIME_ENTRY || !at || w->entries[w->turn].at)
			continue;
		w->entries[w->turn] = (struct walk_entries){ .at = at, .next = i };
		if (!w->entry_at || at < w->entry_at)
			w->entry_at = at;
	}
}
#endif

#endif
