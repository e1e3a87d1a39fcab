/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known starts: the places where functions of a file are known to begin. The search for functions
 * goes from low to high addresses. A function is known because
 * - it has rows,
 * - the file names it (starts.h),
 * - a call leads to it, or
 * - it was found by its code.
 *
 * Offsets are relative to rows->base.
 */
#ifndef COMMON_ROWS_DERIVE_KNOWN_STARTS_H
#define COMMON_ROWS_DERIVE_KNOWN_STARTS_H

#include "common/rows/elf/starts.h"
#include "common/rows/rows.h"

#define KNOWN_STARTS_MAX_CALLED (1u << 16) /* call targets kept ahead of the current place */

struct known_starts_offsets {
	uint32_t *value; /* owned */
	uint32_t n, cap;
};

struct known_starts {
	const struct rows *rows; /* borrowed */
	struct starts starts;
	struct known_starts_offsets called;   /* a heap, least first */
	struct known_starts_offsets accepted; /* rising */
	struct known_starts_offsets endless;  /* rising: accepted ones that never return */
	uint32_t next;			      /* next index in `starts` */
};

void known_starts_done(struct known_starts *k);
/* Whether a function is known to begin at `at`. */
bool known_starts_begins(const struct known_starts *k, int64_t at);
/* Returns the next known start at or after `at`, or `end`. The caller goes from low to high: `at`
 * never decreases by more than one. */
uint32_t known_starts_next(struct known_starts *k, uint32_t at, uint32_t end);
/* Like known_starts_next, but ignores starts whose address was only taken (starts_function), and
 * does not move on. */
uint32_t known_starts_sure(const struct known_starts *k, uint32_t at, uint32_t end);
/* Returns the entry of a start for which known_starts_next returned its own argument `at`. NULL if
 * only a call makes it known. */
const struct starts_function *known_starts_start(const struct known_starts *k, uint32_t at);
/* Whether a call leads to `at`. Valid only until known_starts_next has moved past `at`. */
bool known_starts_called(const struct known_starts *k, uint32_t at);
/* Notes that a call leads to `at`. Returns 0 (also if the list is full) or -ENOMEM. */
int known_starts_call(struct known_starts *k, uint32_t at);
/* Notes that a function was found at `at`, which may never return. Returns 0 or -ENOMEM. */
int known_starts_accept(struct known_starts *k, uint32_t at, bool endless);
/* Whether a function that never returns was found at `at`. */
bool known_starts_endless(const struct known_starts *k, int64_t at);

/* Makes room for `want` items in an array of *cap. Returns 0 or -ENOMEM. */
int known_starts_reserve(void **array, uint32_t *cap, uint32_t want, size_t item);

#endif
