/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The samples that the sampling programs put into the ring buffer: fixed width, no padding. */
#ifndef BPF_SAMPLE_H
#define BPF_SAMPLE_H

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

#define SAMPLE_MAX_USER 2048  /* frames in the user part, without items */
#define SAMPLE_MAX_KERNEL 127 /* frames in the kernel part (PERF_MAX_STACK_DEPTH) */
/* Words behind a sample. A per-cpu value has at most 32 KiB, so very many items leave less room for
 * user frames, and about 1,240 frames fit that a runtime took, with an item each. */
#define SAMPLE_WORDS 3840
#define SAMPLE_MAX_HEAD (SAMPLE_MAX_KERNEL + 1 + 2 * RUNTIME_MAX_ITEMS)

#define SAMPLE_SOURCE_EVENT 0 /* the perf event that ticks on each cpu */

#define START_TICK_NS 10000000ull /* USER_HZ is 100: start times are rounded down to this */

enum sample_flags {
	SAMPLE_KERNEL_THREAD = 1,  /* no user part exists */
	SAMPLE_IN_KERNEL = 2,	   /* taken in kernel mode */
	SAMPLE_KERNEL_MISSING = 4, /* in kernel mode, but the kernel gave no stack */
	/* Within execve. If the user stack is already gone, there is no user part. */
	SAMPLE_IN_EXEC = 16,
	SAMPLE_DEFERRED = 8, /* the header of a struct deferred_sample */
	SAMPLE_ITEMS = 32,   /* holds the items of the deferred sample with this time and thread */
	SAMPLE_OBJECT = 64,  /* not a sample: the header of a struct sample_object */
	SAMPLE_UNDUMPABLE = 128, /* the process has runtimes, but its memory may not be read */
	SAMPLE_TAKEN = 256,	 /* a runtime took some of its frames */
	/* Of a deferred sample: a struct sample_fetched of this time and thread was sent. */
	SAMPLE_FETCHES = 512,
	SAMPLE_FETCHED = 1024, /* not a sample: the header of a struct sample_fetched */
	SAMPLE_THREAD = 2048,  /* not a sample: the header of a struct sample_thread */
	/* The name in the last struct sample_thread of its thread is valid for this sample. */
	SAMPLE_TITLED = 4096,
};

/* A user frame is one word: the file's slot in the tables and the file offset. Slot 0: an address,
 * in no file with a slot. */
#define SAMPLE_FRAME_FP (1ull << 63) /* found by frame pointer, since rows are missing */
/* The exact pc (of a leaf, or interrupted by a signal), not a return address. */
#define SAMPLE_FRAME_EXACT (1ull << 62)
#define SAMPLE_FRAME_ENTRY (1ull << 61) /* an entry of a runtime (bpf/runtime.h) lies in it */
#define SAMPLE_FRAME_SLOT_SHIFT 48
#define SAMPLE_FRAME_SLOT_MASK 0x1fffull
#define SAMPLE_FRAME_OFFSET_MASK 0xffffffffffffull
/*
 * A frame that a runtime took (bpf/runtime.h) has a slot from here on, and its pc in place of a
 * file offset. SAMPLE_FRAME_TAKEN + n: n items of two words each follow, which say what runs in it,
 * innermost first. So `user_frames` counts words, which are more than frames where a runtime took
 * some.
 */
#define SAMPLE_FRAME_TAKEN 0x1ff8ull
#define SAMPLE_TAKEN_ITEMS 7 /* of one frame, at most */

struct sample {
	__sample_u64 time_ns; /* CLOCK_MONOTONIC */
	/* CLOCK_BOOTTIME start of the thread group's leader, rounded down to START_TICK_NS. */
	__sample_u64 start_ns;
	__sample_u64 value; /* weight of the sample, in the event's unit */
	__sample_u32 pid;   /* thread group; like all ids, as prof-bpf sees it */
	__sample_u32 tid;
	__sample_u32 parent_pid;
	__sample_u32 cpu;
	/* Of the process's mappings that the walk used (struct process_entry); 0: none. */
	__sample_u32 generation;
	__sample_u32 uid; /* real, of the thread */
	/* The user to whom its costs are charged. A user namespace and all in it belong to the user
	 * who made the outermost one, since that user may run under many uids there. */
	__sample_u32 owner_uid;
	/* The container: the outermost pid namespace below prof-bpf's, by its inode number; 0:
	 * none, or made by a user in a namespace of theirs. */
	__sample_u32 owner_container;
	/* The event that drove it; from 1 on, the id of a source in the stream. */
	__sample_u32 source : 8;
	/* Its pid on the host, if prof-bpf sees another one; else 0. Pids have at most 22 bits. */
	__sample_u32 host_pid : 24;
	__sample_u16 reason; /* enum walk_reason of the user part */
	__sample_u16 flags;  /* enum sample_flags */
	__sample_u16 kernel_frames;
	__sample_u16 user_frames; /* their words; see SAMPLE_FRAME_TAKEN */
	__sample_u16 at_slot;	  /* slot of the file where an incomplete walk ended, or 0 */
	__sample_u16 items;	  /* of runtimes, two words each */
	char comm[16];		  /* of the thread */
}; /* words follow: kernel addresses, leaf first; items; user frames, leaf first */

/*
 * A copy of an interpreted frame's object, and of what it points to for its names (struct
 * runtime_copy). It is made at the first sample, since the object may be freed right after.
 * `user_frames` of its sample counts the words behind the header in the ring.
 */
#define SAMPLE_PIECES RUNTIME_STEPS
#define SAMPLE_PIECE_BYTES 4096 /* of one piece, at most; and of all but the last together */
#define SAMPLE_OBJECT_BYTES (2 * SAMPLE_PIECE_BYTES)

struct sample_object {
	struct sample sample;
	__sample_u64 address, check;
	__sample_u64 at[SAMPLE_PIECES];	    /* user addresses */
	__sample_u32 len[SAMPLE_PIECES];    /* bytes that could be read of each */
	__sample_u32 offset[SAMPLE_PIECES]; /* where they are in bytes[]; multiples of 8 */
	__sample_u32 pieces, used;	    /* how many there are; bytes in bytes[] */
	/* The ring holds only the bytes that exist. */
	unsigned char bytes[SAMPLE_OBJECT_BYTES];
};

/*
 * The name that a program gave a thread, by a runtime's own means. It is sent before the thread's
 * first sample with this name. A virtual thread's name holds for samples with SAMPLE_TITLED only.
 */
#define SAMPLE_THREAD_BYTES 128
enum sample_thread_flags {
	SAMPLE_THREAD_UTF16 = 1,   /* else each byte is a character (Latin-1) */
	SAMPLE_THREAD_VIRTUAL = 2, /* of a virtual thread that this thread runs */
};
struct sample_thread {
	struct sample sample;
	__sample_u32 bytes; /* of its name in text[] */
	__sample_u32 flags; /* enum sample_thread_flags */
	unsigned char text[SAMPLE_THREAD_BYTES];
};

/*
 * Memory besides the stack that runtimes need to take over frames of a deferred walk. They fetch it
 * while the stack is copied, for each word of the stack that leads into their code. `user_frames`
 * of its sample counts the words behind the header in the ring. A line may also hold numbers that
 * the fetching walk found, at an address that is none of a process (RUNTIME_TOLD).
 */
#define SAMPLE_FETCHED_BYTES 64 /* of a line, which begins at a multiple of it */
#define SAMPLE_FETCHED_LINES 1200
#define SAMPLE_TOLD 3		   /* numbers in a line */
#define SAMPLE_FETCHED_STACK 32768 /* bytes of the stack, from RSP on, whose words it looks at */
struct sample_line {
	__sample_u64 at;
	union {
		unsigned char bytes[SAMPLE_FETCHED_BYTES];
		__sample_u64 told[SAMPLE_TOLD];
	};
};
struct sample_fetched {
	struct sample sample;
	__sample_u64 lines;
	struct sample_line line[SAMPLE_FETCHED_LINES]; /* the ring holds `lines` of them */
};

/*
 * The input of a deferred walk: the leaf's registers, and the user stack from RSP's page on. A walk
 * is deferred if the tables do not know the process, a mapping or a file's rows yet. The data comes
 * from a process that may be hostile.
 *
 * The thread may have left other stacks for this one: the one that a signal interrupted, or Go's,
 * which switches between several. These are copied too, with the words that lead to them.
 */
#define DEFERRED_STACK 131072 /* bytes at most, of all stacks */
#define DEFERRED_CHUNK 4096
#define DEFERRED_CHUNKS (DEFERRED_STACK / DEFERRED_CHUNK)

/* The stacks to copy, in this order: those of known size first. */
enum deferred_stack {
	DEFERRED_CURG,	      /* the goroutine's */
	DEFERRED_G0,	      /* of the thread that runs it */
	DEFERRED_INTERRUPTED, /* the one that a signal interrupted */
	DEFERRED_LEAF,
	DEFERRED_STACKS,
};
struct deferred_range {
	__sample_u64 start, end; /* user addresses; both 0: none */
};

/* Words at an address. */
enum deferred_object {
	DEFERRED_TLS, /* g_below bytes below the TLS base: points to g */
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
	__sample_u32 exact;    /* as in struct walk: pc is not a return address */
	__sample_u32 next;     /* enum deferred_stack to copy next, while the program runs */
	struct deferred_range ranges[DEFERRED_STACKS];
	struct deferred_words objects[DEFERRED_OBJECTS];
	/* Chunks in stack[], at most DEFERRED_CHUNKS. Unreadable pages, such as pages never
	 * written, are left out. */
	__sample_u32 chunks;
	__sample_u32 g_below; /* how many bytes below the TLS base a g was found; 0: none */
	__sample_u64 chunk_at[DEFERRED_CHUNKS]; /* user address of each */
	unsigned char stack[DEFERRED_STACK];
};

/* A deferred sample in its ring. It has one of two sizes, since the kernel reserves only constant
 * sizes. The small one ends after DEFERRED_SMALL_CHUNKS. */
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
static_assert(sizeof(struct sample) == 88, "no padding");
static_assert(SAMPLE_FRAME_TAKEN + SAMPLE_TAKEN_ITEMS == SAMPLE_FRAME_SLOT_MASK, "it fits");
static_assert(sizeof(struct sample_object) == 88 + 24 + SAMPLE_PIECES * 16 + SAMPLE_OBJECT_BYTES,
	      "no padding");
static_assert(sizeof(struct sample_thread) == 96 + SAMPLE_THREAD_BYTES, "no padding");
static_assert(sizeof(struct sample_fetched) == 96 + SAMPLE_FETCHED_LINES * 72, "no padding");
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

/* How many words come before the user frames. */
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

static inline uint16_t sample_frame_slot(uint64_t word)
{
	return (uint16_t)(word >> SAMPLE_FRAME_SLOT_SHIFT & SAMPLE_FRAME_SLOT_MASK);
}

/* The items that follow a user frame's word. */
static inline uint32_t sample_frame_items(uint64_t word)
{
	return sample_frame_slot(word) > SAMPLE_FRAME_TAKEN
		       ? sample_frame_slot(word) - (uint32_t)SAMPLE_FRAME_TAKEN
		       : 0;
}

/* How many words a user frame takes. */
static inline uint32_t sample_frame_words(uint64_t word)
{
	return 1 + 2 * sample_frame_items(word);
}
#endif

#endif
