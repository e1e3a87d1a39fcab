/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The walker: finds the frames of a user stack from the registers, by the unwind tables (tables.h).
 *
 * One step goes from a frame to its caller. It finds the mapping of the pc, which is mostly the
 * previous one. It finds the 2 KiB block of the file offset, and the row by binary search in that
 * block. Then it applies the row's rule. Without rows (JIT code, assembly) it falls back to the
 * frame pointer and marks the frame. It reads 512 bytes of stack at a time, since a read of user
 * memory costs as much as the rest of a step.
 *
 * A walk is complete if it ends at a proven root:
 *
 * - A rule whose return address is undefined. Tables, and the code itself, mark entry points and
 *   the start of threads so.
 * - A return address of zero in a caller that was reached by tables alone. Tables are right at
 *   calls, since exceptions rely on them, so the function would really return to zero.
 *
 * After a guess, a frame pointer, or in the leaf, where hand-written tables omit prologues, a zero
 * may be any word. The walk then ends as WALK_NO_ROOT, and so it does at a frame pointer of zero.
 * If it followed a frame pointer that may not be the frame's own (owner.h), it ends as
 * WALK_CALLER_UNSURE.
 *
 * The same source runs in the kernel, under the verifier, and in user space: all loops are bounded,
 * and struct walk is the only state.
 */
#ifndef BPF_WALK_H
#define BPF_WALK_H

#include "bpf/env.h"
#include "bpf/owner.h"
#include "bpf/owner_sbcl.h"
#include "bpf/reasons.h"
#include "bpf/sample.h"
#include "bpf/search.h"

#define WALK_WINDOW 512 /* bytes of stack read at once */
/* Part of the window below the wanted address: saved registers lie below a return address. */
#define WALK_WINDOW_BELOW 64
/* The first address above user space (x86-64, 4-level page tables). */
#define WALK_ADDRESS_END 0x800000000000ull
/* The page of three system calls that old programs call (VSYSCALL_ADDR), shifted by 12. */
#define WALK_VSYSCALL 0xffffffffff600ull
#define WALK_NULL_END 4096	     /* the kernel maps nothing below (mmap_min_addr) */
#define WALK_FP_MAX_FRAME (8u << 20) /* a frame pointer further up is not one */
#define WALK_JUMP_MIN 4096	     /* minimal distance down to another stack, in bytes */
#define WALK_JUMPS 64	  /* such jumps in one walk: RBP may be wrong and lead in circles */
#define WALK_SWITCHES 512 /* likewise, jumps by a loaded CFA */
#define WALK_NOT_BEGUN 2  /* value of exact: the leaf is the only frame */
#define WALK_FP_UNKNOWN 1 /* no frame pointer, not even the outermost frame's 0 */

/* How often the walk goes on in a runtime's program: 33 tail calls are allowed, of which one for
 * each runtime and one to the walk come before. Each time takes one there and one back. */
#define WALK_TAKES 13
#define WALK_DECLINES 16 /* a runtime that declined so often is not asked again in this walk */

/* Results of a step. */
enum walk_next {
	WALK_GOES_ON = 0,  /* there is a caller */
	WALK_IS_OVER = 1,  /* for w->reason */
	WALK_IS_TAKEN = 2, /* ask the runtime w->taker for this frame */
};
enum walk_phase {
	WALK_BEGINS,
	WALK_WALKS,
	WALK_ENDS,    /* the walk is over, and the sample is to be sent, */
	WALK_FETCHES, /* or deferred: runtimes fetch what that walk will need */
};

/* A runtime's entries that the native walk has not passed yet. */
struct walk_entries {
	__u64 at;   /* address of the next one, in the C frame that was entered; 0: none */
	__u32 next; /* its index in words[] */
	__u32 last; /* index of the last one */
};

/* Whether this frame's RBX or R12 is known; in a leaf both are. */
enum walk_tracked {
	WALK_TRACKS_RBX = 1,
	WALK_TRACKS_R12 = 2,
};

struct walk {
	__u64 pc, sp, fp;
	__u64 regs[16]; /* of the leaf, by DWARF number */
	__u64 regs_at;	/* user address of the mcontext that holds them instead; 0: regs[] */
	/* User address where this frame's RBX or R12 is saved; 0: still the leaf's. */
	__u64 tracked_at;
	__u64 leaf_pc;		    /* pc at the leaf, for a second walk */
	__u64 window_start;	    /* user address of window[0]; 0: empty */
	__u64 tls;		    /* env_tls(), for the runtimes' programs */
	__u64 memory;		    /* the address space, for reading objects; 0: not allowed */
	struct map_entry map;	    /* the mapping found last */
	struct file_entry file;	    /* and its file's entry */
	struct map_entry other_map; /* those found before: calls alternate between two files */
	struct file_entry other_file;
	__u32 maps, map_count;	       /* the process's mappings */
	__u32 count;		       /* user frames found */
	__u32 base;		       /* index of the first of them in words[] */
	__u32 room;		       /* how many fit */
	__u32 runtimes, runtimes_left; /* position of the next runtime_entry; how many are left */
	__u32 turn;		       /* index of the runtime that emits items now */
	__u32 slot;		       /* slot of its file */
	struct walk_entries entries[PROCESS_RUNTIMES_MAX];
	__u64 entry_at; /* the nearest address in entries; 0: none */
	__u16 reason;
	__u16 at_slot;
	__u8 exact;   /* pc is not a return address */
	__u8 leaf;    /* the leaf's registers are still valid: no call happened since */
	__u8 near;    /* 1: this frame called the leaf, or assembly that called the leaf */
	__u8 tracked; /* enum walk_tracked: known registers besides RSP and RBP */
	__u8 by_fp;   /* the step to this frame followed a frame pointer */
	__u8 guessed; /* an earlier step followed one, or used a rule that proves nothing */
	__u8 leaf_exact;
	__u8 in_routine; /* a routine of SBCL called this frame, and another may have called that */
	__u8 unsure;	 /* the caller of some frame may be missing */
	__u16 unsure_slot; /* slot of the first such frame */
	__u16 jumps;	   /* down to other stacks */
	/* Of frames that runtimes take over. */
	__u32 runtime_first; /* position of the process's runtime_entry[0] */
	__u32 rule;	     /* number of the rule of this frame */
	__u32 taken;	     /* index in words[] of the last frame that was taken */
	__u8 phase;	     /* enum walk_phase */
	__u8 taker;	     /* index of the runtime that is asked for this frame */
	__u8 declined;	     /* bits of the runtimes that declined this frame, */
	__u8 refused;	     /* and of those that are not asked again in this walk */
	__u8 declines;	     /* how often one declined */
	__u8 takes;	     /* how often the walk went on in a runtime's program */
	__u8 runtime_count;  /* of the process */
	__u64 window[WALK_WINDOW / 8];
	struct sample sample; /* this header and words[] go into the ring buffer */
	__u64 words[SAMPLE_WORDS];
};

/* Sets w->map and w->file to the mapping that covers pc. False if there is none. */
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
	if (pc < m->start || pc >= m->end)
		return false;
	w->other_map = map;
	w->other_file = file;
	w->map = *m;
	w->file.state = FILE_NO_ROWS;
	if (m->slot) {
		const struct file_entry *f = env_file(m->slot);

		if (!f)
			return false;
		w->file = *f;
	}
	return true;
}

ENV_INLINE bool walk_read(struct walk *w, __u64 addr, __u64 *ret)
{
	__u64 d = addr - w->window_start;

	if (d > WALK_WINDOW - 8 || !w->window_start) {
		__u64 start = (addr & ~7ull) - WALK_WINDOW_BELOW;

		if (addr < 4096 || addr >= WALK_ADDRESS_END)
			return false;
		if (env_read_user(w->window, WALK_WINDOW, start)) {
			/* The window crosses the end of the stack. */
			w->window_start = 0;
			return env_read_user(ret, 8, addr) == 0;
		}
		w->window_start = start;
		d = addr - start;
	}
	if (d & 7)
		return env_read_user(ret, 8, addr) == 0;
	*ret = w->window[(d >> 3) & (WALK_WINDOW / 8 - 1)];
	return true;
}

/* The index of a register in the kernel's mcontext, in words from the ucontext's start, by DWARF
 * number. The first eight have a byte each in `low`, the others are in order
 * (arch/x86/include/uapi/asm/sigcontext.h). */
ENV_INLINE __u64 walk_mcontext(__u8 reg)
{
	const __u64 low = 18ull | 17ull << 8 | 19ull << 16 | 16ull << 24 | 14ull << 32 |
			  13ull << 40 | 15ull << 48 | 20ull << 56;

	return reg < 8 ? low >> (reg & 7) * 8 & 0xff : reg - 3ull;
}

/* A register of the leaf, or of the frame that a signal interrupted. */
ENV_INLINE bool walk_leaf_register(struct walk *w, __u8 reg, __u64 *ret)
{
	if (w->regs_at)
		return walk_read(w, w->regs_at + walk_mcontext(reg & 15) * 8, ret);
	*ret = w->regs[reg & 15];
	return true;
}

/* A row covers one of the two registers. The other is unknown behind it. */
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

/* The value of a register in a rule. Of callers' registers the walk tracks RSP, RBP and one more:
 * RBX or, if a file needs it, R12. It reads that one only on demand: rows tell where it is saved,
 * and few rules need it.
 *
 * leafs: the leaf's registers are valid. They are also valid in its caller if assembly keeps a CFA
 * in a register that calls may change. This assembly knows that its callees leave the register
 * alone (OpenSSL's AES-GCM), and their callees too (dav1d's transforms). */
ENV_INLINE bool walk_register(struct walk *w, __u8 reg, bool leafs, __u64 *ret)
{
	if (reg == UNWIND_REG_RSP)
		*ret = w->sp;
	else if (reg == UNWIND_REG_RBP)
		*ret = w->fp;
	else if (walk_tracks(w, reg) && w->tracked_at)
		return walk_read(w, w->tracked_at, ret);
	else if (leafs || walk_tracks(w, reg))
		return walk_leaf_register(w, reg, ret);
	else
		return false;
	return true;
}

/* The CFA when Go switches stacks (enum unwind_cfa). *ret_pc_at: where the g of the stack that was
 * left keeps its pc. WALK_COMPLETE with a CFA of 0: no g was left, since the goroutine had been
 * taken off the thread. */
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

/* Whether RBP is proven to be the frame's own. back: the frame's return address by RBP. */
ENV_INLINE bool walk_owns_fp(struct walk *w, __u32 rbp, __u64 back)
{
	__u64 maps = OWNER_MAPS(w->maps, w->map_count), pc = w->leaf ? w->pc : w->pc | OWNER_CALLER;

	if (rbp == OWNER_SET_UP || (rbp == OWNER_LEFT && w->leaf))
		return rbp == OWNER_SET_UP;
	__u64 target = owner_called(back);

	/* A walk over a copy cannot see the code, so nothing is proven. */
	if (!owner_sees(w->pc))
		return false;
	/* There is no room for a return address between. */
	if (w->fp == w->sp)
		return true;
	/* Code that moves its arguments keeps the return address in a register meanwhile. */
	for (__u64 at = 40; at < 160 && w->leaf && w->regs_at; at += 8 * OWNER_WORDS)
		if (owner_words(maps, w->regs_at + at, w->regs_at + 160, w->pc))
			return false;
	__u32 popped = owner_popped(w->pc);

	for (int i = 0; i < 16 && w->leaf && !w->regs_at; i++)
		if (i != UNWIND_REG_RSP && owner_holds(maps, w->regs[i], popped >> i))
			return false;
	return owner_size(target) == w->fp - w->sp || !owner_words(maps, w->sp, w->fp, pc);
}

/* Goes to the caller by the frame pointer: RBP points at the caller's RBP, and the return address
 * lies above it. */
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
	/* By the psABI, zero marks the outermost frame. But code that uses RBP otherwise may also
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
	/* Frames that frame pointers lead to mostly have one, so only the first of a chain is
	 * examined further. */
	if (!w->unsure && (!w->by_fp || w->in_routine)) {
		__u64 is = owner_sbcl(w->leaf ? w->pc : w->pc | OWNER_CALLER, w->sp, fp, pc);
		bool first = !w->by_fp;
		/* In a file with tables that was called from outside: this is C code. */
		bool elsewhere = w->file.state == FILE_READY &&
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
	/* A wrong RBP shows only if the caller has no rows either: in libc, for one, RBP may hold
	 * anything. */
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

/* Linux's rt_sigframe: behind its return address RSP points at the ucontext, whose mcontext begins
 * at 40 with r8 (arch/x86/include/uapi/asm/sigcontext.h). */
ENV_INLINE int walk_signal(struct walk *w)
{
	__u64 sp = w->sp, fp, next_sp, pc;
	__u32 trampoline = w->base + w->count - 1;

	/* The kernel put the address of the trampoline's first byte where a return address would
	 * be. */
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
	/* All registers of the interrupted frame are known: it is as good as a leaf. */
	w->regs_at = sp;
	w->tracked_at = 0;
	w->tracked = WALK_TRACKS_RBX | WALK_TRACKS_R12;
	w->near = 0;
	w->leaf = 1;
	return 0;
}

/* Whether a CFA that is not above RSP may lie on another stack. Split stacks, and Go around calls
 * of the vDSO, keep the CFA in RBP. Runtimes with stacks of their own store in memory where they
 * left the last one. */
ENV_INLINE bool walk_jumps(struct walk *w, __u64 cfa, bool loaded)
{
	if (loaded)
		return cfa != w->sp && w->jumps++ < WALK_SWITCHES;
	return w->sp - cfa >= WALK_JUMP_MIN && w->jumps++ < WALK_JUMPS;
}

/* The CFA of a nest (enum unwind_cfa). */
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
	/* Threads and coroutines that begin on a hand-made stack have a zero in place of a return
	 * address. */
	return pc == 0 ? walk_stop(w, w->guessed | w->near ? WALK_NO_ROOT : WALK_COMPLETE) : 0;
}

/* Applies a rule that its number encodes (RULE_SHORT): walk_apply for nearly all frames. */
ENV_INLINE int walk_apply_short(struct walk *w, __u32 rule)
{
	bool by_rbp = rule & RULE_SHORT_RBP;
	__u64 cfa = (by_rbp ? w->fp : w->sp) + RULE_SHORT_CFA(rule) * 8, fp = w->fp, pc;

	if (RULE_SHORT_RBP_AT(rule) && !walk_read(w, cfa - RULE_SHORT_RBP_AT(rule) * 8, &fp))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	if (cfa <= w->sp && !(by_rbp && walk_jumps(w, cfa, false)))
		return walk_stop(w, WALK_NO_PROGRESS);
	if (!walk_read(w, cfa - 8, &pc))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	walk_track(w, WALK_TRACKS_RBX,
		   RULE_SHORT_RBX_AT(rule) ? cfa - RULE_SHORT_RBX_AT(rule) * 8 : 0);
	return walk_to_caller(w, cfa, fp, pc);
}

/* Applies a rule. 0: w is the caller's; 1: the walk is over. */
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

/* Goes to the caller from code that has not moved RSP: the vsyscall page, which the kernel mostly
 * emulates, and pages without code. */
ENV_INLINE int walk_called(struct walk *w)
{
	__u64 pc;

	if (!walk_read(w, w->sp, &pc))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	return walk_to_caller(w, w->sp + 8, w->fp, pc);
}

/* Adds an item of the current runtime (bpf/runtime.h) behind the existing ones. */
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

/* Adds an entry behind the frames of its chain. address: in the C frame that runs them; 0:
 * unknown. */
ENV_INLINE void walk_entry(struct walk *w, __u64 address)
{
	struct walk_entries *e = &w->entries[w->turn % PROCESS_RUNTIMES_MAX];
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
	for (__u32 k = 0; k < PROCESS_RUNTIMES_MAX; k++) {
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

/* 1 + the index of the first of the runtimes in `left` that is to be asked, or 0. first: position
 * of runtime_entry[0]. loop: only those that have the offset in their loop. */
ENV_FUNCTION __u32 walk_taker(__u32 first, __u32 left, __u32 loop, __u64 offset)
{
	for (__u32 k = 0; k < PROCESS_RUNTIMES_MAX; k++) {
		if (left >> k & 1 && (!loop || walk_loop_has(first + k * 8, offset)))
			return k + 1;
	}
	return 0;
}

/* The number of the rule of generated code whose frames have one layout (RUNTIME_RULES_GENERATED),
 * or RULE_GAP. rulers: a bit for each runtime that has one. */
ENV_FUNCTION __u32 walk_constant_rule(__u32 first, __u32 rulers)
{
	__u32 k = rulers & 1 ? 0 : rulers & 2 ? 1 : rulers & 4 ? 2 : 3, entry = first + k * 8;
	const struct slab *s = env_slab(entry, 8);

	if (!s)
		return RULE_GAP;
	__u32 config = ENV_AT(s, entry, struct runtime_entry, 8)->config;
	__u32 slot = ENV_AT(s, entry, struct runtime_entry, 8)->slot;

	s = env_slab(config, RUNTIME_CONFIG_WORDS);
	if (!s)
		return RULE_GAP;
	const struct runtime_config *c = ENV_AT(s, config, struct runtime_config,
						RUNTIME_CONFIG_WORDS);
	__u32 rule = c->rule & 0xffff;
	__u64 alias = c->alias;

	if (rule & RULE_SHORT)
		return rule;
	const struct file_entry *f = env_file(slot);

	return f && f->state == FILE_READY ? walk_find_rule(f, alias) : RULE_GAP;
}

/* The runtime that was asked leaves the frame to the native walk. */
ENV_INLINE void walk_decline(struct walk *w)
{
	w->declined |= 1u << (w->taker & 7);
	if (++w->declines >= WALK_DECLINES)
		w->refused |= w->declined;
}

/* Walks one frame: enum walk_next. */
ENV_INLINE int walk_step(struct walk *w)
{
	__u64 pc = w->exact ? w->pc : w->pc - 1;

	if (w->count >= w->room)
		return walk_stop(w, WALK_DEPTH);
	if (pc < w->map.start || pc >= w->map.end) {
		bool found = walk_find_map(w, pc);

		if ((!found || !w->map.slot) && env_probed(&w->pc, &w->sp, w->leaf)) {
			pc = w->pc - 1;
			w->exact = 0;
			found = walk_find_map(w, pc);
		}
		if (!found) {
			__u8 by_fp = w->by_fp;

			w->at_slot = (__u16)w->map.slot;
			w->map.slot = 0;
			w->map.start = w->map.end = 0;
			bool vsyscall = w->pc >> 12 == WALK_VSYSCALL && w->leaf;

			/* The return address may be any word, and its upper bits must not look like
			 * flags of a frame. */
			w->pc &= SAMPLE_FRAME_OFFSET_MASK;
			/* If a frame pointer led outside all mappings, there is no frame. */
			if (!by_fp)
				walk_push(w);
			/* A call through a null pointer: nothing can be mapped there. */
			if (vsyscall || (w->exact && w->leaf && w->pc < WALK_NULL_END))
				return walk_called(w);
			w->reason = by_fp ? WALK_NO_ROWS : WALK_NO_MAPPING;
			return 1;
		}
	}
	if (w->map.takers && w->exact != WALK_NOT_BEGUN) {
		__u32 asks = walk_taker(w->runtime_first,
					w->map.takers & ~(w->declined | w->refused),
					w->map.slot != 0, pc - w->map.bias);

		if (asks) {
			w->taker = asks - 1;
			return WALK_IS_TAKEN;
		}
	}
	walk_push(w);
	w->declined = 0;
	if (w->exact == WALK_NOT_BEGUN)
		return walk_stop(w, WALK_COMPLETE);

	int stop = 0;
	bool by_fp = false;

	w->rule = RULE_GAP;
	if (w->file.state == FILE_READY)
		w->rule = walk_find_rule(&w->file, pc - w->map.bias);
	else if (w->map.takers >> MAP_RULER)
		w->rule = walk_constant_rule(w->runtime_first, w->map.takers >> MAP_RULER);
	/* By way of memory, so that the verifier follows what comes once for both. */
	ENV_FORGET();
	__u32 number = w->rule;

	if (w->file.state == FILE_READY || number != RULE_GAP) {
		const struct unwind_rule *rule = number & RULE_SHORT ? NULL : env_rule(number);

		if (number & RULE_SHORT)
			stop = walk_apply_short(w, number);
		else if (!rule)
			stop = walk_stop(w, WALK_STALE);
		else if (rule->cfa != UNWIND_CFA_END || rule->flags & UNWIND_SIGNAL_FRAME ||
			 rule->ra == UNWIND_RA_UNDEFINED)
			stop = walk_apply(w, rule);
		else if (rule->cfa_add == UNWIND_END_UNSUPPORTED)
			/* The function has rules, and one that cannot be expressed. It may not have
			 * touched its caller's frame pointer, so following that would skip the
			 * caller. */
			stop = walk_stop(w, WALK_UNSUPPORTED_RULE);
		else
			by_fp = true;
	} else if (w->file.state == FILE_NO_ROWS || w->file.state == FILE_EVICTED) {
		by_fp = true;
	} else {
		stop = walk_stop(w, w->file.state == FILE_FREE ? WALK_STALE : WALK_ROWS_PENDING);
	}
	if (by_fp)
		stop = walk_by_fp(w);
	if (w->entry_at && w->sp > w->entry_at)
		walk_mark(w, w->base + w->count - 1);
	return stop;
}

/* Within execve the old program's stack disappears while its registers remain. A stack that cannot
 * be walked to its root is then no user stack any more. */
ENV_INLINE void walk_exec(struct walk *w)
{
	if (w->reason == WALK_COMPLETE)
		return;
	w->reason = WALK_COMPLETE;
	w->at_slot = 0;
	w->count = 0;
}

/* Prepares w for a walk. The caller has set pc, sp, fp and regs[]. Frames go behind the contents of
 * words[]. */
ENV_INLINE void walk_begin(struct walk *w, const struct process_entry *p, __u8 exact)
{
	w->window_start = 0;
	w->map.start = w->map.end = 0;
	w->map.slot = 0;
	w->other_map.start = w->other_map.end = 0;
	w->maps = p->maps;
	w->map_count = p->map_count;
	w->runtimes = p->maps + p->map_count * 8;
	w->runtimes_left = p->flags >> PROCESS_RUNTIMES_SHIFT;
	w->runtime_first = w->runtimes;
	w->runtime_count = w->runtimes_left;
	w->phase = WALK_BEGINS;
	w->declined = w->refused = w->declines = w->takes = 0;
	w->count = 0;
	w->turn = 0;
	for (__u32 k = 0; k < PROCESS_RUNTIMES_MAX; k++)
		w->entries[k].at = 0;
	w->entry_at = 0;
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

/* Call after walk_begin and all runtimes, when their items are complete. */
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

		if (n && of != slot && ++w->turn >= PROCESS_RUNTIMES_MAX)
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
