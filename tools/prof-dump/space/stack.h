/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of one thread, as a walk in its address space (space.h) finds it. */
#ifndef PROF_DUMP_SPACE_STACK_H
#define PROF_DUMP_SPACE_STACK_H

#include "tools/prof-dump/space/space.h"

struct stack_frame {
	uint64_t pc;		 /* interpreted frames: address of the runtime's object */
	uint64_t mark;		 /* interpreted frames: position and check (bpf/runtime.h) */
	uint64_t object2, mark2; /* object and position of a frame's second object; 0: none */
	uint32_t file;		 /* interpreted frames: the file with the runtime */
	bool interpreted;
	bool exact; /* pc itself, not a return address */
	bool by_fp; /* found by frame pointer, since there are no rows: a guess */
	bool loop;  /* a native frame in an interpreter's loop */
};

struct stack {
	uint32_t tid;
	uint16_t partial;	    /* enum message_partial */
	uint16_t reason;	    /* enum walk_reason: why it ended */
	struct stack_frame *frames; /* leaf first; owned */
	uint32_t count;
};
/* Walks from a thread's registers: its native frames, and those of runtimes in files with a
 * `build`. Returns 0 or -ENOMEM. */
int stack_walk(struct space *s, const struct message_thread *t, struct stack *ret);
void stack_done(struct stack *s);

#endif
