/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The state of V8's walk (v8_walk.h), and how it reads objects. */
#ifndef BPF_V8_V8_STATE_H
#define BPF_V8_V8_STATE_H

#include "bpf/walk/runtime_walk.h"
#include "bpf/v8/v8.h"

#define V8_FOUND 8
#define V8_FRAME_WORDS 8
#define V8_WORDS 16 /* words of an object that are stored: a power of two, for the verifier */

struct v8_walk {
	struct v8_config config;
	__u64 base;
	struct runtime_copies copies;
	__u64 told[V8_TOLD_WORDS];
	__u64 keys[V8_INLINED_MAX];		/* keys of the functions inlined in the code */
	__u64 frame[V8_FRAME_WORDS];		/* the words from RBP - 48 on */
	__u64 shared[V8_WORDS], code[V8_WORDS]; /* contents of objects */
	__u64 code_at, code_body, code_size;	/* user addresses; 0: none */
	__u64 table;				/* address of the table of code */
	__u64 text, text_size;			/* results of v8_text */
	__u64 count_at, count_bytes, count;	/* the count of newlines: position, bytes left,
						 * newlines so far */
	/* The interpreted frame at this RBP is at bytecode `offset`: its handler was seen at
	 * time_ns. */
	__u64 handled_fp, handled_ns, handled_offset;
	__u64 found[V8_FOUND]; /* code found by a search, indexed by the place of its
			        * instructions */
	__u64 ends;	       /* the line ends of the function's script; 0: not known */
	__u64 script, script_ns, script_id; /* the last script, and the time of its sample */
	__u64 string, rest, later;	    /* parts of a text that are not read yet */
	__u64 name, inferred;		    /* strings */
	__u64 data, positions; /* what a function runs, and its table of positions (0: unknown) */
	__u64 part, part_skip, part_length; /* the position of v8_text */
	__u64 tell_identity, tell_shared;   /* the object to copy; 0: none */
	__u64 upper;			    /* the upper half of the isolate's pointers */
	__u64 own_name, tell_name;	    /* a string that a function itself has; 0: none */
	__u64 plain_map, plain_ns; /* functions with this map have no own name; valid for this
				    * sample */
	__u64 wasm_at, wasm_end;   /* the rest of a part of a module's bytes */
	__u64 wasm_block;	   /* the block of the last name that was looked at */
	__u64 scan_ns, scan_left;  /* how many windows may still be searched for code, for the
				    * sample of this time */
	__u64 wasm_ns, wasm_left;  /* how much more of modules may be read for the sample of this
				   * time */
	__u32 kind, wide;
	__u32 lost; /* 1: an object could not be read, as when the garbage collector moves it */
	__u32 cut;  /* 1: v8_text has found only a part of the string */
};

#define V8_FRAME_BELOW 48
#define V8_SLOT(p, below) ((p)->frame[(V8_FRAME_BELOW - (below)) / 8])
#define V8_MARKER(p) V8_SLOT(p, 8)
#define V8_FUNCTION_SLOT(p) V8_SLOT(p, 16)
/* The offset of the bytecode is the word below the bytecodes. */
#define V8_BYTECODES(p) \
	((p)->frame[(V8_FRAME_BELOW - (p)->config.frame_bytecodes) / 8u % V8_FRAME_WORDS])
#define V8_OFFSET(p) \
	((p)->frame[((V8_FRAME_BELOW - (p)->config.frame_bytecodes) / 8u - 1u) % V8_FRAME_WORDS])
#define V8_CALLER_FP(p) ((p)->frame[6])
#define V8_RETURN(p) ((p)->frame[7])

#define V8_REGISTER_FUNCTION 5	 /* RDI: the function that code begins to run */
#define V8_REGISTER_OFFSET 9	 /* R9: the bytecode's offset at the start of a handler */
#define V8_REGISTER_BYTECODES 12 /* R12 */
#define V8_REGISTER_ROOT 13
#define V8_MAP_SIZES 8	      /* size of an instance in words, and where its properties begin */
#define V8_MAP_DESCRIPTORS 40 /* descriptions of its properties */
#define V8_NAME 0x656d616eu   /* "name" */
#define V8_OWN_WORDS 8	      /* words of the characters of a function's own name */
#define V8_BUILTIN_MAX 32768  /* bytes of a builtin */
/* A builtin may jump to one that is at most so many bytes before it: Call to CallFunction. */
#define V8_BUILTIN_BACK 16384
#define V8_CODE_KIND 15	       /* bits in the flags of code */
#define V8_CODE_MAX (1u << 22) /* bytes of code */
#define V8_NO_CODE 2	       /* not a pointer */
#define V8_CODE_UNIT 32	       /* bytes; instructions begin at a multiple of this */
#define V8_SCAN 256	       /* times 512 bytes: how far back the beginning of code is searched */
#define V8_SCAN_AT_ONCE 32
#define V8_SCANS 1024	     /* limit for all searches of a sample */
#define V8_COUNT_WINDOWS 256 /* 128 KiB: a whole block */
#define V8_SEARCH 24	     /* steps of a binary search: enough for all lines of a script */
#define V8_SCRIPT_IDS (1u << 30)
#define V8_PAGE_SHIFT 18 /* log2 of the bytes of a page of V8's heap */
#define V8_ELEMENTS_MAX (1u << 24)

/* Functions that the verifier checks once (search.h) look up the state themselves. */
#ifdef __bpf__
ENV_INLINE struct v8_walk *v8_state(void)
{
	__u32 zero = 0;

	return (struct v8_walk *)bpf_map_lookup_elem(&states, &zero);
}
#define V8_PARAMETERS void
#define V8_PARAMETERS_AND
#define V8_ARGUMENTS(w, p)
#define V8_ARGUMENTS_AND(w, p)
#define V8_FIND(w, p) \
	struct walk *w = scratch(); \
	struct v8_walk *p = v8_state(); \
	if (!w || !p) \
	return 0
#else
#define V8_PARAMETERS struct walk *w, struct v8_walk *p
#define V8_PARAMETERS_AND struct walk *w, struct v8_walk *p,
#define V8_ARGUMENTS(w, p) w, p
#define V8_ARGUMENTS_AND(w, p) w, p,
#define V8_FIND(w, p)
#endif

/* --- memory --- */

ENV_INLINE bool v8_is_pointer(__u64 v)
{
	return (v & 3) == 1 && v > 4096 && v < WALK_ADDRESS_END;
}

/* A thread. A later one may have the same thread pointer. */
ENV_INLINE __u64 v8_thread(const struct walk *w)
{
	return env_tls() ^ w->sample.tid;
}

/* The isolate of an object. A thread may run several, each with a heap of its own. If V8 moves the
 * object to another page, it only counts as that of another isolate. */
ENV_INLINE __u64 v8_isolate(const struct walk *w, __u64 object)
{
	return v8_mix(v8_thread(w), object >> V8_PAGE_SHIFT);
}

/* Reads eight bytes of an object, through a tagged pointer. */
ENV_INLINE bool v8_word(const struct v8_walk *p, __u64 object, __u64 offset, __u64 *ret)
{
	return runtime_fetch(&p->copies, ret, sizeof(*ret), object - 1 + offset);
}

/* What depends on whether pointers are compressed is computed without a branch, each of which costs
 * the verifier as much as the rest of the walk. */
ENV_INLINE __u32 v8_word_bytes(const struct v8_walk *p)
{
	return 8 >> (p->config.compressed & 1);
}

/* The bits of a word of an object. */
ENV_INLINE __u64 v8_word_mask(const struct v8_walk *p)
{
	return ~0ull >> (32 * (p->config.compressed & 1));
}

/* Completes a word of an object, read as eight bytes. near: a pointer into the same heap. */
ENV_INLINE __u64 v8_whole(const struct v8_walk *p, __u64 word, __u64 near)
{
	const __u64 mask = v8_word_mask(p);

	return (word & mask) | (near & ~mask);
}

/* Reads a word of an object that is a pointer or a Smi. */
ENV_INLINE bool v8_tagged(const struct v8_walk *p, __u64 object, __u64 offset, __u64 *ret)
{
	__u64 word = 0;

	if (!v8_word(p, object, offset, &word))
		return false;
	*ret = v8_whole(p, word, object);
	return true;
}

/* A field of an object, of which `words` were read. */
#define V8_FIELD(words, offset) ((words)[(offset) / 8 % V8_WORDS] >> ((offset)&7) * 8)

/* The number of a Smi. */
ENV_INLINE __u32 v8_smi(const struct v8_walk *p, __u64 word)
{
	const __u32 c = p->config.compressed & 1;

	return (__u32)(word << 32 * c >> (32 + c));
}

ENV_INLINE bool v8_is_smi(const struct v8_walk *p, __u64 word)
{
	return !(word & (0xffffffffull >> 31 * (p->config.compressed & 1)));
}

/* After a string's map and hash, or an array's map. */
#define V8_LENGTH_WORD 8
/* Reads the word of a string whose upper half is its number of characters, or that of an array with
 * its number of elements (v8_count). */
ENV_INLINE bool v8_length(const struct v8_walk *p, __u64 object, __u64 *ret)
{
	return v8_word(p, object, V8_LENGTH_WORD - 4 * (p->config.compressed & 1), ret);
}

/* Where the elements of an array of these begin. */
ENV_INLINE __u32 v8_elements(const struct v8_walk *p)
{
	return 2 * v8_word_bytes(p);
}

/* Where a string's characters or its other fields begin, after its map, its hash and its length. */
ENV_INLINE __u32 v8_characters(const struct v8_walk *p)
{
	return 16 - 4 * (p->config.compressed & 1);
}

/* The number of elements of an array, from the word that has it. If that is none, too many. */
ENV_INLINE __u64 v8_count(const struct v8_walk *p, __u64 word)
{
	const __u32 smi = p->config.array_plain - 1u; /* all bits, or none */

	return (__u32)(word >> (32 & smi)) | (__u64)((__u32)word & smi) << 32;
}

/* The instance type of a string: its shape, in the lowest three bits, and flags. */
#define V8_STRING_SHAPE 7
enum v8_string_shape {
	V8_STRING_SEQUENTIAL = 0,
	V8_STRING_CONS = 1,
	V8_STRING_EXTERNAL = 2,
	V8_STRING_SLICED = 3,
	V8_STRING_THIN = 5,
};
enum v8_string_flags {
	V8_STRING_NARROW = 8,	 /* one byte for each character, not two */
	V8_STRING_UNCACHED = 16, /* external: the object has no pointer to the characters */
};

#define V8_NO_TYPE 0xffff /* unreadable */
/* Returns the instance type of an object. The type 0 is valid for a string. While the garbage
 * collector moves an object, its map is replaced by the object's new address. */
ENV_INLINE __u32 v8_type(struct v8_walk *p, __u64 object)
{
	__u64 map, word;

	if (!v8_is_pointer(object))
		return V8_NO_TYPE;
	/* Code and bytecodes may be in another heap than the maps. */
	if (!v8_word(p, object, 0, &map) || !v8_is_pointer(v8_whole(p, map, p->upper)) ||
	    !v8_word(p, v8_whole(p, map, p->upper), p->config.map_type & ~7u, &word)) {
		p->lost = 1;
		return V8_NO_TYPE;
	}
	return (__u16)(word >> (p->config.map_type & 7) * 8);
}

#endif
