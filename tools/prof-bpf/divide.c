/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit.h"

#define MIB (1ull << 20)
#define MARGIN (2 * MIB)    /* for what grows between two looks */
#define SELF_MORE (4 * MIB) /* beyond what it has: copies of stacks, and what waits to be sent */
#define SYMD_MORE (6 * MIB)
#define EXPORT_MORE (4 * MIB)
#define ROWS_PART 8 /* of the limit, for the rows of the next large file */

enum { SELF, DELTAS, SYMD, EXPORT, TABLES, CLAIMS };

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t rows_with_room(const struct budget *b, const struct limit_asked *a)
{
	return a->useful + a->lacking + larger(LIMIT_TABLES_MORE, b->limit / ROWS_PART);
}

/*
 * What is held and used comes first, with room for what comes next. Of what is left the tables may
 * keep idle rows, and prof-symd has what it asks for: it holds little of that yet, and may never
 * (programs that it does not have to open again, the DWARF of a large file). Returns what is left
 * then.
 */
static uint64_t settle(uint64_t all, const struct budget *b, const struct limit_asked *a,
		       struct budget_claim c[static CLAIMS])
{
	const uint64_t tables = c[TABLES].wanted, symd = c[SYMD].wanted;

	c[TABLES].wanted = smaller(tables, rows_with_room(b, a));
	/* Of whom nothing is known, what it is sure of. */
	if (a->held[DEPLOY_SYMD])
		c[SYMD].wanted = smaller(symd, a->held[DEPLOY_SYMD] + SYMD_MORE + b->dwarf);

	const uint64_t left = budget_settle(all, c, CLAIMS);
	struct budget_claim more[] = { { .wanted = tables - c[TABLES].granted },
				       { .wanted = symd - c[SYMD].granted } };
	const uint64_t rest = budget_settle(left, more, 2);

	c[TABLES].granted += more[0].granted;
	c[SYMD].granted += more[1].granted;
	c[TABLES].wanted = tables;
	c[SYMD].wanted = symd;
	return rest;
}

uint64_t limit_divide(struct limit *l, const struct budget *b, const struct limit_asked *a)
{
	const uint64_t *held = a->held;
	struct budget_claim c[CLAIMS] = {
		[SELF] = { .sure = b->bpf, .wanted = held[DEPLOY_BPF] + SELF_MORE },
		/* It needs all of it for a moment, over a large file. */
		[DELTAS] = { .sure = b->deltas, .wanted = larger(held[DEPLOY_DELTAS], b->deltas) },
		[SYMD] = { .sure = b->symd,
			   .wanted = larger(held[DEPLOY_SYMD] + SYMD_MORE, a->symd) },
		[EXPORT] = { .sure = b->export, .wanted = held[DEPLOY_EXPORT] + EXPORT_MORE },
		[TABLES] = { .sure = l->tables,
			     .wanted = larger(a->tables + a->lacking + LIMIT_TABLES_MORE,
					      rows_with_room(b, a)) },
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
	const uint64_t left = settle(all, b, a, c);

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
