/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The input of a deferred walk: the leaf's registers, and the user stack from RSP's page on. A walk
 * is deferred if the tables do not know the process, a mapping or a file's rows yet. The data comes
 * from a process that may be hostile.
 *
 * The thread may have switched from other stacks to this one: a signal interrupted it on another
 * stack, or Go switched between several. These are also copied, with the words that lead to them.
 */
#ifndef BPF_DEFERRED_H
#define BPF_DEFERRED_H

#include "bpf/sample.h"

#define DEFERRED_STACK 131072 /* bytes at most, of all stacks */
#define DEFERRED_CHUNK 4096
#define DEFERRED_CHUNKS (DEFERRED_STACK / DEFERRED_CHUNK)

/* The stacks to copy, in this order. Those of known size come first. */
enum deferred_stack {
	DEFERRED_CURG,	      /* the stack of the goroutine */
	DEFERRED_G0,	      /* the stack of the thread that runs it */
	DEFERRED_INTERRUPTED, /* the one that a signal interrupted */
	DEFERRED_LEAF,
	DEFERRED_STACKS,
};
struct deferred_range {
	__sample_u64 start, end; /* user addresses; both 0: none */
};

/* Words at an address. */
enum deferred_object {
	DEFERRED_TLS, /* the word g_below bytes below the TLS base, which points to g */
	DEFERRED_G_NOW,
	DEFERRED_M,
	DEFERRED_G_OF_THREAD,
	DEFERRED_G_OF_USER,
	DEFERRED_OBJECTS,
};
struct deferred_words {
	__sample_u64 at; /* user address of words[0]; 0: nothing could be read */
	__sample_u64 words[32];
};

/* A return address that a uretprobe's trampoline replaced. */
struct probed_return {
	__sample_u64 stack; /* user address where it was; 0: none */
	__sample_u64 pc;
};
#define DEFERRED_RETURNS 8

struct deferred {
	__sample_u64 pc;
	__sample_u64 regs[16]; /* by DWARF number */
	__sample_u64 tls;      /* the address of fs:0; 0: unknown */
	struct probed_return returns[DEFERRED_RETURNS];
	unsigned char code[8]; /* from pc - 4 on; zeros if unreadable */
	__sample_u32 exact;    /* as in struct walk: pc is exact, not a return address */
	__sample_u32 next;     /* enum deferred_stack to copy next; used only while the program
			        * runs */
	struct deferred_range ranges[DEFERRED_STACKS];
	struct deferred_words objects[DEFERRED_OBJECTS];
	/* Number of chunks in stack[], at most DEFERRED_CHUNKS. Unreadable pages, such as pages
	 * never written, are left out. */
	__sample_u32 chunks;
	__sample_u32 g_below; /* how many bytes below the TLS base a pointer to g was found; 0:
			       * none */
	__sample_u64 chunk_at[DEFERRED_CHUNKS]; /* user address of each */
	unsigned char stack[DEFERRED_STACK];
};

/* A deferred sample in its ring. It has one of two sizes, since the kernel can only reserve
 * constant sizes. The small one ends after DEFERRED_SMALL_CHUNKS. */
#define DEFERRED_SMALL_CHUNKS 6
#define DEFERRED_SMALL_BYTES \
	(sizeof(struct deferred_sample) - \
	 (DEFERRED_CHUNKS - DEFERRED_SMALL_CHUNKS) * DEFERRED_CHUNK)
struct deferred_sample {
	struct sample sample;
	__sample_u64 kernel[SAMPLE_MAX_KERNEL + 1];
	struct deferred deferred;
};

#ifndef __bpf__
static_assert(sizeof(struct deferred) == (21 + 2 * DEFERRED_RETURNS + 2 * DEFERRED_STACKS +
					  33 * DEFERRED_OBJECTS + DEFERRED_CHUNKS) *
							 8 +
						 DEFERRED_STACK,
	      "no padding");
#endif

#endif
