/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The starts of functions, estimated from the bytes of x86-64 code and data: targets of calls, code
 * addresses in instructions, relocations and words of data, and code after the end of a function.
 * Pure.
 */
#ifndef COMMON_NAMES_ELF_CODESTARTS_H
#define COMMON_NAMES_ELF_CODESTARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/span.h"

#define CODESTARTS_MAX (1u << 18)
#define CODESTARTS_REACH 8 /* bytes of the longest instruction that codestarts_code decodes */

struct codestarts {
	uint64_t low, high; /* the range of all code; high - low is below 4 GiB */
	uint32_t *at;	    /* owned; offsets from low; sorted after codestarts_sort */
	size_t len, cap;
	bool full; /* over CODESTARTS_MAX: starts are missing, so lookups give no useful answer */
};

void codestarts_done(struct codestarts *s);
/* Adds the starts that instructions refer to. `address` is that of the first byte of code. Targets
 * of calls are trusted. An instruction that only takes an address may refer to a label, or contain
 * a number that looks like an address. For these, `begins` tells whether a function can begin
 * there. Returns 0 or -ENOMEM. */
int codestarts_code(struct codestarts *s, struct span code, uint64_t address,
		    bool (*begins)(void *ctx, uint64_t address), void *ctx);
/* Whether a function can begin directly after these bytes: they end with a return, a jump or
 * padding. */
bool codestarts_behind(struct span before);
/* Adds the start of a function. Ignores addresses outside the range of code. Returns 0 or
 * -ENOMEM. */
int codestarts_add(struct codestarts *s, uint64_t address);
/* Sorts the starts, and drops duplicates. */
void codestarts_sort(struct codestarts *s);
/* Finds the last start at or before address. Returns false if there is none. */
bool codestarts_find(const struct codestarts *s, uint64_t address, uint64_t *ret);
/*
 * Decodes the code between `from` and `to` in order, and adds the starts that follow the ends of
 * functions. A function ends where it returns or jumps away, and none of its branches leads
 * further. *s must be sorted, and is sorted afterwards. read: copies up to n bytes of code, and
 * returns how many. Returns 0 or -ENOMEM.
 */
int codestarts_follow(struct codestarts *s, uint64_t from, uint64_t to,
		      size_t (*read)(void *ctx, uint64_t address, uint8_t *into, size_t n),
		      bool (*begins)(void *ctx, uint64_t address), void *ctx);
/* Returns how many of the first bytes are padding between functions: nops, int3, zeros. */
size_t codestarts_padding(struct span bytes);

#endif
