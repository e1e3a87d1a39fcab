/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof-symd's share of the run's memory limit, and the memory that prof-bpf grants it beyond that
 * (lastword.h). prof-symd asks for more if the DWARF of one file does not fit, or if it closes
 * programs that it soon needs again. It returns memory that it no longer uses.
 */
#ifndef PROF_SYMD_FILES_MEMORY_SHARE_H
#define PROF_SYMD_FILES_MEMORY_SHARE_H

#include <stdint.h>
#include "common/cell/budget/budget.h"

#define MEMORY_SHARE_IDLE_NS 30000000000ull /* memory that was not used for this long is returned */

struct memory_share {
	const struct budget *sure; /* the share without grants; borrowed */
	uint64_t heap;		   /* heap of libdw's worker; at first sure->dwarf */
	uint64_t more;		   /* requested for programs, beyond the share */
	uint64_t evicted, used_ns;
};

void memory_share_init(struct memory_share *s, const struct budget *sure);
/* Returns how many bytes programs and their DWARF may take, which is everything that `others`
 * leave. bytes: what they take now; evicted: how many were closed so far to free memory. Tells
 * prof-bpf how much is wanted, and sets the heap of later workers. */
uint64_t memory_share_programs(struct memory_share *s, uint64_t others, uint64_t bytes,
			       uint64_t evicted, uint64_t now_ns);
/* A callback for program_grow_with: asks for this much heap, and returns how much there is now. */
uint64_t memory_share_heap(void *share, uint64_t heap);

#endif
