/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* What a sampling program puts into the ring buffer: fixed width, no padding. */
#ifndef PROFPIPE_SAMPLE_H
#define PROFPIPE_SAMPLE_H

#include "bpf/runtime.h"

#ifndef __bpf__
#include <assert.h>
#include <stdint.h>
typedef uint64_t __sample_u64;
typedef uint32_t __sample_u32;
typedef uint16_t __sample_u16;
#else
typedef __u64 __sample_u64;
typedef __u32 __sample_u32;
typedef __u16 __sample_u16;
#endif

#define SAMPLE_MAX_USER 2048  /* frames of the user part */
#define SAMPLE_MAX_KERNEL 127 /* frames of the kernel part (PERF_MAX_STACK_DEPTH) */
/* Words behind a sample. A value of each cpu is of 32 KiB at most: where there are very many items
 * user frames have less room. */
#define SAMPLE_WORDS 3840
#define SAMPLE_MAX_HEAD (SAMPLE_MAX_KERNEL + 1 + 2 * RUNTIME_MAX_ITEMS)

#define START_TICK_NS 10000000ull /* USER_HZ is 100: start times are cut to this */

enum sample_flags {
	SAMPLE_KERNEL_THREAD = 1,  /* no user part exists */
	SAMPLE_IN_KERNEL = 2,	   /* taken in kernel mode */
	SAMPLE_KERNEL_MISSING = 4, /* in kernel mode, but the kernel gave no stack */
	SAMPLE_IN_EXEC = 16, /* within execve: the user stack may be gone already, and then there is
				no user part */
	SAMPLE_DEFERRED = 8, /* it heads a struct deferred_sample */
	SAMPLE_ITEMS = 32,   /* the items of the deferred sample of that time and thread */
	SAMPLE_OBJECT = 64,  /* no sample: it heads a struct sample_object */
	SAMPLE_UNDUMPABLE = 128, /* of a process with runtimes: its memory is not to be read */
};

/* A user frame is one word: the file's slot in the tables and the file offset; slot 0: an address
 * in no file that has a slot. */
#define SAMPLE_FRAME_FP (1ull << 63) /* found by frame pointer, for want of rows */
/* The pc itself (leaf, or interrupted by a signal), not a return address. */
#define SAMPLE_FRAME_EXACT (1ull << 62)
#define SAMPLE_FRAME_ENTRY (1ull << 61) /* an entry of a runtime (bpf/runtime.h) lies in it */
#define SAMPLE_FRAME_SLOT_SHIFT 48
#define SAMPLE_FRAME_SLOT_MASK 0x1fffull
#define SAMPLE_FRAME_OFFSET_MASK 0xffffffffffffull

struct sample {
	__sample_u64 time_ns;  /* CLOCK_MONOTONIC */
	__sample_u64 start_ns; /* CLOCK_BOOTTIME start of the thread group's leader, cut to
				  START_TICK_NS */
	__sample_u64 value;    /* what the sample stands for, in the event's unit */
	__sample_u32 pid;      /* thread group */
	__sample_u32 tid;
	__sample_u32 parent_pid;
	__sample_u32 cpu;
	__sample_u32 generation; /* of the process's mappings that were used (struct process_entry),
				    0 for none */
	__sample_u32 uid;	 /* real, of the thread */
	__sample_u32 unused;	 /* 0 */
	__sample_u16 reason;	 /* enum walk_reason of the user part */
	__sample_u16 flags;	 /* enum sample_flags */
	__sample_u16 kernel_frames;
	__sample_u16 user_frames;
	__sample_u16 at_slot; /* where an incomplete walk ended: the slot of its file, or 0 */
	__sample_u16 items;   /* of runtimes: two words each */
	char comm[16];	      /* of the thread */
}; /* words follow: kernel addresses, leaf first; items; user frames, leaf first */

/*
 * An interpreted frame's object, and what it points to for its names, as they were when it was
 * sampled first: it may be freed the moment after. Its words in the ring are the `user_frames` of
 * its sample.
 */
enum sample_piece {
	SAMPLE_PIECE_OBJECT,
	SAMPLE_PIECE_NAME,
	SAMPLE_PIECE_SOURCE,
	SAMPLE_PIECE_LINES,
	SAMPLE_PIECES,
};
#define SAMPLE_OBJECT_BYTES 256
#define SAMPLE_NAME_BYTES 128
#define SAMPLE_SOURCE_BYTES 192
#define SAMPLE_LINES_BYTES 4096

struct sample_object {
	struct sample sample;
	__sample_u64 address, check;
	__sample_u64 at[SAMPLE_PIECES];	 /* user addresses */
	__sample_u32 len[SAMPLE_PIECES]; /* bytes that could be read of each */
	unsigned char object[SAMPLE_OBJECT_BYTES];
	unsigned char name[SAMPLE_NAME_BYTES];
	unsigned char source[SAMPLE_SOURCE_BYTES];
	unsigned char lines[SAMPLE_LINES_BYTES]; /* in the ring only as many as there are, and up
						    to 7 more */
};

/*
 * What a walk needs that cannot be done yet, since the tables do not know the process, a mapping or
 * a file's rows: the leaf's registers, and the user stack from RSP's page on. It is data of a
 * process that may be hostile.
 *
 * A thread may have left other stacks before this one: for a signal's, or Go's for each other. They
 * travel too, with the words that lead to them.
 */
#define DEFERRED_STACK 131072 /* bytes at most, of all stacks */
#define DEFERRED_CHUNK 4096
#define DEFERRED_CHUNKS (DEFERRED_STACK / DEFERRED_CHUNK)

/* Which stacks are copied, in this order: those whose size is known first. */
enum deferred_stack {
	DEFERRED_CURG,	      /* the goroutine's */
	DEFERRED_G0,	      /* that of the thread that runs it */
	DEFERRED_INTERRUPTED, /* what a signal interrupted */
	DEFERRED_LEAF,
	DEFERRED_STACKS,
};
struct deferred_range {
	__sample_u64 start, end; /* user addresses; both 0: there is none */
};

/* Words near an address. */
enum deferred_object {
	DEFERRED_TLS, /* g_below bytes below the TLS base: g is there */
	DEFERRED_G_NOW,
	DEFERRED_M,
	DEFERRED_G_OF_THREAD,
	DEFERRED_G_OF_USER,
	DEFERRED_OBJECTS,
};
struct deferred_words {
	__sample_u64 at; /* user address of words[0]; 0: none could be read */
	__sample_u64 words[32];
};

/* A return address that a uretprobe's trampoline took the place of. */
struct probed_return {
	__sample_u64 stack; /* user address where it was; 0: none */
	__sample_u64 pc;
};
#define DEFERRED_RETURNS 8

struct deferred {
	__sample_u64 pc;
	__sample_u64 regs[16]; /* by DWARF number */
	__sample_u64 tls;      /* where fs:0 lies; 0: not known */
	struct probed_return returns[DEFERRED_RETURNS];
	unsigned char code[8]; /* around pc: from pc - 4 on; zeros where it could not be read */
	__sample_u32 exact;    /* as in struct walk: pc is not a return address */
	__sample_u32 next;     /* to be copied, while the program runs: an enum deferred_stack */
	struct deferred_range ranges[DEFERRED_STACKS];
	struct deferred_words objects[DEFERRED_OBJECTS];
	__sample_u32 chunks; /* of stack[], at most DEFERRED_CHUNKS; what could not be read is none:
				a page that was never written */
	__sample_u32 g_below; /* the TLS base, in bytes: where a g was found; 0: none */
	__sample_u64 chunk_at[DEFERRED_CHUNKS]; /* user address of each */
	unsigned char stack[DEFERRED_STACK];
};

/* A deferred sample as it lies in its ring: all of one of two sizes, for the kernel reserves no
 * others. The small one ends after so many chunks. */
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
static_assert(sizeof(struct sample) == 80, "no padding");
static_assert(sizeof(struct sample_object) == 80 + 16 + SAMPLE_PIECES * 12 + 4672, "no padding");
static_assert(sizeof(struct deferred) == (21 + 2 * DEFERRED_RETURNS + 2 * DEFERRED_STACKS +
					  33 * DEFERRED_OBJECTS + DEFERRED_CHUNKS) *
							 8 +
						 DEFERRED_STACK,
	      "no padding");

/* The words behind a sample. Borrowed. */
static inline const uint64_t *sample_words(const struct sample *s)
{
	return (const uint64_t *)(s + 1);
}

/* How many of them come before the user's frames. */
static inline uint32_t sample_head(const struct sample *s)
{
	return s->kernel_frames + 2u * s->items;
}

static inline const uint64_t *sample_items(const struct sample *s)
{
	return sample_words(s) + s->kernel_frames;
}

static inline const uint64_t *sample_user_frames(const struct sample *s)
{
	return sample_words(s) + sample_head(s);
}
#endif

#endif
