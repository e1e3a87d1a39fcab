/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit.h"

#define MIB (1ull << 20)
#define MARGIN (2 * MIB)    /* for what grows between two looks */
#define SELF_MORE (4 * MIB) /* beyond what it has: copies of stacks, and what waits to be sent */
#define SYMD_MORE (6 * MIB)
#define EXPORT_MORE (4 * MIB)
#define ROWS_FIRST 128 /* divisions: half a minute, or less while prof-symd waits */

enum { SELF, DELTAS, SYMD, EXPORT, TABLES, CLAIMS };

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* It asks for what it could use, of which it may hold little yet: programs that it does not have to
 * open again, the DWARF of a large file. While stacks are cut for want of rows it has what it
 * holds, and room for the next file. */
static uint64_t wanted_by_symd(const struct limit *l, const struct budget *b,
			       const struct limit_asked *a)
{
	const uint64_t sooner = a->held[DEPLOY_SYMD] + SYMD_MORE, most = sooner + b->dwarf;

	if (a->symd <= sooner)
		return sooner;
	return l->rows_first && a->symd > most ? most : a->symd;
}

uint64_t limit_divide(struct limit *l, const struct budget *b, const struct limit_asked *a)
{
	const uint64_t *held = a->held;

	if (a->lacking)
		l->rows_first = ROWS_FIRST;
	else if (l->rows_first)
		l->rows_first--;

	struct budget_claim c[CLAIMS] = {
		[SELF] = { .sure = b->bpf, .wanted = held[DEPLOY_BPF] + SELF_MORE },
		/* It needs all of it for a moment, over a large file. */
		[DELTAS] = { .sure = b->deltas, .wanted = larger(held[DEPLOY_DELTAS], b->deltas) },
		[SYMD] = { .sure = b->symd, .wanted = wanted_by_symd(l, b, a) },
		[EXPORT] = { .sure = b->export, .wanted = held[DEPLOY_EXPORT] + EXPORT_MORE },
		[TABLES] = { .sure = l->tables,
			     .wanted = a->tables + a->lacking + LIMIT_TABLES_MORE },
	};
	const struct {
		int claim, tool;
	} tools[] = { { SELF, DEPLOY_BPF },
		      { DELTAS, DEPLOY_DELTAS },
		      { SYMD, DEPLOY_SYMD },
		      { EXPORT, DEPLOY_EXPORT } };
	uint64_t all = l->fixed + b->launcher + MARGIN, over = 0, enough = all;

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		/* Of whom nothing is known, what it is sure of. */
		if (!held[tools[i].tool])
			c[tools[i].claim].wanted = c[tools[i].claim].sure;
	}
	for (int i = 0; i < CLAIMS; i++)
		enough += c[i].wanted;
	all = b->limit > all ? b->limit - all : 0;
	const uint64_t left = budget_settle(all, c, CLAIMS);

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		const uint64_t granted = c[tools[i].claim].granted, has = held[tools[i].tool];

		over += has > granted ? has - granted : 0;
	}
	/* Not more than is free by now: the tables hand back in seconds. */
	uint64_t free = all;

	for (int i = 0; i < CLAIMS; i++) {
		const uint64_t has = i == TABLES ? a->tables : i == SYMD ? 0 : c[i].granted;

		free -= has < free ? has : free;
	}
	l->symd = larger(c[SYMD].granted < free ? c[SYMD].granted : free,
			 c[SYMD].granted < b->symd ? c[SYMD].granted : b->symd);
	l->export = c[EXPORT].granted;
	/* Of a larger limit others are sure of more as well: of half of what is added at the most.
	 */
	if (enough > b->limit)
		enough += enough - b->limit;
	if (a->lacking || a->symd > l->symd)
		l->enough = larger(l->enough, enough);
	/* What nobody wants yet is there for rows that come; what others have not handed back is
	 * not. */
	const uint64_t tables = c[TABLES].granted + left;

	return larger(tables > over ? tables - over : 0, l->tables < all ? l->tables : all);
}
