/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts finds the code of an ELF file (sections) and the beginnings of its functions (symbols,
 * dynamic section). derive.c uses them. Reads with pread; treats unreadable parts as absent.
 *
 * Sources: the generic ABI (gabi), chapters 4 and 5.
 */
#ifndef COMMON_ROWS_ELF_STARTS_H
#define COMMON_ROWS_ELF_STARTS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/rows/rows.h"

#define STARTS_MAX_SECTIONS 4096       /* of a file */
#define STARTS_MAX_RANGES 256	       /* of code */
#define STARTS_MAX (1u << 20)	       /* functions kept */
#define STARTS_MAX_SYMBOLS (64u << 20) /* read */

/* Offsets are relative to rows->base. */
struct starts_range {
	uint32_t start, end;
	bool blind; /* a whole segment, since the file has no sections: parts of it may not be
		     * code */
};
struct starts_function {
	uint32_t at;
	uint32_t size : 31; /* 0: not known */
	uint32_t taken : 1; /* not certain: the file uses the address like a function's */
};
struct starts {
	struct starts_range range[STARTS_MAX_RANGES]; /* rising, not overlapping */
	unsigned ranges;
	struct starts_function *function; /* owned; rising */
	uint32_t functions, cap;
};

/* Finds the ranges of code in the file behind fd (borrowed). Returns 0 or -errno. */
int starts_ranges(int fd, struct rows *rows, struct starts *s);
/* A search for functions, limited to places where `wanted` returns true. Borrows all pointers. */
struct starts_search {
	int fd;
	struct rows *rows;
	struct starts *found;
	bool (*wanted)(const void *ctx, uint32_t at);
	const void *ctx;
};
/* Converts an ELF address to a place. *ret_left is the number of bytes up to its segment's end.
 * Returns false if the place is not wanted. */
bool starts_wants(const struct starts_search *s, uint64_t vaddr, uint32_t *ret_at,
		  uint64_t *ret_left);
/* Finds the functions that begin in the code. Returns 0, -ENOMEM or MSG_ROWS_LATER (rows_stopped);
 * call starts_done in each case. */
int starts_functions(const struct starts_search *s);
/* Adds a function. Returns 0 (also if the list is full) or -ENOMEM. */
int starts_add(struct starts *s, uint32_t at, uint32_t size, bool taken);
/* Sorts the functions, and keeps the most certain one of each place. Call it after the last
 * starts_add. */
void starts_sort(struct starts *s);
void starts_done(struct starts *s);

#endif
