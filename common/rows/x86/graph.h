/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of one function and the ways between them, as its branches and the tables of its
 * switches lead: decoded from the first one on, and no byte that nothing leads to. They may lie
 * before it, too, and behind where the next function begins: assembly shares its ends.
 *
 * Instructions have numbers in the order in which they were found. Calls that do not come back are
 * taken to by the padding behind them, where that is wanted (FLOW_NO_RETURN). Time and memory are
 * linear in the bytes that are reached.
 */
#ifndef PROFPIPE_GRAPH_H
#define PROFPIPE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <Zydis/Zydis.h>
#include "common/rows/x86/flow_code.h"
#include "common/rows/x86/insn.h"

#define GRAPH_CALLS 4096 /* and jumps, that are kept */
#define GRAPH_ENDS 256
#define GRAPH_PIECES 8192
#define GRAPH_NONE UINT32_MAX

struct node {
	uint32_t at;
	uint32_t target;	    /* of a jump inside; GRAPH_NONE */
	uint32_t after;		    /* the next one in memory; GRAPH_NONE: not followed */
	uint32_t before;	    /* 1 + the last of those that lead here; 0 */
	uint32_t first_case, cases; /* of an indirect jump whose table was read: in graph.target */
	uint32_t leaves;	    /* 1 + index in graph.jump of a jump out of the code; 0 */
	/* The runner's: 1 + number of the state at a leader; 1 + number of the rule; 0: none. */
	uint32_t state, rule;
	struct decoded insn; /* with NEXT_LEAVES and NEXT_END, too */
	bool leader;	     /* more than the one before leads here */
	bool called;	     /* so do calls of the function's own, and what is before it */
	bool pads;	     /* a call that padding follows, which is taken to come back */
	bool pointer;	     /* an indirect jump to what is no case of a table */
	bool labels;	     /* an indirect jump whose cases are addresses put into its register */
	bool reached;	     /* the runner's */
};

struct graph {
	ZydisDecoder zydis;
	struct flow_code code;
	uint32_t max_code;
	unsigned flags; /* enum flow_flags */
	uint32_t from;	/* calls that padding follows come back before this offset */
	struct flow_reader reader;
	uint32_t *index;    /* of code bytes: 1 + node; 0 */
	uint32_t low, high; /* the first instruction, and behind the last one's first byte */
	struct node *node;
	uint32_t nodes, node_cap;
	uint32_t *todo; /* offsets to be followed */
	uint32_t todo_cap;
	uint32_t *target; /* of jumps by tables: offsets, then nodes */
	uint32_t targets, target_cap;
	uint32_t *piece; /* offsets of what only indirect jumps can lead to */
	uint32_t pieces;
	uint16_t restores; /* registers that RSP is set from, beside itself and RBP */
	bool labels;	   /* addresses of code lie in registers that are jumped to: not followed */
	bool fell;	   /* what lies before code.end goes on there */
	bool broken;	   /* what is no instruction was reached, last at broken_at */
	uint32_t broken_at;
	uint32_t end[GRAPH_ENDS], ends; /* of the calls that padding follows: offsets */
	/* Of tables: instructions on the way to them, entries, instructions searched for them. */
	uint64_t steps;
	uint32_t entries, searched;
	uint32_t calls, jumps;
	/* Not cleared: only as far as they are counted. */
	int64_t call[GRAPH_CALLS], jump[GRAPH_CALLS]; /* relative to the code */
	bool tail[GRAPH_CALLS]; /* the runner's: the jump was seen to leave its frame behind */
};

/* max_code: bytes of a function. Gives 0, -ENOMEM; graph_done in any case. */
int graph_init(struct graph *g, uint32_t max_code);
void graph_done(struct graph *g);
/* Finds what direct branches and the tables of indirect ones reach from the entry; the bytes are
 * borrowed. 0, FLOW_TANGLED, -ENOMEM. */
int graph_build(struct graph *g, const struct flow_code *code, unsigned flags, uint32_t from);
/* After graph_build: marks what is `called`. */
void graph_mark_called(struct graph *g);
/* After graph_build: all the rest of the function's own code but padding, too, as g->piece. As
 * graph_build. */
int graph_add_rest(struct graph *g);
/* The node at an offset, or NULL. */
static inline struct node *graph_at(const struct graph *g, uint32_t at)
{
	return at < g->code.size && g->index[at] ? &g->node[g->index[at] - 1] : NULL;
}
/* Behind the last byte that is reached. */
uint32_t graph_end(const struct graph *g);
/* What all this has cost: nodes, entries of tables, steps on the way to them. */
uint64_t graph_work(const struct graph *g);

/* Makes room for `want` items in an array of *cap. 0, -ENOMEM. */
int graph_grow(void **array, uint32_t *cap, uint32_t want, size_t item);

#endif
