/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/flow/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/rows/x86/flow/jump_table.h"

#define MAX_TARGETS 65536	      /* approximate limit for all jump tables of a function */
#define MAX_ENTRIES (4 * MAX_TARGETS) /* read from tables */
#define SEARCH_PER_INSN 1024
#define LABEL_TURNS 64
#define SAVES_LOOK 8 /* instructions that hold the first two pushes of a function */

int graph_init(struct graph *g, uint32_t max_code)
{
	memset(g, 0, offsetof(struct graph, call));
	ZydisDecoderInit(&g->zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	g->max_code = max_code < FLOW_MAX_CODE ? max_code : FLOW_MAX_CODE;
	g->index = calloc(g->max_code, sizeof(*g->index));
	g->piece = malloc(GRAPH_PIECES * sizeof(*g->piece));
	return g->index && g->piece ? 0 : -ENOMEM;
}

void graph_done(struct graph *g)
{
	free(g->index);
	free(g->node);
	free(g->todo);
	free(g->target);
	free(g->piece);
}

int graph_grow(void **array, uint32_t *cap, uint32_t want, size_t item)
{
	uint32_t n = *cap * 2 > want ? *cap * 2 : want;
	void *p;

	if (want <= *cap)
		return 0;
	if (n < 1024)
		n = 1024;
	p = realloc(*array, n * item);
	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = n;
	return 0;
}

static bool decode(struct graph *g, uint32_t at, struct insn *ret)
{
	return insn_decode(g->code.bytes + at, g->code.size - at, ret);
}

/* Returns the register that gcc saves next in a prologue, or INSN_NO_REG. */
static uint8_t saved_next(uint8_t reg)
{
	return reg > 12 && reg < INSN_NO_REG ? reg - 1
	       : reg == 12		     ? INSN_RBP
	       : reg == INSN_RBP	     ? INSN_RBX
					     : INSN_NO_REG;
}

/* Whether the code at `at` saves registers as only the first instructions of a function do: it
 * begins with a push, and the next push saves the register that gcc saves next. */
static bool saves(struct graph *g, uint32_t at)
{
	uint8_t expected = INSN_NO_REG;
	struct insn d;

	for (unsigned n = 0; n < SAVES_LOOK && at < g->code.size && decode(g, at, &d); n++) {
		if (d.op == INSN_OP_PUSH && n)
			return d.src == expected;
		if (!n)
			expected = d.op == INSN_OP_PUSH ? saved_next(d.src) : INSN_NO_REG;
		if (expected == INSN_NO_REG || d.next != INSN_NEXT_FALL)
			return false;
		at += d.len;
	}
	return false;
}

/* Whether a function may end with a call that ends at `at`: padding up to a multiple of 16 follows,
 * or, in code without padding, another function. *ret_ends: the code after the padding looks like
 * the start of a function. */
static bool pads(struct graph *g, uint32_t at, bool *ret_ends)
{
	uint32_t begin = at;
	struct insn d;

	*ret_ends = false;
	if (begin == g->code.end || saves(g, at))
		return true;
	while (at < g->code.size && at - begin < 64 && decode(g, at, &d) && d.filler)
		at += d.len;
	*ret_ends = at > begin && (g->code.address + at) % 16 == 0 && at + 4 <= g->code.size &&
		    memcmp(g->code.bytes + at, "\xf3\x0f\x1e\xfa", 4) == 0;
	return at == g->code.size || at == g->code.end || (g->code.address + at) % 16 == 0;
}

/* Whether a jump target lies in this function. It does not if another function begins there. */
static bool is_inside(const struct graph *g, int64_t target)
{
	if (target >= g->code.entry && target < g->code.end)
		return true;
	return target >= 0 && target < g->code.size &&
	       !(g->reader.begins && g->reader.begins(g->reader.ctx, target));
}

/* Decodes the new instruction at `at`. *ret_after and *ret_target are the offsets where the code
 * continues, or GRAPH_NONE. Returns 0, FLOW_* or -ENOMEM. */
static int decode_one(struct graph *g, uint32_t at, uint32_t *ret_after, uint32_t *ret_target)
{
	struct insn d;
	int64_t target;
	bool ends;
	int r = graph_grow((void **)&g->node, &g->node_cap, g->nodes + 1, sizeof(*g->node));

	if (r)
		return r;
	*ret_after = *ret_target = GRAPH_NONE;

	struct graph_node *i = &g->node[g->nodes];

	*i = (struct graph_node){ .at = at, .target = GRAPH_NONE, .after = GRAPH_NONE };
	g->index[at] = ++g->nodes;
	if (at < g->low)
		g->low = at;
	if (at >= g->high)
		g->high = at + 1;
	/* Bytes that are no instruction end the path. */
	if (!decode(g, at, &d)) {
		i->insn = (struct insn){ .len = 1, .next = INSN_NEXT_END };
		g->broken = true;
		g->broken_at = at;
		return 0;
	}
	i->insn = d;
	if (d.op == INSN_OP_LEA && d.dst == INSN_RSP && d.src != INSN_RSP && d.src != INSN_RBP)
		g->restores |= (uint16_t)(1u << d.src);
	target = (int64_t)at + d.len + d.imm;
	if (d.next == INSN_NEXT_FALL || d.next == INSN_NEXT_COND) {
		if (at < g->code.end && at + d.len >= g->code.end)
			g->fell = true;
		else
			*ret_after = at + d.len;
	}
	if (d.op == INSN_OP_CALL) {
		if (d.relative && d.imm == 0) {
			i->insn.op = INSN_OP_PUSH;
			i->insn.src = INSN_NO_REG;
			i->insn.width = 8;
			return 0;
		}
		if (d.relative && g->calls < GRAPH_CALLS)
			g->call[g->calls++] = target;
		if (d.relative && g->reader.endless && g->reader.endless(g->reader.ctx, target)) {
			i->insn.next = INSN_NEXT_END;
			*ret_after = GRAPH_NONE;
			return 0;
		}
		if (!pads(g, at + d.len, &ends))
			return 0;
		if (g->ends < GRAPH_ENDS && !ends)
			g->end[g->ends++] = at + d.len;
		if (ends || (g->flags & FLOW_NO_RETURN && at + d.len >= g->from)) {
			g->supposed = true;
			i->insn.next = INSN_NEXT_END;
			*ret_after = GRAPH_NONE;
			return 0;
		}
		i->pads = true;
	} else if (d.next == INSN_NEXT_JUMP || d.next == INSN_NEXT_COND) {
		if (is_inside(g, target)) {
			*ret_target = (uint32_t)target;
			return 0;
		}
		if (g->jumps == GRAPH_CALLS)
			return FLOW_TANGLED;
		g->jump[g->jumps++] = target;
		i->leaves = g->jumps;
		g->tail[i->leaves - 1] = false;
		if (d.next == INSN_NEXT_JUMP)
			i->insn.next = INSN_NEXT_LEAVES;
	}
	return 0;
}

static void lead(struct graph *g, uint32_t from, uint32_t to)
{
	if (g->node[to].before <= from)
		g->node[to].before = from + 1;
}

/* Decodes all code that `at` reaches. */
static int discover(struct graph *g, uint32_t at)
{
	uint32_t n = 0, offset = at;
	uint32_t before = GRAPH_NONE; /* the instruction that falls through to offset */

	for (;;) {
		if (offset == GRAPH_NONE || offset >= g->code.size) {
			if (!n)
				return 0;
			offset = g->todo[--n];
			before = GRAPH_NONE;
			continue;
		}
		uint32_t known = g->index[offset];

		if (known) {
			if (before != GRAPH_NONE) {
				g->node[before].after = known - 1;
				lead(g, before, known - 1);
				g->node[known - 1].leader = true;
			}
			offset = GRAPH_NONE;
			continue;
		}

		uint32_t after, target, i = g->nodes;
		int r = decode_one(g, offset, &after, &target);

		if (r)
			return r;
		if (before != GRAPH_NONE) {
			g->node[before].after = i;
			lead(g, before, i);
		}
		if (target != GRAPH_NONE) {
			r = graph_grow((void **)&g->todo, &g->todo_cap, n + 1, sizeof(*g->todo));
			if (r)
				return r;
			g->node[i].target = target; /* an offset until all code is decoded */
			g->todo[n++] = target;
		}
		before = i;
		offset = after;
	}
}

/* Turns targets from offsets into indices, from instruction `first` on. */
static void link_targets(struct graph *g, uint32_t first)
{
	for (uint32_t i = first; i < g->nodes; i++) {
		if (g->node[i].target == GRAPH_NONE)
			continue;
		uint32_t to = g->index[g->node[i].target] - 1;

		g->node[i].target = to;
		g->node[to].leader = true;
		lead(g, i, to);
	}
}

/* Lists the instructions that run before instruction i, nearest first, as long as there is only one
 * way to i. Returns their number. */
static uint32_t path_to(const struct graph *g, uint32_t i, uint32_t *path)
{
	uint32_t n = 0;

	for (;;) {
		path[n++] = g->node[i].at;
		if (n == JUMP_TABLE_PATH || i == 0)
			return n;
		/* Usually this instruction was decoded just before. */
		if (g->node[i - 1].after == i)
			i--;
		else if (g->node[i].before)
			i = g->node[i].before - 1;
		else
			return n;
	}
}

/* Finds the table's address if it was put into the register elsewhere: the last decoded instruction
 * that does so counts. The search is bounded, so that time stays linear in the code. */
static bool base_of(struct graph *g, uint32_t i, uint8_t reg, uint64_t *ret)
{
	for (uint32_t k = i; k-- && g->searched < SEARCH_PER_INSN * g->nodes;) {
		const struct graph_node *in = &g->node[k];

		g->searched++;
		if (in->insn.op != INSN_OP_ADDRESS || in->insn.dst != reg)
			continue;
		*ret = g->code.address + in->at + in->insn.len + (uint64_t)(int64_t)in->insn.imm;
		return true;
	}
	return false;
}

static int add_case(struct graph *g, uint32_t at)
{
	int r = graph_grow((void **)&g->target, &g->target_cap, g->targets + 1, sizeof(*g->target));

	if (!r)
		g->target[g->targets++] = at;
	return r;
}

/* Returns a bit mask of the register and of those that its value is moved to. */
static uint32_t moved_to(struct graph *g, uint8_t reg)
{
	uint32_t mask = 1u << reg;

	g->searched += g->nodes;
	for (uint32_t k = 0; k < g->nodes; k++) {
		const struct insn *in = &g->node[k].insn;

		if (in->op == INSN_OP_LEA && in->dst == reg && in->imm == 0)
			mask |= 1u << in->src;
	}
	return mask;
}

/* Assembly may put one of several labels into the register that it jumps to. This function takes
 * all labels put there, in two cases: all of the code is known to belong to the function, or
 * (FLOW_ASSEMBLY) flow.c checks that the labels arrive at the jump. */
static int take_labels(struct graph *g, uint32_t i)
{
	bool sized = g->flags & FLOW_SIZED, follow = sized || g->flags & FLOW_ASSEMBLY;
	uint32_t first = g->targets, from;

	if (g->node[i].insn.src >= 16 || g->searched >= SEARCH_PER_INSN * (uint64_t)g->nodes)
		return 0;
	from = sized ? 1u << g->node[i].insn.src : moved_to(g, g->node[i].insn.src);
	for (uint32_t k = 0; k < g->nodes && g->searched < SEARCH_PER_INSN * g->nodes; k++) {
		const struct graph_node *in = &g->node[k];
		int64_t at = (int64_t)in->at + in->insn.len + in->insn.imm;
		int r;

		g->searched++;
		if (in->insn.op != INSN_OP_ADDRESS || !(from >> in->insn.dst & 1) ||
		    (sized ? at < g->code.entry || at >= g->code.end : !is_inside(g, at)))
			continue;
		if (!follow) {
			g->labels = true;
			break;
		}
		r = add_case(g, (uint32_t)at);
		if (r)
			return r;
	}
	g->node[i].first_case = first;
	g->node[i].cases = g->targets - first;
	g->node[i].labels = g->node[i].cases > 0 && !sized;
	return 0;
}

/* Reads the table of indirect jump i. Keeps the cases that lie in the code. */
static int read_cases(struct graph *g, uint32_t i)
{
	uint32_t path[JUMP_TABLE_PATH], first = g->targets, entries[512];
	uint64_t base = 0, entry;
	struct jump_table t;

	uint32_t steps = path_to(g, i, path);

	g->steps += steps;
	bool found = jump_table_find(&g->zydis, g->code.bytes, g->code.size, g->code.address, path,
				     steps, &t);

	bool other = !t.address ||
		     (g->reader.begins &&
		      g->reader.begins(g->reader.ctx, (int64_t)(t.address - g->code.address)));
	bool callers = t.untouched && path[steps - 1] == g->code.entry;

	g->node[i].pointer = !found && ((t.pointer && other) || callers);
	if (!found)
		return take_labels(g, i);
	if (!g->reader.read || !t.bound || (!t.known && !base_of(g, i, t.base, &base)))
		return 0;
	t.address += base;
	g->entries += t.bound;
	for (uint32_t n = 0; n < t.bound; n++) {
		uint32_t in_chunk = n % (sizeof(entries) / t.width);
		uint32_t left = (t.bound - n) * t.width;
		uint32_t at;
		int r;

		if (!in_chunk &&
		    !g->reader.read(g->reader.ctx, t.address + (uint64_t)n * t.width, entries,
				    left < sizeof(entries) ? left : sizeof(entries)))
			break;
		if (t.width == 4)
			entry = t.address + (uint64_t)(int64_t)(int32_t)entries[in_chunk];
		else
			memcpy(&entry, &entries[in_chunk * 2], 8);
		entry -= g->code.address;
		at = (uint32_t)entry;
		if (entry >= g->code.size || !is_inside(g, at) ||
		    (g->targets > first && g->target[g->targets - 1] == at))
			continue;
		r = add_case(g, at);
		if (r)
			return r;
	}
	g->node[i].first_case = first;
	g->node[i].cases = g->targets - first;
	return 0;
}

/* Decodes the cases of jump i, and replaces their offsets with the numbers of nodes. */
static int discover_targets(struct graph *g, uint32_t i)
{
	for (uint32_t n = 0; n < g->node[i].cases; n++) {
		uint32_t *target = &g->target[g->node[i].first_case + n];
		uint32_t before = g->nodes;
		int r = discover(g, *target);

		if (r)
			return r;
		link_targets(g, before);
		*target = g->index[*target] - 1;
		g->node[*target].leader = true;
	}
	return 0;
}

/* Follows the cases of indirect jumps from instruction `first` on, and all code they lead to. */
static int discover_cases(struct graph *g, uint32_t first)
{
	uint32_t seen = 0;
	int r = 0;

	for (uint32_t i = first; i < g->nodes && !r; i++) {
		struct graph_node *in = &g->node[i];

		if (in->insn.next != INSN_NEXT_INDIRECT || in->insn.memory ||
		    g->targets >= MAX_TARGETS || g->entries >= MAX_ENTRIES)
			continue;
		r = read_cases(g, i);
		if (!r)
			r = discover_targets(g, i);
	}
	/* Code at a label may put other labels into the same register. */
	for (unsigned turn = 0; turn < LABEL_TURNS && g->flags & FLOW_ASSEMBLY && seen < g->nodes;
	     turn++) {
		seen = g->nodes;
		for (uint32_t i = first; i < seen && !r; i++) {
			if (!g->node[i].labels || g->targets >= MAX_TARGETS)
				continue;
			r = take_labels(g, i);
			if (!r)
				r = discover_targets(g, i);
		}
	}
	return r;
}

/* --- the graph --- */

static void clear(struct graph *g)
{
	for (uint32_t i = 0; i < g->nodes; i++)
		g->index[g->node[i].at] = 0;
	g->low = UINT32_MAX;
	g->high = g->nodes = g->calls = g->jumps = g->targets = g->pieces = g->ends = 0;
	g->entries = g->searched = 0;
	g->steps = 0;
	g->restores = 0;
	g->broken = g->fell = g->supposed = g->labels = false;
}

int graph_build(struct graph *g, const struct flow_code *code, unsigned flags, uint32_t from)
{
	clear(g);
	g->code = *code;
	if (g->code.size > g->max_code)
		g->code.size = g->max_code;
	if (g->code.end > g->code.size)
		g->code.end = g->code.size;
	g->flags = flags;
	g->from = from;
	if (g->code.entry >= g->code.end)
		return FLOW_TANGLED;

	int r = discover(g, g->code.entry);
	if (r)
		return r;
	link_targets(g, 0);
	return discover_cases(g, 0);
}

void graph_mark_called(struct graph *g)
{
	for (uint32_t n = 0; n < g->calls; n++) {
		int64_t to = g->call[n];

		if (to < 0 || to == g->code.entry || to >= g->code.size || !g->index[to])
			continue;
		g->node[g->index[to] - 1].called = g->node[g->index[to] - 1].leader = true;
	}
}

int graph_add_rest(struct graph *g)
{
	uint32_t at = g->code.entry;

	while (at < g->code.end) {
		struct insn d;
		uint32_t first = g->nodes;

		if (g->index[at]) {
			at += g->node[g->index[at] - 1].insn.len;
			continue;
		}
		if (!decode(g, at, &d)) {
			at++;
			continue;
		}
		if (d.filler) {
			at += d.len;
			continue;
		}
		if (g->pieces == GRAPH_PIECES)
			return FLOW_TANGLED;
		g->piece[g->pieces++] = at;

		int r = discover(g, at);

		if (!r)
			link_targets(g, first);
		if (!r)
			r = discover_cases(g, first);
		if (r)
			return r;
	}
	for (uint32_t n = 0; n < g->pieces; n++)
		g->node[g->index[g->piece[n]] - 1].leader = true;
	return 0;
}

uint32_t graph_end(const struct graph *g)
{
	if (!g->high)
		return 0;

	const struct graph_node *last = &g->node[g->index[g->high - 1] - 1];
	uint32_t end = last->at + last->insn.len;

	return end < g->code.size ? end : g->code.size;
}

uint64_t graph_work(const struct graph *g)
{
	return g->nodes + g->steps + g->entries + g->searched / 64;
}
