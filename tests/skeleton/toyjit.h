/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The toy JIT: facts that differ between its builds and that the walk needs. */
#ifndef TESTS_SKELETON_TOYJIT_H
#define TESTS_SKELETON_TOYJIT_H

#include "bpf/mix.h"
#include "bpf/runtime.h"

/* Fixed width, no padding. Field offsets in bytes, of a description of code. */
struct toyjit_config {
	/* The address of its four words: first byte, size, descriptions by unit, and that of the
	 * code that enters others, 0 if tables have its frames. */
	UW_U64 region;
	UW_U16 unit_shift; /* bytes of a unit of code */
	UW_U16 code_bytes; /* of a description: a multiple of 8, at most TOYJIT_CODE_BYTES */
	UW_U16 code_start; /* the address of the code, a word */
	UW_U16 code_size;  /* its bytes, half a word, */
	UW_U16 code_frame; /* and behind them the bytes of its frame */
	UW_U16 code_saved; /* from which offset RBP is saved, a 16-bit number, */
	UW_U16 code_ret;   /* and where its return instruction is, likewise */
	UW_U16 code_serial;
	UW_U16 allocated; /* from which offset the frame exists */
	UW_U16 zero[3];
};

#define TOYJIT_CODE_BYTES 64
#define TOYJIT_FRAME (1u << 20) /* bytes of a frame, at most */
/* The serial number identifies an object, since objects move. The field holds no address of a
 * process. */
#define TOYJIT_KEY (1ull << 47)

/* The check of a piece of code: 40 bits, never 0. */
static inline UW_U64 toyjit_check(UW_U64 serial)
{
	UW_U64 check = (serial * MIX_GOLDEN) >> RUNTIME_CHECK_SHIFT;

	return check ? check : 1;
}

#ifndef __bpf__
static_assert(sizeof(struct toyjit_config) == 32, "no padding");
#endif

#endif
