/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * CPython 3.6 and later: the frames of the thread that is sampled, from its thread state.
 *
 * What differs between builds is in the config: where the thread state is found, how frames are
 * linked, and where the fields lie. Frames are objects, one for each C frame of the loop, up to
 * 3.10. From 3.11 on they lie in chunks of memory of their own, and a C frame of the loop runs a
 * chain of them; that C frame holds a struct whose address says which it is: the _PyCFrame that
 * current frames hang on (3.11), an entry frame at the end of the chain (3.12 and later).
 */
#ifndef PROFPIPE_PYTHON_H
#define PROFPIPE_PYTHON_H

#include "bpf/runtime.h"

enum python_thread {
	PYTHON_TSD = 0,	       /* pthread_getspecific of the key at `state` */
	PYTHON_TLS_OFFSET = 1, /* at `state` from the TLS base */
	PYTHON_TLS_GOT = 2,    /* that offset is the word at the address `state` (initial exec) */
	PYTHON_TLS_MODULE = 3, /* module and offset are the two words there (general and local
				  dynamic; the latter adds tls_add) */
};

enum python_frames {
	PYTHON_OBJECTS = 0,	 /* thread state -> frame objects (3.6 to 3.10) */
	PYTHON_CFRAMES = 1,	 /* thread state -> cframe -> frames, is_entry in them (3.11) */
	PYTHON_CFRAME_SHIMS = 2, /* the same, with entry frames in the chain (3.12) */
	PYTHON_SHIMS = 3,	 /* thread state -> frames, with entry frames (3.13 and later) */
};

#define PYTHON_LIBC_FLAT 1	  /* flags: keys and DTV as in musl: arrays of plain pointers */
#define PYTHON_POSITION_POINTER 2 /* flags: `frame_position` is a pointer into the code object */

#define PYTHON_FRAME_BYTES 144 /* of a frame that are read at most */
#define PYTHON_CHECK_WORDS 32

/* Field offsets in bytes; multiples of 8, but for those that say otherwise. */
struct python_config {
	UW_U8 thread; /* enum python_thread */
	UW_U8 frames; /* enum python_frames */
	UW_U8 flags;
	UW_U8 entry_owner;   /* a frame whose owner is this or more is an entry frame */
	UW_U32 tsd;	     /* from the TLS base: the pointers to the blocks of keys */
	UW_U64 state;	     /* address, or offset from the TLS base: enum python_thread */
	UW_U64 holder;	     /* address of the pointer to the thread state that has the GIL; 0: it
				is not asked */
	UW_U16 tstate_frame; /* the first frame, or the cframe */
	UW_U16 cframe_frame; /* the current frame */
	UW_U16 cframe_previous;
	UW_U16 frame_previous;
	UW_U16 frame_code;	 /* low bits of the pointer are tags */
	UW_U16 frame_position;	 /* a multiple of 4: an int, or a pointer */
	UW_U16 frame_owner;	 /* a byte: owner or is_entry */
	UW_U16 frame_bytes;	 /* of a frame to read: multiple of 8, PYTHON_FRAME_BYTES at most */
	UW_U16 code_check;	 /* a multiple of 4: what a code object is known by */
	UW_U16 code_check_words; /* how many times 4 bytes, PYTHON_CHECK_WORDS at most */
	UW_U16 code_bytecode;	 /* where the instructions begin */
	UW_U16 tls_add;		 /* PYTHON_TLS_MODULE: added to the offset */
	UW_U16 tstate_thread;	 /* its thread: pthread_self(), which is the TLS base (to 3.10) */
	UW_U16 code_copies;	 /* free-threaded, from 3.14 on: threads run copies of the
				instructions; a pointer to these, 0: there are none */
	UW_U16 frame_copy;	 /* an int, a multiple of 4: which of them */
	UW_U16 code_name;	 /* a pointer to its name, a str */
	UW_U16 check_text;	 /* in that str its length: its text is checked, too; 0: not */
	UW_U16 zero[3];
};

/* The check of a code object, of the n times 4 bytes that lie at code_check: 40 bits, never 0. Two
 * sums that do not wait for each other: it is made of each frame. */
static inline UW_U64 python_check(const UW_U64 words[PYTHON_CHECK_WORDS / 2], UW_U32 n)
{
	UW_U64 even = 0x9e3779b97f4a7c15ull, odd = n;

	for (UW_U32 i = 0; i < PYTHON_CHECK_WORDS / 2 && i < n / 2; i++) {
		UW_U64 w = words[i];

		if (i & 1)
			odd = (odd ^ w ^ w >> 32) * 0xff51afd7ed558ccdull;
		else
			even = (even ^ w ^ w >> 32) * 0xc4ceb9fe1a85ec53ull;
	}
	if (n & 1)
		odd = (odd ^ (words[n / 2 % (PYTHON_CHECK_WORDS / 2)] & 0xffffffff)) *
		      0xff51afd7ed558ccdull;
	even = (even ^ odd >> 32 ^ odd << 32) * 0xff51afd7ed558ccdull;
	even >>= RUNTIME_CHECK_SHIFT;
	return even ? even : 1;
}

/* The same, with the first characters of its name. To 3.11 nothing in a code object counts them:
 * one that CodeType.replace() makes where another was freed may differ in the text alone. text: of
 * a str, from its length on; characters that are not ASCII count by their number. */
#define PYTHON_TEXT_WORDS 8
static inline UW_U64 python_check_text(UW_U64 check, const UW_U64 text[PYTHON_TEXT_WORDS])
{
	const UW_U64 length = text[0];
	UW_U64 sum = check ^ length;

	for (UW_U32 i = 0; i < 4; i++) {
		UW_U64 w = (text[2] >> 5 & 3) == 3 && length > i * 8 ? text[4 + i] : 0;

		if (length < i * 8 + 8)
			w &= (1ull << (length & 7) * 8) - 1;
		sum = (sum ^ w ^ w >> 32) * 0xff51afd7ed558ccdull;
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
