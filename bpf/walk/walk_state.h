/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The state of a walk (walk.h): everything that a walk keeps between two steps. */
#ifndef BPF_WALK_WALK_STATE_H
#define BPF_WALK_WALK_STATE_H

#include "bpf/walk/env.h"
#include "bpf/walk/owner.h"
#include "bpf/walk/owner_sbcl.h"
#include "bpf/reasons.h"
#include "bpf/sample.h"
#include "bpf/walk/search.h"

#define WALK_WINDOW 512 /* bytes of stack read at once */
/* Part of the window below the requested address, since saved registers lie below a return
 * address. */
#define WALK_WINDOW_BELOW 64
/* The first address above user space (x86-64, 4-level page tables). */
#define WALK_ADDRESS_END 0x800000000000ull
/* The page of three system calls that old programs call (VSYSCALL_ADDR), shifted by 12. */
#define WALK_VSYSCALL 0xffffffffff600ull
#define WALK_NULL_END 4096	     /* below this, the kernel maps nothing (mmap_min_addr) */
#define WALK_FP_MAX_FRAME (8u << 20) /* a frame pointer this far above RSP is not one */
/* A value of walk.fp: there is no frame pointer, not even the 0 of the outermost frame. */
#define WALK_FP_UNKNOWN 1
#define WALK_JUMP_MIN 4096 /* shortest distance down to another stack, in bytes */
/* Limit of these jumps in one walk: RBP may be wrong and lead in circles. */
#define WALK_JUMPS 64
#define WALK_SWITCHES 512 /* limit of jumps by a loaded CFA */

/* How often the walk continues in a runtime's program. The kernel allows 33 tail calls, of which
 * one for each runtime and one to the walk come first. Each turn takes two, there and back. */
#define WALK_TAKES 13
#define WALK_DECLINES 16 /* a runtime that declined this often is not asked again in this walk */

/* Results of a step. */
enum walk_next {
	WALK_GOES_ON = 0,  /* there is a caller */
	WALK_IS_OVER = 1,  /* w->reason tells why */
	WALK_IS_TAKEN = 2, /* ask the runtime w->taker for this frame */
};
enum walk_phase {
	WALK_BEGINS,
	WALK_WALKS,
	WALK_ENDS,    /* the walk is over, and the sample is sent, */
	WALK_FETCHES, /* or it is deferred: runtimes fetch what the deferred walk will need */
};

/* A runtime's entries that the native walk has not passed yet. */
struct walk_entries {
	__u64 at;   /* address in the C frame that the next one entered; 0: none */
	__u32 next; /* index of the next one in words[] */
	__u32 last; /* index of the last one */
};

/* Which of RBX and R12 is known in this frame; in a leaf both are. */
enum walk_tracked {
	WALK_TRACKS_RBX = 1,
	WALK_TRACKS_R12 = 2,
};

/* A value of walk.exact besides 0 and 1: the thread has not started, and the leaf is the only
 * frame. */
#define WALK_NOT_BEGUN 2

struct walk {
	__u64 pc, sp, fp; /* fp: or WALK_FP_UNKNOWN */
	__u64 regs[16];	  /* of the leaf, by DWARF number */
	__u64 regs_at;	  /* user address of the mcontext that holds them instead; 0: regs[] */
	/* User address where this frame's RBX or R12 is saved; 0: it is still the leaf's. */
	__u64 tracked_at;
	__u64 leaf_pc;		    /* pc at the leaf; a deferred walk starts there again */
	__u64 window_start;	    /* user address of window[0]; 0: empty */
	__u64 word;		    /* result of walk_fetch or walk_fetch_register */
	__u64 tls;		    /* result of env_tls(), for the runtimes' programs */
	__u64 memory;		    /* the address space, for reading objects; 0: reading is not
				     * allowed */
	struct map_entry map;	    /* the mapping that was found last */
	struct file_entry file;	    /* the entry of its file */
	struct map_entry other_map; /* the previous ones: calls often alternate between two files */
	struct file_entry other_file;
	__u32 maps, map_count;	       /* position and number of the process's mappings */
	__u32 count;		       /* number of words of user frames found so far */
	__u32 base;		       /* index in words[] of the first of them */
	__u32 room;		       /* how many words fit */
	__u32 runtimes, runtimes_left; /* position of the next runtime_entry; how many are left */
	__u32 turn;		       /* index of the runtime that emits items now */
	__u32 slot;		       /* slot of its file */
	struct walk_entries entries[TABLES_PROCESS_RUNTIMES_MAX];
	__u64 entry_at; /* the nearest address in entries; 0: none */
	__u16 reason;
	__u16 at_slot;
	__u8 exact;   /* 1: pc is not a return address; or WALK_NOT_BEGUN */
	__u8 leaf;    /* the leaf's registers are still valid: no call since */
	__u8 near;    /* 1: this frame called the leaf, or assembly that called the leaf */
	__u8 tracked; /* enum walk_tracked: known registers besides RSP and RBP */
	__u8 by_fp;   /* the step to this frame followed a frame pointer */
	__u8 guessed; /* an earlier step followed a frame pointer, or used a rule that proves
		       * nothing */
	__u8 leaf_exact;
	__u8 in_routine;   /* a routine of SBCL called this frame, and another one may have called
			  * that routine */
	__u8 unsure;	   /* the caller of some frame may be missing */
	__u16 unsure_slot; /* slot of the first such frame */
	__u16 jumps;	   /* number of jumps down to other stacks */
	/* For frames that runtimes take over. */
	__u32 runtime_first; /* position of the process's runtime_entry[0] */
	__u32 rule;	     /* number of the rule of this frame */
	__u32 taken;	     /* index in words[] of the last frame that was taken over */
	__u8 phase;	     /* enum walk_phase */
	__u8 taker;	     /* index of the runtime that is asked for this frame */
	__u8 declined;	     /* bit mask: the runtimes that declined this frame, */
	__u8 refused;	     /* and those that are not asked again in this walk */
	__u8 declines;	     /* how often a runtime declined */
	__u8 takes;	     /* how often the walk continued in a runtime's program */
	__u8 runtime_count;  /* number of the process's runtimes */
	/* For a thread whose older frames a runtime stores in its heap. */
	__u8 heap_pieces;  /* how many pieces of them were begun, plus the cost of finding them */
	__u64 heap_end;	   /* the end of the piece that is walked now; 0: the walk is on the
			    * stack */
	__u64 heap_parent; /* the next piece; 0: none */
	__u64 heap_back;   /* the stack continues here after all of them */
	__u64 heap_from;   /* the first piece is walked from here on; 0: from where it begins */
	__u64 heap_pause;  /* tells which pause of the thread the walk has passed */
	__u32 heap_above;  /* how many frames on the stack the thread has since that pause */
	__u32 heap_skip;   /* how many frames of the first piece were seen on the stack, plus 1 */
	__u32 heap_count, heap_room; /* count and room before these frames */
	__u64 searches; /* how often a runtime searched the stack for a return address */
	__u64 thread;	/* the runtime's own structure for the thread; 0: not seen yet */
	__u64 window[WALK_WINDOW / 8];
	struct sample sample; /* this header and words[] go into the ring buffer */
	__u64 words[SAMPLE_WORDS];
};
#ifndef __bpf__
static_assert(sizeof(struct walk) <= 32768, "a per-cpu value has at most 32 KiB");
#endif

/* Functions of a walk that the verifier checks once (search.h). It lets them take only numbers, so
 * in the kernel they look the walk up themselves. */
#ifdef __bpf__
static __always_inline struct walk *scratch(void);
#define WALK_PARAMETER
#define WALK_ARGUMENT(w)
#define WALK_FIND(w) \
	struct walk *w = scratch(); \
	if (!w) \
	return 0
#else
#define WALK_PARAMETER struct walk *w,
#define WALK_ARGUMENT(w) w,
#define WALK_FIND(w)
#endif

#endif
