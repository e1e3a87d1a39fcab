/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known starts: where functions are known to begin in a file whose code is looked at from low to
 * high addresses. These are functions that have rows, that the file names (starts.h), that a call
 * leads to, and that were found by their code.
 *
 * Offsets are relative to rows->base.
 */
#ifndef PROFPIPE_KNOWN_STARTS_H
#define PROFPIPE_KNOWN_STARTS_H

#include "common/rows/rows.h"
#include "common/rows/elf/starts.h"

#define KNOWN_STARTS_MAX_CALLED (1u << 16) /* places that calls lead to, ahead */

struct known_starts_offsets {
	uint32_t *value; /* owned */
	uint32_t n, cap;
};

struct known_starts {
	const struct rows *rows; /* borrowed */
	struct starts starts;
	struct known_starts_offsets called;   /* heap: the least first */
	struct known_starts_offsets accepted; /* rising */
	uint32_t next;			      /* of starts */
};

void known_starts_done(struct known_starts *k);
/* Whether a function is known to begin there. */
bool known_starts_begins(const struct known_starts *k, int64_t at);
/* The next place at or behind `at` that is known to begin a function, or `end`. `at` never falls,
 * but by one. */
uint32_t known_starts_next(struct known_starts *k, uint32_t at, uint32_t end);
/* Likewise, without those that are only taken to (starts_function), and without moving on. */
uint32_t known_starts_sure(const struct known_starts *k, uint32_t at, uint32_t end);
/* Of the one that known_starts_next gave for its own `at`; NULL: it was called. */
const struct starts_function *known_starts_start(const struct known_starts *k, uint32_t at);
/* Whether a call leads to the next place, as far as known_starts_next was not asked beyond. */
bool known_starts_called(const struct known_starts *k, uint32_t at);
/* A call leads there. 0, also where there is no room; -ENOMEM. */
int known_starts_call(struct known_starts *k, uint32_t at);
/* A function was found to begin there. 0, -ENOMEM. */
int known_starts_accept(struct known_starts *k, uint32_t at);

/* Makes room for `want` items in an array of *cap. 0, -ENOMEM. */
int known_starts_reserve(void **array, uint32_t *cap, uint32_t want, size_t item);

#endif
