/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What prof-symd may take of the run's memory: its share, and beyond it what prof-bpf grants
 * (lastword.h) of what nobody else wants. It is asked for where the DWARF of one file does not fit,
 * and where programs are closed that would have been looked into again; when it is not used any
 * more it is handed back.
 */
#ifndef PROFPIPE_SHARE_H
#define PROFPIPE_SHARE_H

#include <stdint.h>
#include "common/cell/budget.h"

#define SHARE_IDLE_NS 30000000000ull /* what was not used for so long is handed back */

struct share {
	const struct budget *sure; /* borrowed */
	uint64_t heap;		   /* of who runs libdw; at first sure->dwarf */
	uint64_t more;		   /* for programs, beyond what is sure */
	uint64_t evicted, used_ns;
};

void share_init(struct share *s, const struct budget *sure);
/* What programs may take, their DWARF included: what `others` leave. bytes: what they take;
 * evicted: how many were closed for want of room so far. Says what is wanted, and sets the heap of
 * the workers to come. */
uint64_t share_programs(struct share *s, uint64_t others, uint64_t bytes, uint64_t evicted,
			uint64_t now_ns);
/* For dwarf_grow_with: waits a moment for so much heap, and returns what there is. */
uint64_t share_heap(void *share, uint64_t heap);

#endif
