/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/bytes/numbers.h"
#include "tools/prof-bpf/limit/limit.h"

#define MIB (1ull << 20)
#define MARGIN_PART 32 /* part of the limit, for growth between two looks */
#define MARGIN_LEAST (2 * MIB)
#define MARGIN_MOST (64 * MIB)
#define GROWTH_PART 32	      /* part of the limit, for continued growth */
#define EXPORT_NEXT (1 * MIB) /* how much prof-export's model may grow until the next grant */
#define EXPORT_MORE (4 * MIB) /* extra memory if no other tool wants it */
#define ROWS_PART 8	      /* part of the limit, for the rows of the next large file */
/* Part of the tables that is left free for mappings (tables_rows.c). */
#define TABLES_SPARE_PART 16
#define SCALE_PART 3 /* part of a raised limit, for shares that grow with it */

enum { SELF, DELTAS, SYMD, EXPORT, SEND, METRICS, TABLES, CLAIMS };

static const struct {
	int claim, tool;
} tools[] = { { SELF, DEPLOY_BPF },	 { DELTAS, DEPLOY_DELTAS }, { SYMD, DEPLOY_SYMD },
	      { EXPORT, DEPLOY_EXPORT }, { SEND, DEPLOY_SEND },	    { METRICS, METER_METRICS } };
#define TOOLS (sizeof(tools) / sizeof(tools[0]))

static uint64_t margin(uint64_t limit)
{
	return numbers_smaller(numbers_larger(limit / MARGIN_PART, MARGIN_LEAST), MARGIN_MOST);
}

/* Returns the peak in second s; 0: not measured. */
static uint64_t *most_in(struct limit_past *p, uint64_t s)
{
	return &p->most[s % LIMIT_PAST];
}

uint64_t limit_swing(struct limit_past *p, uint64_t limit, uint64_t held, uint64_t now_ns)
{
	const uint64_t s = now_ns / 1000000000ull;
	uint64_t most = 0, first = 0;

	if (s < p->last_s || s - p->last_s >= LIMIT_PAST)
		*p = (struct limit_past){ .last_s = s };
	while (p->last_s < s)
		*most_in(p, ++p->last_s) = 0;
	*most_in(p, s) = numbers_larger(*most_in(p, s), held);
	for (uint64_t k = s + 1; k <= s + LIMIT_PAST; k++) {
		const uint64_t then = *most_in(p, k);

		first = first ? first : then;
		most = numbers_larger(most, then);
	}
	return most - held +
	       numbers_smaller(numbers_less(*most_in(p, s), first), limit / GROWTH_PART);
}

static uint64_t rows_with_room(const struct budget *b, const struct limit_asked *a)
{
	const uint64_t next = numbers_larger(LIMIT_TABLES_MORE, b->limit / ROWS_PART);

	/* The memory of idle rows becomes free only after the grace period. */
	return a->lacking ? numbers_larger(a->tables, a->useful) + a->lacking + next
			  : a->useful + next;
}

/*
 * Settles the claims. Memory that is held and used comes first, and rows that do not fit. Then the
 * tables get space for the next large file. Then prof-symd gets what it asks for, while the tables
 * keep idle rows. Returns what is left.
 */
static uint64_t settle(uint64_t all, const struct budget *b, const struct limit_asked *a,
		       struct budget_claim c[static CLAIMS])
{
	uint64_t left = budget_settle(all, c, CLAIMS);
	struct budget_claim next[] = {
		{ .wanted = numbers_less(rows_with_room(b, a), c[TABLES].granted) },
	};

	left = budget_settle(left, next, 1);
	c[TABLES].granted += next[0].granted;

	/* prof-symd need not ask for its guaranteed share. */
	const uint64_t asked = a->symd > b->symd ? a->symd : 0;
	struct budget_claim more[] = { { .wanted = numbers_less(a->tables, c[TABLES].granted) },
				       { .wanted = numbers_less(asked, c[SYMD].granted) } };

	left = budget_settle(left, more, 2);
	c[TABLES].granted += more[0].granted;
	c[SYMD].granted += more[1].granted;
	return left;
}

/* Returns a limit that would have been enough for everything that is wanted now. */
static uint64_t sufficient(const struct limit *l, const struct budget *b,
			   const struct limit_asked *a, const struct budget_claim *c)
{
	const uint64_t rows = numbers_larger(a->tables, a->useful) +
			      numbers_larger(a->lacking, a->refused);
	uint64_t ret = l->fixed + b->launcher + margin(b->limit) + a->swing + rows +
		       rows / (TABLES_SPARE_PART - 1) + LIMIT_TABLES_MORE;

	for (size_t i = 0; i < TOOLS; i++)
		ret += c[tools[i].claim].wanted;
	/* The rings, the margin and other parts of the limit grow with it. This limit was not
	 * enough, even if all would fit now: rows came and went too fast. */
	ret += numbers_less(ret, b->limit) / SCALE_PART;
	return numbers_larger(ret, b->limit + b->limit / 16);
}

uint64_t limit_divide(struct limit *l, const struct budget *b, const struct limit_asked *a)
{
	const uint64_t *held = a->held;
	struct budget_claim c[CLAIMS] = {
		[SELF] = { .sure = b->bpf, .wanted = held[DEPLOY_BPF] },
		[DELTAS] = { .sure = b->deltas, .wanted = held[DEPLOY_DELTAS] },
		[SYMD] = { .sure = b->symd, .wanted = held[DEPLOY_SYMD] },
		[EXPORT] = { .sure = b->export, .wanted = held[DEPLOY_EXPORT] + EXPORT_NEXT },
		[SEND] = { .sure = b->send, .wanted = held[DEPLOY_SEND] },
		[METRICS] = { .sure = b->metrics, .wanted = held[METER_METRICS] },
		[TABLES] = { .sure = l->sure, .wanted = a->useful + a->lacking },
	};
	const uint64_t kept = l->fixed + b->launcher + margin(b->limit) + a->swing;
	const uint64_t all = numbers_less(b->limit, kept);
	uint64_t over = 0;

	for (size_t i = 0; i < TOOLS; i++) {
		/* If a tool's memory is unknown, count its guaranteed share. prof-metrics, which
		 * has the same parent, does not run then. */
		if (!held[tools[i].tool] && tools[i].claim != METRICS)
			c[tools[i].claim].wanted = c[tools[i].claim].sure;
	}
	if (a->lacking)
		l->enough = numbers_larger(l->enough, sufficient(l, b, a, c));
	const uint64_t left = settle(all, b, a, c);

	for (size_t i = 0; i < TOOLS; i++)
		over += numbers_less(held[tools[i].tool], c[tools[i].claim].granted);
	/* No more than is free now: the tables give memory back soon, but not at once. */
	uint64_t free = all;

	for (int i = 0; i < CLAIMS; i++)
		free = numbers_less(free, i == TABLES ? a->tables : i == SYMD ? 0 : c[i].granted);
	l->symd = numbers_larger(numbers_smaller(c[SYMD].granted, free),
				 numbers_smaller(c[SYMD].granted, b->symd));
	/* prof-export may take its guaranteed share at once. */
	l->export = numbers_larger(c[EXPORT].granted,
				   numbers_smaller(b->export, held[DEPLOY_EXPORT] + EXPORT_MORE)) +
		    numbers_smaller(left, EXPORT_MORE);
	/* The tables get memory that no tool wants, for future rows, but not memory that others
	 * must still give back. */
	l->ceiling = numbers_larger(numbers_less(c[TABLES].granted + left, over),
				    numbers_smaller(l->sure, all));
	return l->ceiling;
}
