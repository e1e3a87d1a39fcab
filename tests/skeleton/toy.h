/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The toy: facts that differ between its builds and that the walk needs. */
#ifndef TESTS_SKELETON_TOY_H
#define TESTS_SKELETON_TOY_H

#include "bpf/mix.h"
#include "bpf/runtime.h"

/* Fixed width, no padding. Field offsets in bytes. */
struct toy_config {
	UW_U64 top; /* address of the pointer to the innermost frame */
	UW_U16 frame_previous, frame_function;
	UW_U16 frame_position;
	UW_U16 frame_entry;	/* an address in the C frame that runs it, or 0 */
	UW_U16 function_serial; /* the identity of a function */
	UW_U16 chains;		/* frame_entry only marks where a chain ends */
	UW_U16 function_unit;	/* its unit: an object like a function, or 0 */
	UW_U16 zero;
};

/* The check of a function: 40 bits, never 0. */
static inline UW_U64 toy_check(UW_U64 serial)
{
	UW_U64 check = (serial * MIX_GOLDEN) >> RUNTIME_CHECK_SHIFT;

	return check ? check : 1;
}

#ifndef __bpf__
static_assert(sizeof(struct toy_config) == 24, "no padding");
#endif

#endif
