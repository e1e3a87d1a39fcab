/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory of a process is within reach of its interpreted frames: the memory that prof-symd
 * needs to name them, and no other.
 *
 * A sample has the addresses of objects. The config of their runtime describes in steps (struct
 * runtime_copy) which words of an object point to other memory that is needed: strings and tables,
 * and in some versions a string's characters. So a *place* is an exact address with the steps that
 * lead there. A request must begin at a place. It gets no more bytes than the step allows, or than
 * the string or table has by its own size.
 *
 * A reach is a set of places, limited in number. New places replace the ones that were not needed
 * for longest. Half of the room is for sampled objects, and half for what they lead to: otherwise
 * nothing but the objects themselves could be read of a program that runs many of them.
 */
#ifndef PROF_BPF_HOST_PROCESSES_REACH_H
#define PROF_BPF_HOST_PROCESSES_REACH_H

#include <stdbool.h>
#include "bpf/runtime.h"
#include "common/base/bytes/span.h"

#define REACH_FIRST 128		/* places of a new set; it doubles up to */
#define REACH_MOST 16384	/* this */
#define REACH_BEFORE 8		/* bytes before an object of a sample that belong to it */
#define REACH_BYTES (66u << 10) /* limit for one place: tables have 64 KiB at most */

struct reach;

/* The needs of the runtime of a slot. copy is NULL if the slot has no runtime. Borrowed. */
struct reach_rule {
	const struct runtime_copy *copy;
	struct runtime_need need;
};
struct reach_rules {
	struct reach_rule (*of)(void *ctx, uint16_t slot);
	void *ctx;
};

/* Whether the steps stay within the need. */
bool reach_suits(const struct runtime_copy *c, struct runtime_need need);

/* Adds the object of a sample of this time, whose runtime is in the file of this slot. *reach is
 * NULL at first, and owned by the caller. may_grow: it may take more memory. Without memory nothing
 * is added. */
void reach_add(struct reach **reach, uint64_t address, uint16_t slot, uint64_t time_ns,
	       bool may_grow);
/* Returns how many of these bytes may be read; 0: none. The last ones may turn out to be out of
 * reach. */
uint64_t reach_of(const struct reach *reach, uint64_t address, uint64_t length,
		  const struct reach_rules *rules);
/* Takes memory that was read, and returns how many of the bytes are within reach. Adds the places
 * that they lead to. */
size_t reach_read(struct reach **reach, uint64_t address, struct span bytes,
		  const struct reach_rules *rules, bool may_grow);
/* Returns the bytes of memory that it takes. */
size_t reach_bytes(const struct reach *reach);
void reach_free(struct reach *reach);

#endif
