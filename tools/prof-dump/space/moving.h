/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of objects that may move, made while their process is stopped (struct runtime_copy).
 * Memory that names other objects is read when they are printed.
 */
#ifndef PROF_DUMP_SPACE_MOVING_H
#define PROF_DUMP_SPACE_MOVING_H

#include "bpf/walk/env.h"
#include "common/names/runtime/object_memory.h"

#define MOVING_MAX (1u << 14) /* objects of one dump */

struct moved;
/* Zero-initialize. */
struct moving {
	struct moved *objects;
	bool full; /* out of memory, or beyond MOVING_MAX */
};
void moving_done(struct moving *m);
/* Copies an object through the reader of env_current, unless it was copied before. told: its first
 * piece, or NULL. */
void moving_take(struct moving *m, const struct runtime_copy *how, uint64_t key, uint64_t check,
		 uint64_t address, const __u64 *told);
/* Adds the copy of an object to memory, if there is one. 0, -ENOMEM. */
int moving_find(const struct moving *m, uint64_t key, uint64_t check, struct object_memory *ret);

#endif
