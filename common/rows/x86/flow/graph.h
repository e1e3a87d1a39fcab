/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph of one function's instructions and the branches between them, including the jump tables
 * of switches. It decodes only bytes that the code leads to, from the first instruction on. These
 * may lie before the first instruction, or after the start of the next function: assembly functions
 * share code.
 *
 * Instructions are numbered in the order of their discovery. With FLOW_NO_RETURN, a call with
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

#define GRAPH_CALLS 4096 /* calls kept; the same limit for jumps */
#define GRAPH_ENDS 256
#define GRAPH_PIECES 8192
#define GRAPH_NONE UINT32_MAX

struct graph_node {
	uint32_t at;
	uint32_t target;	    /* of a jump inside the code; otherwise GRAPH_NONE */
	uint32_t after;		    /* the next one in memory; GRAPH_NONE: the path does not
				     * continue there */
	uint32_t before;	    /* 1 + the last instruction found that leads here; 0: none */
	uint32_t first_case, cases; /* for an indirect jump with a table: entries in graph.target */
	uint32_t leaves;	    /* for a jump out of the code: 1 + index in graph.jump;
				     * otherwise 0 */
	/* Set by flow.c: 1 + number of a leader's state; 1 + number of the rule. 0: none. */
	uint32_t state, rule;
	struct insn insn; /* next may also be INSN_NEXT_LEAVES or INSN_NEXT_END */
	bool leader;	  /* an instruction other than the one before it leads here */
	bool called;	  /* the function's own calls lead here, and so does the instruction
			   * before */
	bool pads;	  /* a call with padding after it that counts as returning */
	bool pointer;	  /* an indirect jump to something other than the cases of a table */
	bool labels;	  /* an indirect jump to addresses that were put into its register */
	bool reached;	  /* set by flow.c */
};

struct graph {
	ZydisDecoder zydis;
	struct flow_code code;
	uint32_t max_code;
	unsigned flags; /* enum flow_flags */
	uint32_t from;	/* a call with padding after it returns if it lies before this offset */
	struct flow_reader reader;
	uint32_t *index;    /* for each code byte: 1 + node; 0: none */
	uint32_t low, high; /* offset of the first instruction; one past the first byte of the last
			     * one */
	struct graph_node *node;
	uint32_t nodes, node_cap;
	uint32_t *todo; /* offsets to follow */
	uint32_t todo_cap;
	uint32_t *target; /* offsets that jump tables lead to; later the numbers of their nodes */
	uint32_t targets, target_cap;
	uint32_t *piece; /* offsets that only indirect jumps can reach */
	uint32_t pieces;
	uint16_t restores; /* registers that RSP is set from, besides itself and RBP */
	bool labels;	   /* the code jumps to addresses that it put into registers; these jumps
			    * are not followed */
	bool fell;	   /* a path falls through to code.end */
	bool supposed;	   /* a path ends with a call that may return, by what follows it */
	bool broken;	   /* a path reaches bytes that are no instruction; the last ones are at
			    * broken_at */
	uint32_t broken_at;
	uint32_t end[GRAPH_ENDS], ends; /* offsets of calls with padding after them */
	/* The cost of jump tables: instructions on the way to them, entries, and instructions
	 * searched for them. */
	uint64_t steps;
	uint32_t entries, searched;
	uint32_t calls, jumps;
	/* These arrays are not cleared; they are valid up to the counts above. */
	int64_t call[GRAPH_CALLS], jump[GRAPH_CALLS]; /* offsets relative to the code */
	bool tail[GRAPH_CALLS]; /* set by flow.c: the jump leaves no frame behind */
};

/* max_code is the largest size of a function in bytes. Returns 0 or -ENOMEM; call graph_done in
 * either case. */
int graph_init(struct graph *g, uint32_t max_code);
void graph_done(struct graph *g);
/* Finds all instructions that the entry reaches through direct branches and jump tables. The bytes
 * are borrowed. Returns 0, FLOW_TANGLED or -ENOMEM. */
int graph_build(struct graph *g, const struct flow_code *code, unsigned flags, uint32_t from);
/* After graph_build: sets `called` of the nodes. */
void graph_mark_called(struct graph *g);
/* After graph_build: adds the rest of the function's own code, without padding, and notes it in
 * g->piece. Returns as graph_build does. */
int graph_add_rest(struct graph *g);
/* The node at an offset, or NULL. */
static inline struct graph_node *graph_at(const struct graph *g, uint32_t at)
{
	return at < g->code.size && g->index[at] ? &g->node[g->index[at] - 1] : NULL;
}
/* Returns one past the offset of the last byte reached. */
uint32_t graph_end(const struct graph *g);
/* Returns the cost so far: nodes, jump table entries, and steps on the way to tables. */
uint64_t graph_work(const struct graph *g);

/* Makes room for `want` items in an array of *cap. Returns 0 or -ENOMEM. */
int graph_grow(void **array, uint32_t *cap, uint32_t want, size_t item);

#endif
