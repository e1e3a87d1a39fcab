/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The common part of the walks of runtimes. Each walk defines:
 *
 *  struct NAME_walk {
 *     struct NAME_config config;
 *     __u64 base; to add to the config's addresses
 *     struct runtime_copies copies; for env_object
 *     ... };
 *  bool NAME_begin(const struct walk *w, struct NAME_walk *p); true: the thread has frames
 *  int NAME_step(struct walk *w, struct NAME_walk *p); one frame; 0: there is a caller
 *
 * The caller sets the first three fields. The process may be hostile and the config may be wrong,
 * so a walk is bounded and only reads. The verifier checks the step once.
 *
 * A runtime that takes over frames of native code (enum runtime_takes) also defines
 *
 *  int NAME_frame(struct walk *w, struct NAME_walk *p);
 *
 * The walk asks NAME_frame for the frame at w->pc, w->sp and w->fp. Unless w->exact is set, w->pc
 * is a return address. If the frame is the runtime's own, NAME_frame emits it with runtime_take and
 * runtime_took, and returns the result of runtime_leave, which moves to the caller. Otherwise
 * NAME_frame changes nothing in w and returns RUNTIME_DECLINES. p holds the values of the last call
 * in this walk, or any values.
 *
 *  void NAME_fetch(struct walk *w, struct NAME_walk *p, __u64 pc, __u64 fp);
 *
 * A deferred walk has only a copy of the stack. When the kernel makes the copy, it calls NAME_fetch
 * for each word of the stack that leads into the runtime's code. pc is in the code that this word
 * leads to, and w->map is the mapping of pc. fp is the word below, where a callee with a frame
 * pointer saves that of the frame at pc. NAME_fetch reads with runtime_fetch all memory that
 * NAME_frame will read with it for code at pc, and copies the objects. In the deferred walk
 * NAME_frame then finds the same memory.
 *
 * Any other runtime uses RUNTIME_TAKES_NOTHING(NAME) instead. */
#ifndef BPF_WALK_RUNTIME_WALK_H
#define BPF_WALK_RUNTIME_WALK_H

#include "bpf/walk/walk.h"

struct runtime_copies {
	struct runtime_copy what;
	__u32 left; /* how many more objects env_object may copy for this sample */
	__u32 keep; /* runtime_fetch also stores what it reads */
};

/* Copies an object of this process, unless that was done before. */
#ifdef __bpf__
ENV_INLINE void env_object(const struct walk *w, struct runtime_copies *c, __u64 address,
			   __u64 check);
/* Like env_object, for an object that may move: `key` stands for its address in its frames and in
 * the copy, and `address` is where it is now. If the key is not an address that a process can have,
 * only the copy can name the object. */
ENV_INLINE void env_moving_object(const struct walk *w, struct runtime_copies *c, __u64 key,
				  __u64 check, __u64 address);
/* Like env_moving_object, in two steps, for an object that the walk describes. env_is_new tells
 * whether it is new. env_told_object takes the description, which is the first piece of the copy.
 * Only walks with RUNTIME_DESCRIBES have these functions; `told` is that of their state. Without
 * env_is_new, an object is copied each time. */
ENV_INLINE bool env_is_new(const struct walk *w, struct runtime_copies *c, __u64 key, __u64 check);
ENV_INLINE void env_told_object(const struct walk *w, struct runtime_copies *c, const __u64 *told,
				__u64 key, __u64 check);
#else
/* The object stays where it is, so it is read later, when its name is needed. */
ENV_INLINE void env_object(const struct walk *w, struct runtime_copies *c, __u64 address,
			   __u64 check)
{
}

ENV_INLINE void env_moving_object(const struct walk *w, struct runtime_copies *c, __u64 key,
				  __u64 check, __u64 address)
{
	if (env_current->object)
		env_current->object(env_current->ctx, &c->what, key, check, address, NULL);
}

ENV_INLINE bool env_is_new(const struct walk *w, struct runtime_copies *c, __u64 key, __u64 check)
{
	return env_current->object != NULL;
}

ENV_INLINE void env_told_object(const struct walk *w, struct runtime_copies *c, const __u64 *told,
				__u64 key, __u64 check)
{
	if (env_current->object)
		env_current->object(env_current->ctx, &c->what, key, check, 0, told);
}
#endif

ENV_INLINE bool runtime_read(__u64 addr, __u64 *ret)
{
	return addr >= 4096 && addr < WALK_ADDRESS_END &&
	       env_read_user(ret, sizeof(*ret), addr) == 0;
}

ENV_INLINE bool runtime_read_bytes(void *dst, __u32 size, __u64 addr)
{
	return addr >= 4096 && addr < WALK_ADDRESS_END && env_read_user(dst, size, addr) == 0;
}

/* --- frames of native code that a runtime takes over --- */

#ifdef __bpf__
ENV_INLINE void env_keep(__u64 addr, __u32 size);
ENV_INLINE void env_tell(__u64 key, const __u64 *numbers);
#else
ENV_INLINE void env_keep(__u64 addr, __u32 size)
{
}

ENV_INLINE void env_tell(__u64 key, const __u64 *numbers)
{
}
#endif

/* Reads memory besides the stack, at most 2 * SAMPLE_FETCHED_BYTES, for NAME_frame and
 * NAME_fetch. */
ENV_INLINE bool runtime_fetch(const struct runtime_copies *c, void *dst, __u32 size, __u64 addr)
{
	if (!runtime_read_bytes(dst, size, addr))
		return false;
	if (c->keep)
		env_keep(addr, size);
	return true;
}

/* NAME_fetch can send numbers that took many reads to the deferred walk, under a key. The key is
 * made of an address that is used for no other numbers. */
#define RUNTIME_TOLD(address) (1ull << 63 | (address) << 6)

ENV_INLINE void runtime_tell(const struct runtime_copies *c, __u64 key,
			     const __u64 numbers[SAMPLE_TOLD])
{
	if (c->keep)
		env_tell(key, numbers);
}

/* Gets these numbers. Returns false if there are none, or if this is no deferred walk. */
ENV_INLINE bool runtime_was_told(__u64 key, __u64 ret[SAMPLE_TOLD])
{
#ifdef __bpf__
	return false;
#else
	return env_current->is_copy && env_read_user(ret, SAMPLE_TOLD * sizeof(ret[0]), key) == 0;
#endif
}

#define RUNTIME_DECLINES WALK_IS_TAKEN

#define RUNTIME_TAKES_NOTHING(name) \
	ENV_INLINE int name##_frame(struct walk *w, struct name##_walk *p) \
	{ \
		return RUNTIME_DECLINES; \
	} \
	ENV_INLINE void name##_fetch(struct walk *w, struct name##_walk *p, __u64 pc, __u64 fp) \
	{ \
	}

/* Emits the frame. Without items, outputs show it as native code. */
ENV_INLINE void runtime_take(struct walk *w)
{
	__u32 i = w->base + w->count;
	__u64 frame = (w->pc & SAMPLE_FRAME_OFFSET_MASK) | SAMPLE_FRAME_TAKEN
								   << SAMPLE_FRAME_SLOT_SHIFT;

	if (w->exact)
		frame |= SAMPLE_FRAME_EXACT;
	if (i < SAMPLE_WORDS)
		w->words[i] = frame;
	w->taken = i;
	w->count++;
	w->sample.flags |= SAMPLE_TAKEN;
}

/* Adds an item to the frame: what runs in it, innermost first. Items after SAMPLE_TAKEN_ITEMS are
 * dropped. */
ENV_INLINE void runtime_took(struct walk *w, __u64 kind, __u64 address, __u64 second)
{
	__u32 i = w->base + w->count, taken = w->taken;

	if (i >= SAMPLE_WORDS - 1 || taken >= SAMPLE_WORDS ||
	    sample_frame_slot(w->words[taken]) == SAMPLE_FRAME_TAKEN + SAMPLE_TAKEN_ITEMS)
		return;
	w->words[taken] += 1ull << SAMPLE_FRAME_SLOT_SHIFT;
	w->words[i] = kind << RUNTIME_ITEM_SHIFT |
		      (w->slot & RUNTIME_ITEM_SLOT_MASK) << RUNTIME_ITEM_SLOT_SHIFT |
		      (address & RUNTIME_ADDRESS_MASK);
	w->words[i + 1] = second;
	w->count += 2;
	/* The limit counts frames, and items are not frames. */
	if (w->room + w->base + 2 <= SAMPLE_WORDS)
		w->room += 2;
}

/* Moves to the caller of the emitted frame. cfa: the caller's RSP, after the return address. fp:
 * its RBP, or WALK_FP_UNKNOWN. Its other registers count as unknown. */
ENV_INLINE int runtime_leave(struct walk *w, __u64 cfa, __u64 fp, __u64 pc)
{
	/* The leaf may have popped its return address. */
	if (cfa < w->sp + !w->exact && !walk_jumps(w, cfa, true))
		return walk_stop(w, WALK_NO_PROGRESS);
	w->tracked = 0;
	int stop = walk_to_caller(w, cfa, fp, pc);

	w->near = 0;
	if (w->entry_at && w->sp > w->entry_at)
		walk_mark(w, w->taken);
	return stop;
}

/* Whether one more frame with all its items fits. If not, ends the walk. */
ENV_INLINE bool runtime_has_room(struct walk *w)
{
	return w->count + 1 + 2 * SAMPLE_TAKEN_ITEMS <= w->room;
}

/* Whether the walk has reached another frame of the runtime that took over the last one. */
ENV_INLINE bool runtime_has_next(struct walk *w)
{
	__u64 pc = w->exact ? w->pc : w->pc - 1;
	__u32 k = w->taker % TABLES_PROCESS_RUNTIMES_MAX;

	if ((pc < w->map.start || pc >= w->map.end) && !walk_find_map(w, pc))
		return false;
	return (w->map.takers & ~(__u32)w->refused) >> k & 1 &&
	       (!w->map.slot || walk_loop_has(w->runtime_first + k * 8, pc - w->map.bias));
}

/* Handles the result of NAME_frame. Returns enum walk_next; WALK_IS_TAKEN: another runtime must
 * walk now. */
ENV_INLINE int runtime_framed(struct walk *w, int result)
{
	if (result == RUNTIME_DECLINES)
		walk_decline(w);
	else
		w->declined = 0;
	return result ? result : runtime_has_next(w) ? WALK_GOES_ON : WALK_IS_TAKEN;
}

#endif
