/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known: where functions begin, of a file whose code is looked at from low to high addresses: those
 * that have rows, what the file says (starts.h), what was found to be called on the way, and what
 * turned out to be a function.
 *
 * Offsets are relative to rows->base.
 */
#ifndef PROF_DELTAS_KNOWN_H
#define PROF_DELTAS_KNOWN_H

#include "tools/prof-deltas/rows.h"
#include "tools/prof-deltas/starts.h"

#define KNOWN_MAX_CALLED (1u << 16) /* places that calls lead to, ahead */

struct known_numbers {
	uint32_t *value; /* owned */
	uint32_t n, cap;
};

struct known {
	const struct rows *rows; /* borrowed */
	struct starts starts;
	struct known_numbers called;   /* heap: the least first */
	struct known_numbers accepted; /* rising */
	uint32_t next;		       /* of starts */
};

void known_done(struct known *k);
/* Whether a function is known to begin there. */
bool known_begins(const struct known *k, int64_t at);
/* The next place at or behind `at` that is known to begin a function, or `end`. `at` never falls,
 * but by one. */
uint32_t known_next(struct known *k, uint32_t at, uint32_t end);
/* Likewise, without those that are only taken to (starts_function), and without moving on. */
uint32_t known_sure(const struct known *k, uint32_t at, uint32_t end);
/* Of the one that known_next gave for its own `at`; NULL: it was called. */
const struct starts_function *known_start(const struct known *k, uint32_t at);
/* Whether the next place is one that is called, as far as known_next was not asked beyond. */
bool known_called(const struct known *k, uint32_t at);
/* A call leads there. 0, also where there is no room; -ENOMEM. */
int known_call(struct known *k, uint32_t at);
/* A function was found to begin there. 0, -ENOMEM. */
int known_accept(struct known *k, uint32_t at);

/* Makes room for `want` items in an array of *cap. 0, -ENOMEM. */
int known_reserve(void **array, uint32_t *cap, uint32_t want, size_t item);

#endif
