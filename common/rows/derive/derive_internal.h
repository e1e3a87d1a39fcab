/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one derivation: the code that no row covers, its bytes, and the rows added to it.
 * derive.c decides where functions begin. row_gaps.c, which it calls, finds the gaps (code without
 * rows), reads their bytes, and adds rows to them. svmmethods.c does so for native images.
 */
#ifndef COMMON_ROWS_DERIVE_DERIVE_INTERNAL_H
#define COMMON_ROWS_DERIVE_DERIVE_INTERNAL_H

#include "common/rows/derive/derive.h"
#include "common/rows/derive/known_starts.h"
#include "common/rows/x86/flow/flow.h"
#include "common/rows/x86/stubs.h"

/* Bytes read at once. Most of a window is used again for the next functions. */
#define DERIVE_WINDOW (4 * FLOW_MAX_CODE)
#define DERIVE_BACK (48u << 10) /* code before a function that it may share, in bytes */

struct derive_gap {
	uint32_t start, end;
	bool blind;
};

struct derive {
	int fd;
	const struct elf_file *file;
	struct rows *rows;
	struct flow *flow;
	struct known_starts known;
	struct derive_gap *gap;
	uint32_t gaps, gap_cap;
	const struct derive_gap *now;	      /* the current gap */
	uint64_t *claimed;		      /* bit mask: bytes of the gap that have rows by now */
	uint32_t bare_from, bare_to;	      /* a range that is known to have no rows */
	struct known_starts_offsets left_out; /* targets of calls that lie before the current
					       * place */
	uint32_t from;			      /* the beginning of flow_code */
	uint64_t budget;  /* work left for looking at functions, as flow_work counts it */
	uint32_t foreign; /* places whose code leaves in a way that no C-callable function does */
	bool strict;	  /* the file has many foreign places */
	uint32_t framed;  /* functions that begin by setting up a frame pointer */
	uint32_t guesses; /* how many more guessed beginnings of functions may be wrong */
	/* [window_at, window_at + window_len) of the text. */
	uint8_t *window;
	uint32_t window_at, window_len;
};

/* Finds the gaps between the settled rows in the file's code. Returns 0 or -ENOMEM. */
int derive_find_gaps(struct derive *d);
/* Whether a place lies in a gap. ctx is a struct derive. A callback of struct starts_search. */
bool derive_in_gap(const void *ctx, uint32_t at);
/* Moves the window so that it holds n bytes from `at` on, or fewer if `end` comes first. *ret
 * points to them, borrowed until the next call; *ret_n is their number. Returns 0 or -errno. */
int derive_need(struct derive *d, uint32_t at, uint32_t n, uint32_t end, const uint8_t **ret,
		uint32_t *ret_n);

/* Whether a place in the current gap has rows by now, or needs none. */
static inline bool derive_is_claimed(const struct derive *d, uint32_t at)
{
	uint32_t bit = at - d->now->start;

	return d->claimed[bit / 64] >> bit % 64 & 1;
}
/* Marks a range of the current gap as claimed. */
void derive_claim(struct derive *d, uint32_t start, uint32_t end);
/* Returns the first place from `at` on whose claimed bit equals `claimed`, or up_to if there is
 * none. */
uint32_t derive_next_place(struct derive *d, uint32_t at, uint32_t up_to, bool claimed);

/* Adds a row to the open function. Returns 0, MSG_ROWS_TOO_LARGE or -ENOMEM. */
int derive_put_row(struct derive *d, uint32_t at, const struct unwind_rule *rule);
/* Adds the rows of n consecutive pieces of code. Returns 0 or -ENOMEM. */
int derive_put_pieces(struct derive *d, uint32_t at, const struct stub_piece *p, unsigned n);
/* Adds the rows of the methods of a GraalVM native image (common/svm/svmcode.h) in a gap. A method
 * ends where the next one begins. Returns 0, MSG_ROWS_TOO_LARGE, MSG_ROWS_LATER, -ENOMEM or
 * -errno. */
int derive_put_methods(struct derive *d, const struct derive_gap *g);
/* Adds the rows of all code that flow_run reached. Returns 0 or -ENOMEM. */
int derive_put_flow(struct derive *d, const uint8_t *code, uint32_t low, uint32_t high);

#endif
