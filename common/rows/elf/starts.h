/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts: where an ELF file says that code lies (its sections) and that functions begin (symbols,
 * the dynamic section). Read by pread, as derive.c needs it; what cannot be read is as if it were
 * not there.
 *
 * Sources: the generic ABI (gabi), chapters 4 and 5.
 */
#ifndef PROFPIPE_STARTS_H
#define PROFPIPE_STARTS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/rows/rows.h"

#define STARTS_MAX_SECTIONS 4096       /* of a file */
#define STARTS_MAX_RANGES 256	       /* of code */
#define STARTS_MAX (1u << 20)	       /* functions kept */
#define STARTS_MAX_SYMBOLS (64u << 20) /* looked at */

/* Offsets are relative to rows->base. */
struct starts_range {
	uint32_t start, end;
	bool blind; /* a segment, for want of sections: not all of it needs to be code */
};
struct starts_function {
	uint32_t at;
	uint32_t size : 31; /* 0: not known */
	uint32_t taken : 1; /* likely, and no more: its address is used as a function's is */
};
struct starts {
	struct starts_range range[STARTS_MAX_RANGES]; /* rising, apart from each other */
	unsigned ranges;
	struct starts_function *function; /* owned; rising */
	uint32_t functions, cap;
};

/* Where code lies in the file behind fd (borrowed). */
int starts_ranges(int fd, struct rows *rows, struct starts *s);
/* A search for functions at places that `wanted` says yes to. All of it is borrowed. */
struct starts_search {
	int fd;
	struct rows *rows;
	struct starts *found;
	bool (*wanted)(const void *ctx, uint32_t at);
	const void *ctx;
};
/* The place of an ELF address, if it is wanted; *ret_left: bytes up to its segment's end. */
bool starts_wants(const struct starts_search *s, uint64_t vaddr, uint32_t *ret_at,
		  uint64_t *ret_left);
/* Which functions begin in it. 0, -ENOMEM; starts_done in any case. */
int starts_functions(const struct starts_search *s);
/* Adds one. 0, also where there is no room; -ENOMEM. */
int starts_add(struct starts *s, uint32_t at, uint32_t size, bool taken);
/* After the last one: they rise, and of those of one place the best known is kept. */
void starts_sort(struct starts *s);
void starts_done(struct starts *s);

#endif
