/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by derive.c, which decides where functions begin, and derive_gaps.c below it: the code that
 * no row covers, its bytes, and the rows that are put there.
 */
#ifndef PROFPIPE_DERIVE_INTERNAL_H
#define PROFPIPE_DERIVE_INTERNAL_H

#include "common/rows/derive/derive.h"
#include "common/rows/derive/known_starts.h"
#include "common/rows/x86/flow.h"
#include "common/rows/x86/stubs.h"

/* Bytes read at once: most of it is left for the next function. */
#define DERIVE_WINDOW (4 * FLOW_MAX_CODE)
#define DERIVE_BACK (48u << 10) /* bytes before a function that it may share */

struct gap {
	uint32_t start, end;
	bool blind;
};

struct derive {
	int fd;
	const struct elf_file *file;
	struct rows *rows;
	struct flow *flow;
	struct known_starts known;
	struct gap *gap;
	uint32_t gaps, gap_cap;
	const struct gap *now;		      /* the gap that is being looked at */
	uint64_t *claimed;		      /* bits: its bytes that have rows by now */
	uint32_t bare_from, bare_to;	      /* places that are known to have none */
	struct known_starts_offsets left_out; /* where calls lead that were passed by then */
	uint32_t from;			      /* flow_code begins there */
	uint64_t budget;  /* what looking at functions may still cost: flow_work */
	uint32_t foreign; /* places whose code leaves as no function does that C calls */
	bool strict;	  /* the file is full of them */
	uint32_t framed;  /* accepted functions that set up a frame pointer at once */
	/* [window_at, window_at + window_len) of the text. */
	uint8_t *window;
	uint32_t window_at, window_len;
};

/* The gaps between the rows that are settled, in the code of the file. 0, -ENOMEM. */
int derive_find_gaps(struct derive *d);
/* Whether a place lies in a gap. ctx: struct derive. */
bool derive_in_gap(const void *ctx, uint32_t at);
/* Makes the window begin at or before `at` and hold n bytes from there, or those that there are up
 * to `end`: *ret_n of them. 0, -errno. */
int derive_need(struct derive *d, uint32_t at, uint32_t n, uint32_t end, const uint8_t **ret,
		uint32_t *ret_n);

/* Whether a place in the gap that is looked at has rows by now, or is known to need none. */
static inline bool derive_is_claimed(const struct derive *d, uint32_t at)
{
	uint32_t bit = at - d->now->start;

	return d->claimed[bit / 64] >> bit % 64 & 1;
}
/* From here on these have. */
void derive_claim(struct derive *d, uint32_t start, uint32_t end);
/* The first place from `at` on that has none, or (`claimed`) that has; or up_to, in the gap. */
uint32_t derive_next_place(struct derive *d, uint32_t at, uint32_t up_to, bool claimed);

/* Puts the rows of n pieces of code, one after the other. 0, -ENOMEM. */
int derive_put_pieces(struct derive *d, uint32_t at, const struct stub_piece *p, unsigned n);
/* Puts the rows of the code that flow_run reached, wherever it lies. 0, -ENOMEM. */
int derive_put_flow(struct derive *d, const uint8_t *code, uint32_t low, uint32_t high);

#endif
