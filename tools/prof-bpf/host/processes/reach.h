/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory of a process is within reach of its interpreted frames: the memory that prof-symd
 * needs to name them, and no other.
 *
 * A sample has the addresses of objects. The config of their runtime says in steps (struct
 * runtime_copy) which words of an object point to other memory that is needed: strings and tables,
 * and in some versions a string's characters. So a *place* is an exact address with the steps that
 * lead there. A request has to begin at a place. It gets no more bytes than the step allows, or
 * than the string or table has by its own size.
 *
 * A reach is a set of places with a ceiling. New places replace those of objects that were not
 * sampled lately, then those that are most steps away from a sampled object.
 */
#ifndef PROF_BPF_HOST_PROCESSES_REACH_H
#define PROF_BPF_HOST_PROCESSES_REACH_H

#include <stdbool.h>
#include "bpf/runtime.h"
#include "common/base/bytes/span.h"

#define REACH_FIRST 128		/* places that a new set holds; it doubles up to */
#define REACH_MOST 4096		/* this */
#define REACH_BEFORE 8		/* bytes before an object of a sample that belong to it */
#define REACH_BYTES (66u << 10) /* of a place, at most: tables have 64 KiB at most */

struct reach;

/* What the runtime of a slot needs. copy: NULL: the slot has no runtime. Borrowed. */
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

/* Notes the object of a sample of this time, whose runtime is in the file of this slot. *reach:
 * NULL at first; owned by the caller. may_grow: it may take more memory. Without memory nothing is
 * noted. */
void reach_add(struct reach **reach, uint64_t address, uint16_t slot, uint64_t time_ns,
	       bool may_grow);
/* How many of these bytes may be read; 0: none. The last ones may turn out to be out of reach. */
uint64_t reach_of(const struct reach *reach, uint64_t address, uint64_t length,
		  const struct reach_rules *rules);
/* The memory was read: how many of the bytes are within reach. Notes where they lead. */
size_t reach_read(struct reach **reach, uint64_t address, struct span bytes,
		  const struct reach_rules *rules, bool may_grow);
/* The memory that it takes. */
size_t reach_bytes(const struct reach *reach);
void reach_free(struct reach *reach);

#endif
