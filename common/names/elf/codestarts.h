/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where functions begin as the bytes of x86-64 code and data tell: targets of calls, addresses of
 * code that instructions, relocations and words of data hold, and what lies behind the end of a
 * function. Pure, bytes in, addresses out.
 */
#ifndef PROFPIPE_CODESTARTS_H
#define PROFPIPE_CODESTARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/span.h"

#define CODESTARTS_MAX (1u << 18)
#define CODESTARTS_REACH 8 /* bytes that the longest instruction looked at has */

struct codestarts {
	uint64_t low, high; /* where code lies; high - low is below 4 GiB */
	uint32_t *at;	    /* owned; from low on; rising once codestarts_sort was called */
	size_t len, cap;
	bool full; /* there are more: what is known is not enough to tell */
};

void codestarts_done(struct codestarts *s);
/* What instructions of code say, whose first byte lies at address. Of an address that is only
 * taken, which may be a label's, or a number that looks like one, `begins` says whether a function
 * can begin there. 0, -ENOMEM. */
int codestarts_code(struct codestarts *s, struct span code, uint64_t address,
		    bool (*begins)(void *ctx, uint64_t address), void *ctx);
/* Whether a function can begin behind these bytes, which end where it would: they return, jump away
 * or are padding. */
bool codestarts_behind(struct span before);
/* A function begins there, if it is code. 0, -ENOMEM. */
int codestarts_add(struct codestarts *s, uint64_t address);
/* Sorts, and drops what is there twice. */
void codestarts_sort(struct codestarts *s);
/* The last one at or before address. False: none. */
bool codestarts_find(const struct codestarts *s, uint64_t address, uint64_t *ret);
/*
 * Follows code in order, instruction by instruction, and adds what begins behind the end of a
 * function: where it returns or leaves for good, and no branch of it leads further. Sorted before,
 * and after. from, to: what is to be followed. read: at most n bytes of code from an address on,
 * how many it is. 0, -ENOMEM.
 */
int codestarts_follow(struct codestarts *s, uint64_t from, uint64_t to,
		      size_t (*read)(void *ctx, uint64_t address, uint8_t *into, size_t n),
		      bool (*begins)(void *ctx, uint64_t address), void *ctx);
/* How many of the bytes are padding between functions: nops, int3, zeros. */
size_t codestarts_padding(struct span bytes);

#endif
