/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph of one function's instructions and the branches between them, including the jump tables
 * of switches. It decodes only bytes that something leads to, from the first instruction on. These
 * may lie before it, or beyond the start of the next function: assembly functions share code.
 *
 * Instructions have numbers in the order of their discovery. With FLOW_NO_RETURN, a call with
 * padding or another function after it counts as one that does not return. Time and memory are
 * linear in the bytes reached.
 */
#ifndef COMMON_ROWS_X86_FLOW_GRAPH_H
#define COMMON_ROWS_X86_FLOW_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <Zydis/Zydis.h>
#include "common/rows/x86/flow/flow_code.h"
#include "common/rows/x86/insn.h"

#define GRAPH_CALLS 4096 /* calls kept; likewise jumps */
#define GRAPH_ENDS 256
#define GRAPH_PIECES 8192
#define GRAPH_NONE UINT32_MAX

struct graph_node {
	uint32_t at;
	uint32_t target;	    /* of a jump inside the code; GRAPH_NONE */
	uint32_t after;		    /* the next one in memory; GRAPH_NONE: not followed */
	uint32_t before;	    /* 1 + the last instruction that leads here; 0 */
	uint32_t first_case, cases; /* of an indirect jump with a table: entries in graph.target */
	uint32_t leaves;	    /* 1 + index in graph.jump, for a jump out of the code; 0 */
	/* Set by flow.c: 1 + number of a leader's state; 1 + number of the rule. 0: none. */
	uint32_t state, rule;
	struct insn insn; /* next may also be INSN_NEXT_LEAVES or INSN_NEXT_END */
	bool leader;	  /* other instructions than the one before lead here */
	bool called;	  /* the function's own calls and the instruction before lead here */
	bool pads;	  /* a call with padding after it that counts as returning */
	bool pointer;	  /* an indirect jump, to something else than cases of a table */
	bool labels;	  /* an indirect jump to addresses that were put into its register */
	bool reached;	  /* set by flow.c */
};

struct graph {
	ZydisDecoder zydis;
	struct flow_code code;
	uint32_t max_code;
	unsigned flags; /* enum flow_flags */
	uint32_t from;	/* calls with padding after them return if they lie before this */
	struct flow_reader reader;
	uint32_t *index;    /* for each code byte: 1 + node; 0 */
	uint32_t low, high; /* the first instruction, and one past the last one's first byte */
	struct graph_node *node;
	uint32_t nodes, node_cap;
	uint32_t *todo; /* offsets to follow */
	uint32_t todo_cap;
	uint32_t *target; /* of jumps by tables: offsets, later nodes */
	uint32_t targets, target_cap;
	uint32_t *piece; /* offsets that only indirect jumps can reach */
	uint32_t pieces;
	uint16_t restores; /* registers that RSP is set from, besides itself and RBP */
	bool labels;	   /* the code jumps to addresses it put into registers: not followed */
	bool fell;	   /* a path falls through to code.end */
	bool broken;	   /* a path reaches bytes that are no instruction, last at broken_at */
	uint32_t broken_at;
	uint32_t end[GRAPH_ENDS], ends; /* of calls with padding after them: offsets */
	/* Cost of jump tables: instructions on the way to them, entries, instructions searched for
	 * them. */
	uint64_t steps;
	uint32_t entries, searched;
	uint32_t calls, jumps;
	/* Not cleared; valid up to the counts above. */
	int64_t call[GRAPH_CALLS], jump[GRAPH_CALLS]; /* relative to the code */
	bool tail[GRAPH_CALLS]; /* set by flow.c: the jump leaves no frame behind */
};

/* max_code: most bytes of a function. Returns 0 or -ENOMEM; call graph_done in any case. */
int graph_init(struct graph *g, uint32_t max_code);
void graph_done(struct graph *g);
/* Finds all instructions that the entry reaches through direct branches and jump tables. Borrows
 * the bytes. Returns 0, FLOW_TANGLED or -ENOMEM. */
int graph_build(struct graph *g, const struct flow_code *code, unsigned flags, uint32_t from);
/* After graph_build: sets `called` of the nodes. */
void graph_mark_called(struct graph *g);
/* After graph_build: adds the rest of the function's own code as g->piece, without padding. Returns
 * as graph_build does. */
int graph_add_rest(struct graph *g);
/* The node at an offset, or NULL. */
static inline struct graph_node *graph_at(const struct graph *g, uint32_t at)
{
	return at < g->code.size && g->index[at] ? &g->node[g->index[at] - 1] : NULL;
}
/* One past the last byte reached. */
uint32_t graph_end(const struct graph *g);
/* The cost so far: nodes, jump table entries, and steps on the way to tables. */
uint64_t graph_work(const struct graph *g);

/* Makes room for `want` items in an array of *cap. Returns 0 or -ENOMEM. */
int graph_grow(void **array, uint32_t *cap, uint32_t want, size_t item);

#endif
