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
/* Words after a sample's header. A per-cpu value has at most 32 KiB. So if a sample has very many
 * items, fewer user frames fit: about 1,270 frames that a runtime took over, with an item each. */
#define SAMPLE_WORDS 3840
#define SAMPLE_MAX_HEAD (SAMPLE_MAX_KERNEL + 1 + 2 * RUNTIME_MAX_ITEMS)

#define SAMPLE_SOURCE_EVENT 0 /* the perf event that ticks on each cpu */

#define SAMPLE_START_TICK_NS 10000000ull /* USER_HZ is 100: start times are rounded down to this */

enum sample_flags {
	SAMPLE_KERNEL_THREAD = 1,  /* no user part exists */
	SAMPLE_IN_KERNEL = 2,	   /* taken in kernel mode */
	SAMPLE_KERNEL_MISSING = 4, /* in kernel mode, but the kernel gave no stack */
	/* Within execve. There is no user part if the user stack is already gone. */
	SAMPLE_IN_EXEC = 16,
	SAMPLE_DEFERRED = 8,	 /* the header of a struct deferred_sample */
	SAMPLE_ITEMS = 32,	 /* contains the items of the deferred sample with this time and
			      * thread */
	SAMPLE_OBJECT = 64,	 /* not a sample: the header of a struct sample_object */
	SAMPLE_UNDUMPABLE = 128, /* the process has runtimes, but its memory may not be read */
	SAMPLE_TAKEN = 256,	 /* a runtime took over some of its frames */
	/* Of a deferred sample: a struct sample_fetched with this time and thread was sent. */
	SAMPLE_FETCHES = 512,
	SAMPLE_FETCHED = 1024, /* not a sample: the header of a struct sample_fetched */
	SAMPLE_THREAD = 2048,  /* not a sample: the header of a struct sample_thread */
	/* The last struct sample_thread of its thread has the name that is valid for this
	 * sample. */
	SAMPLE_TITLED = 4096,
};

/* A user frame is one word: the file's slot in the tables and the file offset. With slot 0 it is an
 * address that belongs to no file with a slot. */
#define SAMPLE_FRAME_FP (1ull << 63) /* found through the frame pointer, since rows are missing */
/* The pc is exact (of a leaf, or interrupted by a signal), and not a return address. */
#define SAMPLE_FRAME_EXACT (1ull << 62)
#define SAMPLE_FRAME_ENTRY (1ull << 61) /* it contains an entry of a runtime (bpf/runtime.h) */
#define SAMPLE_FRAME_SLOT_SHIFT 48
#define SAMPLE_FRAME_SLOT_MASK 0x1fffull
#define SAMPLE_FRAME_OFFSET_MASK 0xffffffffffffull
/*
 * Slots from this one on mark a frame that a runtime took over (bpf/runtime.h); its word has the pc
 * in place of a file offset. SAMPLE_FRAME_TAKEN + n: n items of two words each follow, which tell
 * what runs in the frame, innermost first. So `user_frames` counts words, which may be more than
 * frames.
 */
#define SAMPLE_FRAME_TAKEN 0x1ff8ull
#define SAMPLE_TAKEN_ITEMS 7 /* of one frame, at most */

static inline __sample_u16 sample_frame_slot(__sample_u64 word)
{
	return (__sample_u16)(word >> SAMPLE_FRAME_SLOT_SHIFT & SAMPLE_FRAME_SLOT_MASK);
}

struct sample {
	__sample_u64 time_ns; /* CLOCK_MONOTONIC */
	/* CLOCK_BOOTTIME start of the thread group's leader, rounded down to
	 * SAMPLE_START_TICK_NS. */
	__sample_u64 start_ns;
	__sample_u64 value; /* weight of the sample, in the event's unit */
	__sample_u32 pid;   /* thread group; like all ids, as prof-bpf sees it */
	__sample_u32 tid;
	__sample_u32 parent_pid;
	__sample_u32 cpu;
	/* Identifies the process's mappings that the walk used (struct process_entry); 0: none. */
	__sample_u32 generation;
	__sample_u32 uid; /* real uid of the thread */
	/* The user who is charged for the sample. A user namespace and everything in it belongs to
	 * the user who made the outermost one, since that user may run under many uids there. */
	__sample_u32 owner_uid;
	/* The container: the inode number of the outermost pid namespace below prof-bpf's. 0: none,
	 * or made by a user in a user namespace of their own. */
	__sample_u32 owner_container;
	/* The kernel's number of the process's cgroup in the unified hierarchy. */
	__sample_u64 cgroup;
	/* The event that triggered the sample; from 1 on, the id of a source in the stream. */
	__sample_u32 source : 8;
	/* The process's pid on the host, if prof-bpf sees another one; else 0. Pids have at most 22
	 * bits. */
	__sample_u32 host_pid : 24;
	__sample_u16 reason; /* enum walk_reason of the user part */
	__sample_u16 flags;  /* enum sample_flags */
	__sample_u16 kernel_frames;
	__sample_u16 user_frames; /* in words; see SAMPLE_FRAME_TAKEN */
	__sample_u16 at_slot;	  /* slot of the file where an incomplete walk ended, or 0 */
	__sample_u16 items;	  /* items of runtimes, two words each */
	char comm[16];		  /* of the thread */
}; /* words follow: kernel addresses, leaf first; items; user frames, leaf first */

/*
 * A copy of an interpreted frame's object, and of the memory it points to for its names (struct
 * runtime_copy). It is made at the first sample, since the object may be freed right after.
 * `user_frames` of its sample counts the words after the header in the ring.
 */
#define SAMPLE_PIECES RUNTIME_STEPS
#define SAMPLE_PIECE_BYTES 8192 /* limit for one piece */
#define SAMPLE_PIECES_END 16384 /* all pieces begin before this: a power of two */
#define SAMPLE_OBJECT_BYTES (SAMPLE_PIECES_END + SAMPLE_PIECE_BYTES)

struct sample_object {
	struct sample sample;
	__sample_u64 address, check;
	__sample_u64 at[SAMPLE_PIECES];	    /* user addresses */
	__sample_u32 len[SAMPLE_PIECES];    /* bytes that could be read of each */
	__sample_u32 offset[SAMPLE_PIECES]; /* offsets of the pieces in bytes[]; multiples of 8 */
	__sample_u32 pieces, used;	    /* number of pieces; bytes used in bytes[] */
	/* The ring holds only the bytes that exist. */
	unsigned char bytes[SAMPLE_OBJECT_BYTES];
};

/*
 * The name that a program gave a thread, by a runtime's own means. It is sent before the thread's
 * first sample with this name. A virtual thread's name is valid only for samples with
 * SAMPLE_TITLED.
 */
#define SAMPLE_THREAD_BYTES 128
enum sample_thread_flags {
	SAMPLE_THREAD_UTF16 = 1,   /* else each byte is a character (Latin-1) */
	SAMPLE_THREAD_VIRTUAL = 2, /* the name of a virtual thread that this thread runs */
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
 * of its sample counts the words after the header in the ring. A line may also hold numbers that
 * the fetching walk found. Its address is then one that no process can have (RUNTIME_TOLD).
 */
#define SAMPLE_FETCHED_BYTES 64 /* bytes of a line, whose address is a multiple of this */
#define SAMPLE_FETCHED_LINES 1200
#define SAMPLE_TOLD 3		   /* numbers in a line */
#define SAMPLE_FETCHED_STACK 32768 /* bytes of the stack, from RSP on, whose words are examined */
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

#ifndef __bpf__
static_assert(sizeof(struct sample) == 96, "no padding");
static_assert(SAMPLE_FRAME_TAKEN + SAMPLE_TAKEN_ITEMS == SAMPLE_FRAME_SLOT_MASK, "it fits");
static_assert(sizeof(struct sample_object) == 96 + 24 + SAMPLE_PIECES * 16 + SAMPLE_OBJECT_BYTES,
	      "no padding");
static_assert(sizeof(struct sample_thread) == 104 + SAMPLE_THREAD_BYTES, "no padding");
static_assert(sizeof(struct sample_fetched) == 104 + SAMPLE_FETCHED_LINES * 72, "no padding");

/* Returns the words after a sample's header, borrowed. */
static inline const uint64_t *sample_words(const struct sample *s)
{
	return (const uint64_t *)(s + 1);
}

/* Returns how many words come before the user frames. */
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

/* Returns how many items follow a user frame's word. */
static inline uint32_t sample_frame_items(uint64_t word)
{
	return sample_frame_slot(word) > SAMPLE_FRAME_TAKEN
		       ? sample_frame_slot(word) - (uint32_t)SAMPLE_FRAME_TAKEN
		       : 0;
}

/* Returns how many words a user frame takes. */
static inline uint32_t sample_frame_words(uint64_t word)
{
	return 1 + 2 * sample_frame_items(word);
}
#endif

#endif
