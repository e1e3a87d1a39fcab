/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Goes from a frame to its caller by a rule, the frame pointer, or through a signal frame
 * (walk.h). */
#ifndef BPF_WALK_WALK_RULES_H
#define BPF_WALK_WALK_RULES_H

#include "bpf/walk/stub.h"
#include "bpf/walk/walk_state.h"

/* How far a region of generated code may have grown before its new end is known. A runtime may take
 * over frames up to this far past the known end; it knows where its code ends. */
#define WALK_GROWS (16u << 20)

/* Whether pc is after the end of w->map, in code that only a runtime may know. */
ENV_INLINE bool walk_is_behind(const struct walk *w)
{
	return w->map.end - w->map.start == 1;
}

/* Sets w->map and w->file to the mapping that covers pc, or that may cover it (walk_is_behind).
 * Returns false if there is none. */
ENV_INLINE bool walk_find_map(struct walk *w, __u64 pc)
{
	struct map_entry map = w->map;
	struct file_entry file = w->file;

	if (pc >= w->other_map.start && pc < w->other_map.end) {
		w->map = w->other_map;
		w->file = w->other_file;
		w->other_map = map;
		w->other_file = file;
		return true;
	}
	__u32 position = w->maps + walk_search_maps(w->maps, w->map_count, pc) * 8;
	const struct slab *s = env_slab(position, 8);

	if (w->map_count == 0 || !s)
		return false;
	const struct map_entry *m = ENV_AT(s, position, struct map_entry, 8);
	bool behind = pc >= m->end && pc - m->end < WALK_GROWS && m->takers && !m->slot;

	if (pc < m->start || (pc >= m->end && !behind))
		return false;
	w->other_map = map;
	w->other_file = file;
	w->map = *m;
	if (behind) {
		w->map.start = pc;
		w->map.end = pc + 1;
	}
	w->file.state = TABLES_FILE_NO_ROWS;
	if (m->slot) {
		const struct file_entry *f = env_file(m->slot);

		if (!f)
			return false;
		w->file = *f;
	}
	return true;
}

/* Reads a word of user memory to w->word. Moves the window there if it can. Returns 0 if the word
 * is not readable. */
ENV_FUNCTION __u32 walk_fetch(WALK_PARAMETER __u64 addr)
{
	WALK_FIND(w);
	__u64 d = addr - w->window_start, start = (addr & ~7ull) - WALK_WINDOW_BELOW;

	if (d > WALK_WINDOW - 8 || !w->window_start) {
		if (addr < 4096 || addr >= WALK_ADDRESS_END)
			return 0;
		w->window_start = env_read_user(w->window, WALK_WINDOW, start) ? 0 : start;
		d = addr - w->window_start;
		if (w->window_start && !(d & 7)) {
			w->word = w->window[(d >> 3) & (WALK_WINDOW / 8 - 1)];
			return 1;
		}
		/* The window crosses the end of the stack: read only the word. */
	}
	return env_read_user(&w->word, 8, addr) == 0;
}

ENV_INLINE bool walk_read(struct walk *w, __u64 addr, __u64 *ret)
{
	__u64 d = addr - w->window_start;

	if (d > WALK_WINDOW - 8 || d & 7 || !w->window_start) {
		if (!walk_fetch(WALK_ARGUMENT(w) addr))
			return false;
		*ret = w->word;
	} else {
		*ret = w->window[d >> 3];
	}
	return true;
}

/* Returns the index of a register in the kernel's mcontext, in words from the ucontext's start, by
 * DWARF number. The first eight have a byte each in `low`, the others are in order
 * (arch/x86/include/uapi/asm/sigcontext.h). */
ENV_INLINE __u64 walk_mcontext(__u8 reg)
{
	const __u64 low = 18ull | 17ull << 8 | 19ull << 16 | 16ull << 24 | 14ull << 32 |
			  13ull << 40 | 15ull << 48 | 20ull << 56;

	return reg < 8 ? low >> (reg & 7) * 8 & 0xff : reg - 3ull;
}

/* Gives a register of the leaf, or of the frame that a signal interrupted. */
ENV_INLINE bool walk_leaf_register(struct walk *w, __u8 reg, __u64 *ret)
{
	if (w->regs_at)
		return walk_read(w, w->regs_at + walk_mcontext(reg & 15) * 8, ret);
	*ret = w->regs[reg & 15];
	return true;
}

/* Updates where the tracked register is saved. A row covers either RBX or R12, so the other one is
 * unknown from here on. */
ENV_INLINE void walk_track(struct walk *w, __u8 which, __u64 saved_at)
{
	w->tracked &= which;
	if (saved_at) {
		w->tracked_at = saved_at;
		w->tracked = which;
	}
}

ENV_INLINE bool walk_tracks(const struct walk *w, __u8 reg)
{
	return reg == UNWIND_REG_RBX   ? w->tracked & WALK_TRACKS_RBX
	       : reg == UNWIND_REG_R12 ? w->tracked & WALK_TRACKS_R12
				       : false;
}

/* Gives the value of a register in a rule. Of callers' registers the walk tracks RSP, RBP and one
 * more: RBX or, if a file needs it, R12. It reads that one only on demand: rows tell where it is
 * saved, and few rules need it.
 *
 * leafs: the leaf's registers are valid. They are also valid in its caller if assembly keeps a CFA
 * in a register that calls may change. This assembly relies on its callees not to change the
 * register (OpenSSL's AES-GCM), and on their callees (dav1d's transforms). The value is stored in
 * w->word; returns 0 if it is unknown. */
ENV_FUNCTION __u32 walk_fetch_register(WALK_PARAMETER __u32 reg, __u32 leafs)
{
	WALK_FIND(w);
	if (reg == UNWIND_REG_RSP)
		w->word = w->sp;
	else if (reg == UNWIND_REG_RBP)
		w->word = w->fp;
	else if (walk_tracks(w, reg) && w->tracked_at)
		return walk_read(w, w->tracked_at, &w->word);
	else if (leafs || walk_tracks(w, reg))
		return walk_leaf_register(w, reg, &w->word);
	else
		return 0;
	return 1;
}

ENV_INLINE bool walk_register(struct walk *w, __u8 reg, bool leafs, __u64 *ret)
{
	if (!walk_fetch_register(WALK_ARGUMENT(w) reg, leafs))
		return false;
	*ret = w->word;
	return true;
}

/* Finds the CFA when Go switches stacks (enum unwind_cfa). *ret_pc_at: where the g of the stack
 * that was left stores its pc. WALK_COMPLETE with a CFA of 0: no g was left, since the goroutine
 * had been removed from the thread. */
ENV_INLINE __u16 walk_go_cfa(struct walk *w, const struct unwind_rule *r, __u64 *ret,
			     __u64 *ret_pc_at)
{
	__u64 g, m, v;

	if (r->cfa == UNWIND_CFA_GO_SWITCH) {
		__u64 tls = env_tls(), off = (__s64)r->cfa_add;

		if (r->flags & UNWIND_TLS_WORD && !env_tls_word(&off) &&
		    !walk_read(w, w->map.bias + off, &off))
			return WALK_STACK_UNREADABLE;
		if (!tls || !walk_read(w, tls + off, &g) ||
		    !walk_read(w, g + r->rbp_reg * 8ull, &m) ||
		    !walk_read(w, m + r->cfa_reg * 8ull, &g))
			return WALK_STACK_UNREADABLE;
		*ret = 0;
		if (g == 0)
			return WALK_COMPLETE;
		if (!walk_read(w, g + r->ra_reg * 8ull, &v))
			return WALK_STACK_UNREADABLE;
		*ret_pc_at = g + (__s64)r->rbp_off;
	} else {
		if (!walk_read(w, w->sp + r->cfa_reg * 8ull, &g) ||
		    !walk_read(w, w->sp + (__s64)r->cfa_add, &m) || !walk_read(w, g + 8, &v))
			return WALK_STACK_UNREADABLE;
		v -= m;
	}
	*ret = v + (__s64)r->cfa_off;
	return WALK_COMPLETE;
}

ENV_INLINE void walk_push(struct walk *w)
{
	__u64 frame = w->pc;
	__u32 i = w->base + w->count;

	if (w->map.slot)
		frame = ((w->pc - w->map.bias) & SAMPLE_FRAME_OFFSET_MASK) |
			(__u64)w->map.slot << SAMPLE_FRAME_SLOT_SHIFT;
	if (w->exact)
		frame |= SAMPLE_FRAME_EXACT;
	if (w->by_fp)
		frame |= SAMPLE_FRAME_FP;
	if (i < SAMPLE_WORDS)
		w->words[i] = frame;
	w->count++;
}

ENV_INLINE int walk_stop(struct walk *w, __u16 reason)
{
	w->reason = reason;
	w->at_slot = reason ? (__u16)w->map.slot : 0;
	if (!reason && w->unsure) {
		w->reason = WALK_CALLER_UNSURE;
		w->at_slot = w->unsure_slot;
	}
	return 1;
}

/* Whether RBP is proven to be the frame's own. back: the frame's return address according to
 * RBP. */
ENV_INLINE bool walk_owns_fp(struct walk *w, __u32 rbp, __u64 back)
{
	__u64 maps = OWNER_MAPS(w->maps, w->map_count), pc = w->leaf ? w->pc : w->pc | OWNER_CALLER;

	if (rbp == OWNER_SET_UP || (rbp == OWNER_LEFT && w->leaf))
		return rbp == OWNER_SET_UP;
	__u64 target = owner_called(back);

	/* A walk over a copy cannot read the code, so nothing is proven. */
	if (!owner_sees(w->pc))
		return false;
	/* No return address fits between RSP and RBP. */
	if (w->fp == w->sp)
		return true;
	/* While code moves its arguments, it keeps the return address in a register. */
	for (__u64 at = 40; at < 160 && w->leaf && w->regs_at; at += 8 * OWNER_WORDS)
		if (owner_words(maps, w->regs_at + at, w->regs_at + 160, w->pc))
			return false;
	__u32 popped = owner_popped(w->pc);

	for (int i = 0; i < 16 && w->leaf && !w->regs_at; i++)
		if (i != UNWIND_REG_RSP && owner_holds(maps, w->regs[i], popped >> i))
			return false;
	return owner_size(target) == w->fp - w->sp || !owner_words(maps, w->sp, w->fp, pc);
}

/* Moves to the caller by the frame pointer: RBP points at the caller's RBP, and the return address
 * is above it. */
ENV_INLINE int walk_by_fp(struct walk *w)
{
	__u64 fp = w->fp, pc, caller_fp = w->fp, saved[2];
	__u64 bare = owner_bare(w->leaf && w->exact ? w->pc : w->pc | OWNER_CALLER);
	__u8 by_fp = 0;

	if (bare) {
		__u64 above = bare >> 1 & OWNER_ABOVE;

		if ((bare & OWNER_PUSHED && !walk_read(w, w->sp + above - 8, &caller_fp)) ||
		    !walk_read(w, w->sp + above, &pc))
			return walk_stop(w, WALK_NO_ROWS);
		if (pc < 4096 || pc >= WALK_ADDRESS_END)
			return walk_stop(w, WALK_NO_ROWS);
		w->sp += above + 8;
		goto caller;
	}
	__u32 rbp = w->by_fp ? 0 : owner_set_up(w->pc);

	if (rbp == OWNER_SAVED && env_read_user(saved, sizeof(saved), w->sp) == 0 &&
	    saved[0] == fp && owner_called(saved[1])) {
		pc = saved[1];
		w->sp += 16;
		goto caller;
	}
	/* In the psABI, zero marks the outermost frame. But code that uses RBP otherwise may also
	 * leave a zero. */
	if (fp == 0)
		return walk_stop(w, w->by_fp ? WALK_NO_ROOT : WALK_NO_ROWS);
	if (fp < w->sp || fp - w->sp > WALK_FP_MAX_FRAME || (fp & 7))
		return walk_stop(w, WALK_NO_ROWS);
	if (!walk_read(w, fp, &caller_fp) || !walk_read(w, fp + 8, &pc))
		return walk_stop(w, WALK_NO_ROWS);
	if (!w->unsure && owner_skips(OWNER_MAPS(w->maps, w->map_count), pc)) {
		w->unsure = 1;
		w->unsure_slot = (__u16)w->map.slot;
	}
	/* Frames reached by frame pointers usually have one themselves, so only the first of a
	 * chain is examined further. */
	if (!w->unsure && (!w->by_fp || w->in_routine)) {
		__u64 is = owner_sbcl(w->leaf ? w->pc : w->pc | OWNER_CALLER, w->sp, fp, pc);
		bool first = !w->by_fp;
		/* In a file with tables, and called from outside the mapping: this is C code. */
		bool elsewhere = w->file.state == TABLES_FILE_READY &&
				 (pc < w->map.start || pc >= w->map.end);

		if (is == OWNER_SBCL_AT_RBX)
			is = w->regs_at ? OWNER_SBCL_UNSURE : (w->regs[UNWIND_REG_RBX] & ~7ull) - 8;
		w->in_routine = is == OWNER_SBCL_OWN_IN;
		if (is > OWNER_SBCL_UNSURE) {
			w->in_routine = 1;
			if (env_read_user(&pc, sizeof(pc), is & ~7ull) || pc < 4096 ||
			    pc >= WALK_ADDRESS_END)
				return walk_stop(w, WALK_NO_ROWS);
			w->sp = (is & ~7ull) + 8;
			if (!(is & OWNER_SBCL_CALLEES))
				caller_fp = fp;
			by_fp = 1;
			goto caller;
		}
		if (is == OWNER_SBCL_AHEAD) {
			if (caller_fp <= fp || caller_fp - fp > WALK_FP_MAX_FRAME ||
			    caller_fp & 7 || env_read_user(saved, sizeof(saved), caller_fp))
				return walk_stop(w, WALK_NO_ROWS);
			fp = caller_fp;
			caller_fp = saved[0];
			pc = saved[1];
		} else if (is == OWNER_SBCL_UNSURE || ((is == OWNER_SBCL_NOT || elsewhere) &&
						       first && !walk_owns_fp(w, rbp, pc))) {
			w->unsure = 1;
			w->unsure_slot = (__u16)w->map.slot;
		}
	}
	if (pc == 0)
		return walk_stop(w, w->by_fp ? WALK_NO_ROOT : WALK_NO_ROWS);
	/* A wrong RBP shows only if the caller has no rows either. In libc, for example, RBP may
	 * hold any value. */
	if (pc < 4096 || pc >= WALK_ADDRESS_END)
		return walk_stop(w, WALK_NO_ROWS);
	w->sp = fp + 16;
	by_fp = 1;
caller:
	w->fp = caller_fp;
	w->pc = pc;
	w->exact = 0;
	w->by_fp = by_fp;
	w->guessed = 1;
	w->tracked = 0;
	w->near = 0;
	w->leaf = 0;
	return 0;
}

/* Handles Linux's rt_sigframe: after its return address is popped, RSP points at the ucontext,
 * whose mcontext begins at 40 with r8 (arch/x86/include/uapi/asm/sigcontext.h). */
ENV_INLINE int walk_signal(struct walk *w)
{
	__u64 sp = w->sp, fp, next_sp, pc;
	__u32 trampoline = w->base + w->count - 1;

	/* The kernel put the address of the trampoline's first byte in place of a return address,
	 * so the pc is exact. */
	if (trampoline < SAMPLE_WORDS)
		w->words[trampoline] |= SAMPLE_FRAME_EXACT;

	if (!walk_read(w, sp + 120, &fp) || !walk_read(w, sp + 160, &next_sp) ||
	    !walk_read(w, sp + 168, &pc))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	w->fp = fp;
	w->sp = next_sp;
	w->pc = pc;
	w->exact = 1;
	w->by_fp = 0;
	/* All registers of the interrupted frame are known, as in a leaf. */
	w->regs_at = sp;
	w->tracked_at = 0;
	w->tracked = WALK_TRACKS_RBX | WALK_TRACKS_R12;
	w->near = 0;
	w->leaf = 1;
	return 0;
}

/* Whether a CFA that is not above RSP may lie on another stack. Split stacks, and Go around calls
 * of the vDSO, keep the CFA in RBP. Runtimes that have their own stacks store in memory where they
 * left the last one. */
ENV_INLINE bool walk_jumps(struct walk *w, __u64 cfa, bool loaded)
{
	if (loaded)
		return cfa != w->sp && w->jumps++ < WALK_SWITCHES;
	return w->sp - cfa >= WALK_JUMP_MIN && w->jumps++ < WALK_JUMPS;
}

/* Finds the CFA of a nest (enum unwind_cfa). */
ENV_INLINE __u16 walk_nest_cfa(struct walk *w, const struct unwind_rule *r, __u64 *ret)
{
	__u64 kept, outermost;

	if (!walk_register(w, r->cfa_reg, w->leaf | w->near, &kept))
		return WALK_UNSUPPORTED_RULE;
	outermost = (kept & ~0ull << (r->index_reg & 15)) - (__s64)r->cfa_add;
	if (w->sp > outermost)
		return WALK_NO_PROGRESS;
	*ret = w->sp == outermost ? kept + (__s64)r->cfa_off : w->sp + (__s64)r->cfa_mid;
	return WALK_COMPLETE;
}

/* Makes w the caller of a frame whose CFA is known. */
ENV_INLINE int walk_to_caller(struct walk *w, __u64 cfa, __u64 fp, __u64 pc)
{
	w->sp = cfa;
	w->fp = fp;
	w->pc = pc;
	w->exact = 0;
	w->by_fp = 0;
	w->near = w->leaf;
	w->leaf = 0;
	/* Threads and coroutines that start on a stack made by hand have a zero in place of a
	 * return address. */
	return pc == 0 ? walk_stop(w, w->guessed | w->near ? WALK_NO_ROOT : WALK_COMPLETE) : 0;
}

/* Applies a rule that its number encodes (TABLES_RULE_SHORT). A fast path for nearly all frames. */
ENV_INLINE int walk_apply_short(struct walk *w, __u32 rule)
{
	bool by_rbp = rule & TABLES_RULE_SHORT_RBP;
	__u64 cfa = (by_rbp ? w->fp : w->sp) + TABLES_RULE_SHORT_CFA(rule) * 8, fp = w->fp, pc;

	if (TABLES_RULE_SHORT_RBP_AT(rule) &&
	    !walk_read(w, cfa - TABLES_RULE_SHORT_RBP_AT(rule) * 8, &fp))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	if (cfa <= w->sp && !(by_rbp && walk_jumps(w, cfa, false)))
		return walk_stop(w, WALK_NO_PROGRESS);
	if (!walk_read(w, cfa - 8, &pc))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	walk_track(w, WALK_TRACKS_RBX,
		   TABLES_RULE_SHORT_RBX_AT(rule) ? cfa - TABLES_RULE_SHORT_RBX_AT(rule) * 8 : 0);
	return walk_to_caller(w, cfa, fp, pc);
}

/* Applies a rule. Returns 0 if w is now the caller's, 1 if the walk is over. */
ENV_INLINE int walk_apply(struct walk *w, const struct unwind_rule *rule)
{
	struct unwind_rule r = *rule;
	__u64 cfa, pc, fp = w->fp, at, go_pc_at = 0;
	bool switched = r.cfa == UNWIND_CFA_GO_SWITCH || r.cfa == UNWIND_CFA_GO_DEPTH;
	bool loaded = r.cfa == UNWIND_CFA_DEREF || r.cfa == UNWIND_CFA_DEREF_TWICE;
	bool sum = r.cfa == UNWIND_CFA_SUM;
	/* Assembly calls its own helpers, which do not change the registers that it uses. */
	__u8 near = (w->leaf | w->near) & !!(r.flags & UNWIND_GUESSED);
	__u64 base = 0;

	if (r.flags & UNWIND_SIGNAL_FRAME)
		return walk_signal(w);
	if (r.ra == UNWIND_RA_UNDEFINED)
		return walk_stop(w, WALK_COMPLETE);
	w->guessed |= !!(r.flags & UNWIND_GUESSED);
	if (switched) {
		__u16 reason = walk_go_cfa(w, &r, &cfa, &go_pc_at);

		if (reason || cfa == 0)
			return walk_stop(w, reason);
	} else if (r.cfa == UNWIND_CFA_NEST) {
		__u16 reason = walk_nest_cfa(w, &r, &cfa);

		if (reason)
			return walk_stop(w, reason);
	} else if (r.cfa == UNWIND_CFA_PLT) {
		cfa = w->sp + 8 + ((w->pc & 15) >= (__u32)r.cfa_off ? 8 : 0);
	} else {
		if (!walk_register(w, r.cfa_reg, w->leaf | w->near, &cfa))
			return walk_stop(w, WALK_UNSUPPORTED_RULE);
		if (sum)
			base = cfa;
		cfa += (__s64)r.cfa_off;
		if (r.index) {
			if (!walk_register(w, r.index_reg, w->leaf | w->near, &at))
				return walk_stop(w, WALK_UNSUPPORTED_RULE);
			cfa += at << ((r.index - 1) & 7);
		}
		if ((loaded || sum) && !walk_read(w, cfa, &cfa))
			return walk_stop(w, WALK_STACK_UNREADABLE);
		if (r.cfa == UNWIND_CFA_DEREF_TWICE && !walk_read(w, cfa + (__s64)r.cfa_mid, &cfa))
			return walk_stop(w, WALK_STACK_UNREADABLE);
		if (loaded || sum)
			cfa += base + (__s64)r.cfa_add;
	}
	if (r.rbp == UNWIND_RBP_CFA) {
		if (!walk_read(w, cfa + (__s64)r.rbp_off, &fp))
			return walk_stop(w, WALK_STACK_UNREADABLE);
	} else if (r.rbp == UNWIND_RBP_DEREF_REG) {
		if (!walk_register(w, r.rbp_reg, w->leaf, &at))
			return walk_stop(w, WALK_UNSUPPORTED_RULE);
		if (!walk_read(w, at + (__s64)r.rbp_off, &fp))
			return walk_stop(w, WALK_STACK_UNREADABLE);
	} else if (r.rbp == UNWIND_RBP_UNDEFINED) {
		fp = WALK_FP_UNKNOWN;
	}
	if (r.ra == UNWIND_RA_REG) {
		if (!walk_register(w, r.ra_reg, w->leaf, &pc))
			return walk_stop(w, WALK_UNSUPPORTED_RULE);
		if (cfa < w->sp)
			return walk_stop(w, WALK_NO_PROGRESS);
	} else {
		at = cfa + (r.ra == UNWIND_RA_CFA_OFF ? (__s64)r.cfa_add : -8);
		if (switched && r.ra == UNWIND_RA_CFA_OFF)
			at = go_pc_at;
		if (cfa <= w->sp && !switched &&
		    !((loaded || (r.cfa == UNWIND_CFA_REG && r.cfa_reg != UNWIND_REG_RSP)) &&
		      walk_jumps(w, cfa, loaded)))
			return walk_stop(w, WALK_NO_PROGRESS);
		if (!walk_read(w, at, &pc))
			return walk_stop(w, WALK_STACK_UNREADABLE);
	}
	walk_track(w, r.flags & UNWIND_R12 ? WALK_TRACKS_R12 : WALK_TRACKS_RBX,
		   r.rbx ? cfa - r.rbx * 8ull : 0);

	int stop = walk_to_caller(w, cfa, fp, pc);
	w->near |= near;
	w->exact = !!(r.flags & UNWIND_INTERRUPTS);
	return stop;
}

#define WALK_STUB_WORDS 24 /* words searched; the largest frame seen has 19 */

/* Returns the stub whose return address is at that place of the stack, or 0. */
ENV_FUNCTION __u64 walk_stub_at(WALK_PARAMETER __u64 at)
{
	WALK_FIND(w);
	__u64 maps = OWNER_MAPS(w->maps, w->map_count), back, caller;

	if (!walk_read(w, at, &back) || owner_code(maps, back) != OWNER_GENERATED)
		return 0;
	__u64 stub = stub_behind(back);

	/* Check the caller, since frames contain words of older calls. */
	return stub && walk_read(w, at + 8 + STUB_SIZE(stub), &caller) &&
			       owner_has_rows(maps, caller - 1)
		       ? stub
		       : 0;
}

/* Returns the stub that called generated code, or 0. below: how many words below RBP the return
 * address into C code is (TABLES_RULE_STUB_BELOW_SHIFT), or 0. */
ENV_FUNCTION __u64 walk_stub(WALK_PARAMETER __u64 sp, __u32 below)
{
	WALK_FIND(w);
	__u64 maps = OWNER_MAPS(w->maps, w->map_count), at = w->fp - below * 8ull, back;

	if (below)
		return at - sp < WALK_STUB_WORDS * 8 && walk_read(w, at, &back) &&
				       owner_called(back) && owner_has_rows(maps, back - 1)
			       ? 1 | (at - sp) << 32
			       : 0;
	for (__u64 i = 0; i < WALK_STUB_WORDS; i++) {
		__u64 stub = walk_stub_at(WALK_ARGUMENT(w) sp + i * 8);

		if (stub)
			return stub | (i * 8) << 32;
	}
	return 0;
}

/* Whether fp may be the frame pointer of a frame above `at`. */
ENV_INLINE bool walk_is_above(__u64 fp, __u64 at)
{
	return fp - at < WALK_FP_MAX_FRAME && !(fp & 7);
}

/* Moves to the caller of a stub, or to the C code that called the generated code directly. */
ENV_INLINE int walk_by_stub(struct walk *w, __u64 stub, __u32 below)
{
	__u64 at = w->sp + STUB_AT(stub), top = below ? at : at + 8 + STUB_SIZE(stub), fp = w->fp;
	__u64 pc, saved;

	if (!walk_read(w, top, &pc) ||
	    (STUB_RBP_AT(stub) && !walk_read(w, at + STUB_RBP_AT(stub), &fp)))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	/* The stub's code leaves RBP unchanged, or pushes it first. */
	if (!below && !STUB_RBP_AT(stub) && !walk_is_above(fp, at) && STUB_AT(stub) &&
	    walk_read(w, at - 8, &saved) && walk_is_above(saved, at))
		fp = saved;
	walk_track(w, WALK_TRACKS_RBX, STUB_RBX_AT(stub) ? at + STUB_RBX_AT(stub) : 0);
	return walk_to_caller(w, top + 8, fp, pc);
}

/* Moves to the caller from code that has not moved RSP: the vsyscall page, which the kernel usually
 * emulates, and pages without code. */
ENV_INLINE int walk_called(struct walk *w)
{
	__u64 pc;

	if (!walk_read(w, w->sp, &pc))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	return walk_to_caller(w, w->sp + 8, w->fp, pc);
}

#endif
