/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The state of HotSpot's walk (hotspot_walk.h). */
#ifndef BPF_HOTSPOT_HOTSPOT_STATE_H
#define BPF_HOTSPOT_HOTSPOT_STATE_H

#include "bpf/hotspot/hotspot.h"
#include "bpf/walk/runtime_walk.h"

#define HOTSPOT_KNOWN 8		     /* methods that a walk remembers */
#define HOTSPOT_FRAME_MAX (1u << 17) /* limit of a frame, in words */
#define HOTSPOT_NO_SIZE 0xffffffff   /* instead of words: a stub has no frame */
/* Limit of the distance between two places of one frame, in bytes. */
#define HOTSPOT_NEAR (1u << 20)
/* Bytes from a stack's top, within which frames of a deferred walk lie. */
#define HOTSPOT_STACK (8u << 20)
#define HOTSPOT_ARGUMENTS 16	 /* words of arguments above a virtual thread's frames */
#define HOTSPOT_ADAPTED 4096	 /* limit of arguments that an adapter moves, in bytes */
#define HOTSPOT_CODE_BEFORE 8	 /* bytes of code before the pc that are read */
#define HOTSPOT_CODE_BYTES 80	 /* bytes of code that are read in total */
#define HOTSPOT_TEXT 256	 /* bytes of code that are searched: a power of two */
#define HOTSPOT_LOWERED_MAX 8192 /* limit of what code saves below its frame, in bytes */

#define HOTSPOT_LEVEL_C2 4 /* lower levels are those of C1 */

#define HOTSPOT_PLACES_SHIFT 4
#define HOTSPOT_PLACES (1 << HOTSPOT_PLACES_SHIFT) /* PcDescs that are read at once */

struct hotspot_heap {
	__u64 start, end, map;
	__u64 shift;
};

struct hotspot_known {
	__u64 method, check;
	__u64 code, size; /* of the bytecode */
};

enum hotspot_kind {
	HOTSPOT_NONE = 0,
	HOTSPOT_NMETHOD,
	HOTSPOT_NATIVE, /* the wrapper of a native method */
	HOTSPOT_INTERPRETER,
	HOTSPOT_STUB,
	HOTSPOT_ADAPTER, /* adapter between interpreted and compiled code */
	HOTSPOT_DEOPT,	 /* replaces a compiled frame; RBP then points to its own frame */
};

/* Wanted fields of Java's objects, by name (hotspot_heap.h). */
enum hotspot_field {
	HOTSPOT_TAIL,	/* of a Continuation */
	HOTSPOT_PARENT, /* of a StackChunk, */
	HOTSPOT_SIZE,
	HOTSPOT_SP,
	HOTSPOT_BOTTOM,
	HOTSPOT_ARGSIZE, /* instead of the bottom before JDK 22 */
	HOTSPOT_NAME,	 /* of a Thread, */
	HOTSPOT_TID,
	HOTSPOT_VALUE, /* and of a String */
	HOTSPOT_CODER,
	HOTSPOT_FIELDS,
};

struct hotspot_walk {
	struct hotspot_config config;
	__u64 base;
	struct runtime_copies copies;
	__u64 time_ns, process; /* identify the walk that the rest belongs to */
	__u32 heaps, keeps;
	__u32 code_kind; /* enum runtime_code of the emitted methods */
	struct hotspot_heap heap[HOTSPOT_HEAPS];
	__u64 call_return;		      /* methods that native code called return to it */
	__u64 nmethod_name, interpreter_name; /* addresses of the names of blobs that were seen */
	__u64 block;			      /* address of the block in words[] */
	__u64 pcs, pcs_count, scopes, metadata;
	UW_U64 number[2];
	__u64 words[HOTSPOT_BLOB_WORDS];
	union {					       /* neither is used while the other one is */
		__u64 place[HOTSPOT_PLACES * 2];       /* PcDescs */
		unsigned char text[HOTSPOT_TEXT + 24]; /* code that is searched, and what follows */
	};
	__u64 head[HOTSPOT_CONST_BYTES / 8]; /* of a ConstMethod */
	unsigned char code[HOTSPOT_CODE_BYTES];
	__u64 lowered; /* hotspot_after() of the frame, or HOTSPOT_ASKS, or HOTSPOT_PLACED */
	struct hotspot_known known[HOTSPOT_KNOWN];
	__u64 chunk_class;	     /* the class whose offsets field[] holds, or 0 */
	__u32 field[HOTSPOT_FIELDS]; /* offsets; 0: there is no such field */
};

/* Functions that the verifier checks once, as in walk_state.h. */
#ifdef __bpf__
static __always_inline struct hotspot_walk *state(void);
#define HOTSPOT_PARAMETER
#define HOTSPOT_ARGUMENT(w, p)
#define HOTSPOT_FIND(w, p) \
	struct walk *w = scratch(); \
	struct hotspot_walk *p = state(); \
	if (!w || !p) \
	return 0
#else
#define HOTSPOT_PARAMETER struct walk *w, struct hotspot_walk *p,
#define HOTSPOT_ARGUMENT(w, p) w, p,
#define HOTSPOT_FIND(w, p) (void)w
#endif

/* Reads memory between the ends of an earlier read, so that runtime_fetch keeps it. */
ENV_INLINE void hotspot_keep(const struct hotspot_walk *p, __u64 at, __u64 bytes)
{
	for (__u32 i = 64; i < HOTSPOT_BLOB_BYTES && p->copies.keep; i += 64)
		if (i < bytes)
			env_keep(at + i, 8);
}

/* Returns a field of the block in words[], shifted down to bit 0. */
ENV_INLINE __u64 hotspot_word(const struct hotspot_walk *p, __u16 offset)
{
	return p->words[offset / 8 & (HOTSPOT_BLOB_WORDS - 1)] >> (offset & 7) * 8;
}

ENV_INLINE __u64 hotspot_blob(const struct hotspot_walk *p)
{
	return p->block + p->config.block;
}

/* Returns the address of the blob's code. */
ENV_INLINE __u64 hotspot_code_of(const struct hotspot_walk *p)
{
	__u64 code = hotspot_word(p, p->config.blob_code);

	return p->config.flags & HOTSPOT_CODE_OFFSET ? hotspot_blob(p) + (__u32)code : code;
}

/* Whether the address is in one of the heaps. */
ENV_INLINE bool hotspot_is_code(const struct hotspot_walk *p, __u64 pc)
{
	for (__u32 i = 0; i < HOTSPOT_HEAPS; i++) {
		const struct hotspot_heap *h = &p->heap[i];

		if (i < p->heaps && pc - h->start < h->end - h->start)
			return true;
	}
	return false;
}

#endif
