/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * CPython 3.6 and later: how to find the frames of the sampled thread from its thread state.
 *
 * The config holds the differences between builds: the place of the thread state, how frames are
 * linked, and the offsets of fields.
 *
 * Up to 3.10 frames are objects, and each C frame of the loop runs one. From 3.11 on, frames lie in
 * chunks of memory of their own, and a C frame of the loop runs a chain of them. That C frame holds
 * a struct whose address identifies the C frame. In 3.11 this is the _PyCFrame that refers to the
 * current frame, and from 3.12 on an entry frame at the end of the chain.
 */
#ifndef BPF_PYTHON_PYTHON_H
#define BPF_PYTHON_PYTHON_H

#include "bpf/mix.h"
#include "bpf/runtime.h"

enum python_thread {
	PYTHON_TSD = 0,	       /* pthread_getspecific of the key at `state` */
	PYTHON_TLS_OFFSET = 1, /* at offset `state` from the TLS base */
	PYTHON_TLS_GOT = 2,    /* the word at address `state` holds its offset (initial exec) */
	/* The two words at address `state` hold module and offset (general and local dynamic; the
	 * latter adds tls_add). */
	PYTHON_TLS_MODULE = 3,
};

enum python_frames {
	PYTHON_OBJECTS = 0,	 /* thread state -> frame objects (3.6 to 3.10) */
	PYTHON_CFRAMES = 1,	 /* thread state -> cframe -> frames, which hold is_entry (3.11) */
	PYTHON_CFRAME_SHIMS = 2, /* likewise, with entry frames in the chain (3.12) */
	PYTHON_SHIMS = 3,	 /* thread state -> frames, with entry frames (3.13 and later) */
};

#define PYTHON_LIBC_FLAT 1	  /* flag: keys and DTV are arrays of plain pointers, as in musl */
#define PYTHON_POSITION_POINTER 2 /* flag: `frame_position` is a pointer into the code object */

#define PYTHON_FRAME_BYTES 144 /* limit of the bytes of a frame that are read */
#define PYTHON_CHECK_WORDS 32

/* Field offsets in bytes; multiples of 8 unless noted. */
struct python_config {
	UW_U8 thread; /* enum python_thread */
	UW_U8 frames; /* enum python_frames */
	UW_U8 flags;
	UW_U8 entry_owner; /* frames with at least this owner are entry frames */
	UW_U32 tsd;	   /* offset from the TLS base of the pointers to the blocks of keys */
	UW_U64 state;	   /* address, or offset from the TLS base: see enum python_thread */
	/* Address of the pointer to the thread state that has the GIL; 0: not used. */
	UW_U64 holder;
	UW_U16 tstate_frame; /* the first frame, or the cframe */
	UW_U16 cframe_frame; /* the current frame */
	UW_U16 cframe_previous;
	UW_U16 frame_previous;
	UW_U16 frame_code;	 /* the low bits of the pointer are tags */
	UW_U16 frame_position;	 /* a multiple of 4: an int, or a pointer */
	UW_U16 frame_owner;	 /* a byte: the owner, or is_entry */
	UW_U16 frame_bytes;	 /* bytes to read: a multiple of 8, at most PYTHON_FRAME_BYTES */
	UW_U16 code_check;	 /* a multiple of 4: the bytes that identify a code object */
	UW_U16 code_check_words; /* number of these bytes, in units of 4, at most
				  * PYTHON_CHECK_WORDS */
	UW_U16 code_bytecode;	 /* start of the instructions */
	UW_U16 tls_add;		 /* PYTHON_TLS_MODULE: added to the offset */
	UW_U16 tstate_thread;	 /* pthread_self() of the state's thread: the TLS base (up to
				  * 3.10) */
	/* Free-threaded builds from 3.14 on: threads run copies of the instructions. This field is
	 * a pointer to the copies; 0: none. */
	UW_U16 code_copies;
	UW_U16 frame_copy; /* an int, a multiple of 4: the number of the copy */
	UW_U16 code_name;  /* a pointer to the name, a str */
	UW_U16 check_text; /* offset of the length in that str, to check its text; 0: no check */
	UW_U16 zero[3];
};

/* Returns the check value of a code object, over the n times 4 bytes at code_check: 40 bits, never
 * 0. It uses two independent sums for speed, since each frame needs one. */
static inline UW_U64 python_check(const UW_U64 words[PYTHON_CHECK_WORDS / 2], UW_U32 n)
{
	UW_U64 even = MIX_GOLDEN, odd = n;

	for (UW_U32 i = 0; i < PYTHON_CHECK_WORDS / 2 && i < n / 2; i++) {
		UW_U64 w = words[i];

		if (i & 1)
			odd = (odd ^ w ^ w >> 32) * MIX_FIRST;
		else
			even = (even ^ w ^ w >> 32) * MIX_SECOND;
	}
	if (n & 1)
		odd = (odd ^ (words[n / 2 % (PYTHON_CHECK_WORDS / 2)] & 0xffffffff)) * MIX_FIRST;
	even = (even ^ odd >> 32 ^ odd << 32) * MIX_FIRST;
	even >>= RUNTIME_CHECK_SHIFT;
	return even ? even : 1;
}

/* Adds the first characters of the code object's name to the check value. Up to 3.11 no field of a
 * code object depends on the text: CodeType.replace() may put an object that differs only in its
 * name at a freed one's address. text: a str, from its length on. If characters are not ASCII, only
 * their number is added. */
#define PYTHON_TEXT_WORDS 8
static inline UW_U64 python_check_text(UW_U64 check, const UW_U64 text[PYTHON_TEXT_WORDS])
{
	const UW_U64 length = text[0];
	UW_U64 sum = check ^ length;

	for (UW_U32 i = 0; i < 4; i++) {
		UW_U64 w = (text[2] >> 5 & 3) == 3 && length > i * 8 ? text[4 + i] : 0;

		if (length < i * 8 + 8)
			w &= (1ull << (length & 7) * 8) - 1;
		sum = (sum ^ w ^ w >> 32) * MIX_FIRST;
		sum ^= sum >> 29;
	}
	sum >>= RUNTIME_CHECK_SHIFT;
	return sum ? sum : 1;
}

#ifndef __bpf__
static_assert(sizeof(struct python_config) == 64, "no padding");
static_assert(sizeof(struct python_config) <= RUNTIME_PRIVATE, "it fits");
#endif

#endif
