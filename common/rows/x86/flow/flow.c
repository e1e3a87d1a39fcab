/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function's graph is run from its first instruction. The state is a frame. If paths meet, one
 * state is kept and merged with each state that arrives. The path continues only if the kept state
 * lost something. States only ever lose knowledge, so the run ends.
 */
#include "common/rows/x86/flow/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/rows/x86/flow/frame.h"
#include "common/rows/x86/flow/graph.h"

#define MAX_POINTS 8192
#define AGAIN_MAX 12
#define JUMP_TURNS 8
#define CHILD_LOOK 24 /* instructions read after clone, to recognize a child */

/* A place where paths meet. */
struct point {
	struct frame frame;
	uint32_t node;
	bool queued;
};

struct flow {
	struct point *point;
	uint32_t points;
	uint32_t *queue; /* indices of points */
	uint32_t queued;
	struct unwind_rule *rule;
	uint32_t rules, rule_cap;
	uint64_t steps, limit; /* steps of the current fixed-point iteration, and their limit */
	uint64_t work;	       /* of all runs */
	bool contradicts, foreign, misaligned, returns, rets, indirect, has_jump_frame;
	bool lost;		 /* a ret was reached with unknown RSP */
	bool ends;		 /* a path ends with a ret or a jump */
	bool nests;		 /* it calls into its own middle, after RSP was aligned */
	bool nests_wrong;	 /* such a call is made where an inner frame may look like the
				  * outermost */
	uint32_t wrong;		 /* offset of the first contradiction */
	unsigned tracked;	 /* flow_set_tracked */
	uint32_t came_back;	 /* the last call, among those with padding after it, that a path
				  * returned from */
	bool rested;		 /* code that no branch reaches was also followed */
	struct frame jump_frame; /* merged from all indirect jumps */
	struct graph graph;
};

int flow_new(uint32_t code, struct flow **ret)
{
	struct flow *f = malloc(sizeof(*f));

	if (!f)
		return -ENOMEM;
	memset(f, 0, offsetof(struct flow, graph));
	f->tracked = INSN_RBX;
	int r = graph_init(&f->graph, code);
	f->point = malloc(MAX_POINTS * sizeof(*f->point));
	f->queue = malloc(MAX_POINTS * sizeof(*f->queue));
	if (r || !f->point || !f->queue) {
		flow_free(f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

void flow_free(struct flow *f)
{
	if (!f)
		return;
	graph_done(&f->graph);
	free(f->point);
	free(f->queue);
	free(f->rule);
	free(f);
}

void flow_set_tracked(struct flow *f, unsigned tracked)
{
	f->tracked = tracked;
}

void flow_set_reader(struct flow *f, const struct flow_reader *reader)
{
	f->graph.reader = *reader;
}

/* --- running --- */

/* Records that a path arrives at node i with this frame. Merges the frame into the point's
 * state. */
static int arrive(struct flow *f, uint32_t i, const struct frame *s)
{
	struct graph_node *node = &f->graph.node[i];
	struct frame nested;

	if (node->called) {
		nested = *s;
		f->nests |= frame_enter_nest(&nested);
		s = &nested;
	}
	if (!node->state) {
		if (f->points == MAX_POINTS)
			return FLOW_TANGLED;
		f->point[f->points].frame = *s;
		f->point[f->points].node = i;
		f->point[f->points].queued = false;
		node->state = ++f->points;
		node->leader = true;
	} else if (!frame_merge(&f->point[node->state - 1].frame, s)) {
		return 0;
	}

	struct point *p = &f->point[node->state - 1];

	if (!p->queued) {
		p->queued = true;
		f->queue[f->queued++] = node->state - 1;
	}
	return 0;
}

/* Whether the code from node i on is the start of a thread made by clone. Such code pops its
 * function or argument off its stack, or clears the frame pointer. */
static bool is_child(const struct flow *f, uint32_t i)
{
	for (unsigned n = 0; n < CHILD_LOOK && i != GRAPH_NONE; n++) {
		const struct graph_node *node = &f->graph.node[i];
		const struct insn *in = &node->insn;

		if (in->op == INSN_OP_POP ||
		    (in->op == INSN_OP_CONST && in->dst == INSN_RBP && in->imm == 0))
			return true;
		if (in->op == INSN_OP_CALL || in->op == INSN_OP_SYSCALL || in->op == INSN_OP_PUSH)
			return false;
		i = in->next == INSN_NEXT_JUMP ? node->target : node->after;
	}
	return false;
}

static void contradict(struct flow *f, const struct graph_node *node)
{
	f->contradicts = true;
	f->wrong = node->at;
}

/* Whether a jump leaves the function with RSP as on entry but RBP changed. Then RBP is no
 * callee-saved register, and RSP does not point to a return address: the code is not called by C.
 * GHC's code keeps its own stack in RBP, and C's stack below it. */
static bool leaves_foreign(struct flow *f, const struct frame *s, const struct graph_node *node)
{
	if (s->life != FRAME_LIFE_PLAIN || s->reg[INSN_RSP] != SYM(CFA, -8) ||
	    s->reg[INSN_RBP] == SYM(CALLER, INSN_RBP) || sym_kind(s->reg[INSN_RBP]) == SYM_CFA)
		return false;
	f->foreign = true;
	contradict(f, node);
	return true;
}

/* Checks the state at an exit: it must be one that a function ends with. */
static void check_end(struct flow *f, const struct frame *s, const struct graph_node *node)
{
	bool at_return = s->reg[INSN_RSP] == SYM(CFA, -8);
	bool guessed = !(f->graph.flags & FLOW_TRUSTED);

	f->ends = true;
	if (s->life != FRAME_LIFE_PLAIN)
		return;
	if (node->insn.next == INSN_NEXT_RET && frame_leaves_nest(s))
		return;
	if (node->insn.next == INSN_NEXT_RET && sym_kind(s->reg[INSN_RSP]) != SYM_CFA) {
		f->lost = true;
		if (f->graph.flags & FLOW_ASSEMBLY)
			contradict(f, node);
	}
	if (node->insn.next != INSN_NEXT_RET && leaves_foreign(f, s, node))
		return;
	if (at_return && frame_load(s, SYM(CFA, -8)) == SYM(RETURN, 0) &&
	    (s->reg[INSN_RBP] == SYM(CALLER, INSN_RBP) ||
	     (!guessed && sym_kind(s->reg[INSN_RBP]) != SYM_CFA))) {
		f->returns = true;
		f->rets |= node->insn.next == INSN_NEXT_RET;
		if (node->leaves)
			f->graph.tail[node->leaves - 1] = true;
		return;
	}
	if (node->insn.next == INSN_NEXT_COND && node->leaves &&
	    sym_kind(s->reg[INSN_RSP]) == SYM_CFA && sym_off(s->reg[INSN_RSP]) < -8)
		return;
	if (guessed || (node->insn.next == INSN_NEXT_RET && sym_kind(s->reg[INSN_RSP]) == SYM_CFA &&
			!at_return))
		contradict(f, node);
}

/* Checks the alignment of a call. Compilers keep the stack aligned, unless they know that the
 * callee does not need it. A misaligned call means that no function starts here. */
static void check_call(struct flow *f, const struct frame *s)
{
	if (sym_kind(s->reg[INSN_RSP]) != SYM_CFA || sym_off(s->reg[INSN_RSP]) % 16 == 0 ||
	    s->life != FRAME_LIFE_PLAIN)
		return;
	f->misaligned = true;
	if (!(f->graph.flags & (FLOW_TRUSTED | FLOW_UNALIGNED)))
		f->contradicts = true;
}

/* Checks whether the callee may preserve this function's registers: only helpers written together
 * with it do. */
static void check_kept(struct flow *f, struct frame *s, const struct graph_node *node)
{
	const struct flow_reader *r = &f->graph.reader;
	int64_t to = (int64_t)node->at + node->insn.len + node->insn.imm;

	if (node->insn.relative && to >= 0 && to < f->graph.code.size) {
		const struct graph_node *target = graph_at(&f->graph, (uint32_t)to);

		f->nests_wrong |= target && target->called && !frame_nests_deeper(s);
	}
	if (!node->insn.relative || !r->bare || r->bare(r->ctx, to))
		return;
	for (unsigned n = 0; n < 16; n++) {
		if (s->keeps >> n & 1 && sym_kind(s->reg[n]) == SYM_CFA)
			contradict(f, node);
		if (sym_kind(s->reg[n]) == SYM_LABEL)
			s->reg[n] = SYM(UNKNOWN, 0);
	}
}

static bool is_last_syscall(uint64_t rax)
{
	return rax == SYM(CONST, 60) || rax == SYM(CONST, 231) || /* exit, exit_group */
	       rax == SYM(CONST, 15);				  /* rt_sigreturn */
}

/* Follows a jump by register to the label in it. If the register may hold any label, follows all
 * labels of the jump. */
static int run_labels(struct flow *f, const struct frame *s, const struct graph_node *node)
{
	uint64_t v = s->reg[node->insn.src];
	bool found = false;
	int r = 0;

	f->steps += node->cases;
	for (uint32_t n = 0; n < node->cases && sym_kind(v) == SYM_LABEL && !r; n++) {
		uint32_t to = f->graph.target[node->first_case + n];

		if (sym_off(v) != SYM_SOME_LABEL && (uint32_t)sym_off(v) != f->graph.node[to].at)
			continue;
		found = true;
		r = arrive(f, to, s);
	}
	if (!found)
		contradict(f, node);
	return r;
}

static int run_indirect(struct flow *f, const struct frame *s, const struct graph_node *node)
{
	int r = 0;

	f->ends |= !node->cases;
	/* After the code has left this stack, the jump goes elsewhere. */
	if (!frame_has_cfa(s))
		return 0;
	f->indirect = true;
	if (!node->cases && s->life == FRAME_LIFE_PLAIN && node->insn.src >= 16 &&
	    leaves_foreign(f, s, node))
		return 0;
	if (node->labels)
		return run_labels(f, s, node);
	if (node->cases) {
		f->steps += node->cases;
		for (uint32_t n = 0; n < node->cases && !r; n++)
			r = arrive(f, f->graph.target[node->first_case + n], s);
		return r;
	}
	/* A tail call through a pointer. */
	if (s->life == FRAME_LIFE_PLAIN && node->pointer && s->reg[INSN_RSP] == SYM(CFA, -8) &&
	    s->reg[INSN_RBP] == SYM(CALLER, INSN_RBP))
		f->returns = true;
	if (node->at < f->graph.code.entry || node->at >= f->graph.code.end)
		return 0;
	if (f->has_jump_frame)
		frame_merge(&f->jump_frame, s);
	else
		f->jump_frame = *s;
	f->has_jump_frame = true;
	return 0;
}

/* After clone, a jump that depends on the result separates parent and child. *s becomes the state
 * if it is not taken, *taken the other one. */
static void tell_apart(const struct flow *f, const struct graph_node *node, struct frame *s,
		       struct frame *taken)
{
	bool on_zero = node->insn.zero == 1;
	uint32_t child = on_zero ? node->target : node->after;
	bool is = child != GRAPH_NONE && is_child(f, child);

	*taken = *s;
	s->life = is && !on_zero ? FRAME_LIFE_CHILD : FRAME_LIFE_PLAIN;
	taken->life = is && on_zero ? FRAME_LIFE_CHILD : FRAME_LIFE_PLAIN;
}

/* Follows a direct jump. *s becomes the state in which the jump is not taken. */
static int run_branch(struct flow *f, struct frame *s, const struct graph_node *node)
{
	if (node->target == GRAPH_NONE) {
		if (node->insn.next == INSN_NEXT_COND)
			check_end(f, s, node);
		return 0;
	}
	if (s->life == FRAME_LIFE_CLONE && node->insn.zero) {
		struct frame taken;

		tell_apart(f, node, s, &taken);
		return arrive(f, node->target, &taken);
	}
	return arrive(f, node->target, s);
}

static void note_label(const struct flow *f, struct frame *s, const struct graph_node *node)
{
	int64_t to = (int64_t)node->at + node->insn.len + node->insn.imm;

	if (f->graph.flags & FLOW_ASSEMBLY && node->insn.dst < 16 && node->insn.dst != INSN_RSP &&
	    to >= 0 && to < f->graph.code.size)
		s->reg[node->insn.dst] = SYM(LABEL, to);
}

/* Whether a loop ends here that touches each page of a frame (-fstack-clash-protection). Then RSP
 * equals the register it was compared with. `last` is the instruction before the branch; NULL:
 * unknown. */
static bool is_probed(const struct insn *last, const struct insn *branch)
{
	return last && last->op == INSN_OP_COMPARE && branch->next == INSN_NEXT_COND &&
	       branch->zero == 2;
}

/* Runs from one leader to the next. */
static int run(struct flow *f, struct frame s, uint32_t i)
{
	const struct insn *last = NULL;

	for (bool first = true;; first = false) {
		struct graph_node *node = &f->graph.node[i];
		const struct insn *in = &node->insn;
		uint64_t rax = s.reg[INSN_RAX];

		if (!first && node->leader)
			return arrive(f, i, &s);
		if (++f->steps > f->limit)
			return FLOW_TANGLED;
		node->reached = true;
		if (in->next == INSN_NEXT_RET || in->next == INSN_NEXT_LEAVES ||
		    (in->next == INSN_NEXT_INDIRECT && in->memory)) {
			check_end(f, &s, node);
			return 0;
		}
		if (in->op == INSN_OP_CALL) {
			check_call(f, &s);
			if (f->graph.flags & FLOW_ASSEMBLY)
				check_kept(f, &s, node);
		}
		if (!frame_apply(&s, in))
			f->contradicts = true;
		if (in->op == INSN_OP_ADDRESS)
			note_label(f, &s, node);
		if (node->pads && node->at + in->len > f->came_back)
			f->came_back = node->at + in->len;
		if (f->contradicts || (in->op == INSN_OP_SYSCALL && is_last_syscall(rax)))
			return 0;
		if (in->next == INSN_NEXT_INDIRECT)
			return run_indirect(f, &s, node);
		if (in->next == INSN_NEXT_COND || in->next == INSN_NEXT_JUMP) {
			int r = run_branch(f, &s, node);

			if (r || in->next == INSN_NEXT_JUMP)
				return r;
			if (is_probed(last, in))
				frame_equal(&s, last->src);
		}
		if (in->next == INSN_NEXT_END)
			return 0;
		if (node->after == GRAPH_NONE) {
			/* The path falls into the next function, unless the call does not
			 * return. */
			if (in->op != INSN_OP_CALL) {
				check_end(f, &s, node);
				f->contradicts |= sym_kind(s.reg[INSN_RSP]) == SYM_CFA &&
						  s.reg[INSN_RSP] != SYM(CFA, -8) &&
						  s.life == FRAME_LIFE_PLAIN;
			}
			return 0;
		}
		last = in;
		i = node->after;
	}
}

static int settle(struct flow *f)
{
	while (f->queued && !f->contradicts) {
		struct point *p = &f->point[f->queue[--f->queued]];
		int r;

		p->queued = false;
		r = run(f, p->frame, p->node);
		if (r)
			return r;
	}
	f->queued = 0;
	return 0;
}

/* --- rules --- */

/* Stores the rule of a state. *ret is 1 + its number; 0: no rule. Returns 0 or -ENOMEM. */
static int note_rule(struct flow *f, const struct frame *s, uint32_t *ret)
{
	struct unwind_rule rule;
	int r;

	*ret = 0;
	if (!frame_rule(s, &rule))
		return 0;
	if (!f->rules || memcmp(&f->rule[f->rules - 1], &rule, sizeof(rule)) != 0) {
		r = graph_grow((void **)&f->rule, &f->rule_cap, f->rules + 1, sizeof(*f->rule));
		if (r)
			return r;
		f->rule[f->rules++] = rule;
	}
	*ret = f->rules;
	return 0;
}

static int note_rules(struct flow *f)
{
	for (uint32_t n = 0; n < f->points; n++) {
		struct frame s = f->point[n].frame;
		uint32_t i = f->point[n].node, rule = 0;
		const struct insn *last = NULL;
		bool fresh = true;

		do {
			struct graph_node *node = &f->graph.node[i];
			const struct insn *in = &node->insn;
			uint8_t life = s.life;

			if (!node->reached)
				break;
			if (fresh) {
				int r = note_rule(f, &s, &rule);

				if (r)
					return r;
			}
			node->rule = rule;
			if (in->next != INSN_NEXT_FALL && in->next != INSN_NEXT_COND)
				break;
			fresh = frame_matters(&s, in) || life != FRAME_LIFE_PLAIN;
			(void)frame_apply(&s, in);
			if (in->next == INSN_NEXT_COND && life == FRAME_LIFE_CLONE && in->zero)
				s.life = in->zero == 2 && node->after != GRAPH_NONE &&
							 is_child(f, node->after)
						 ? FRAME_LIFE_CHILD
						 : FRAME_LIFE_PLAIN;
			if (is_probed(last, in)) {
				frame_equal(&s, last->src);
				fresh = true;
			}
			last = in;
			i = node->after;
		} while (i != GRAPH_NONE && !f->graph.node[i].leader);
	}
	return 0;
}

/* --- a function --- */

/* Runs from the function's first instruction, in the state after a call. */
static int run_all(struct flow *f)
{
	struct graph *g = &f->graph;
	struct frame s;
	int r;

	f->points = f->queued = 0;
	f->work += f->steps;
	f->steps = 0;
	f->limit = 32ull * g->nodes + 16ull * g->targets + 4096;
	f->returns = f->rets = f->indirect = f->has_jump_frame = f->lost = f->ends = false;
	f->nests = f->nests_wrong = false;
	if (g->flags & FLOW_ASSEMBLY)
		graph_mark_called(g);
	for (uint32_t i = 0; i < g->nodes; i++) {
		g->node[i].state = 0;
		g->node[i].reached = false;
	}
	frame_enter(&s, f->tracked);
	if (g->flags & FLOW_ASSEMBLY)
		s.keeps = g->restores & FRAME_CALL_CLOBBERS;
	r = arrive(f, 0, &s);
	return r ? r : settle(f);
}

/* Records that bytes which are no instruction also contradict. */
static int built(struct flow *f, int r)
{
	if (f->graph.broken) {
		f->contradicts = true;
		f->wrong = f->graph.broken_at;
	}
	return r;
}

/* Follows all code that no direct branch reaches: the targets of indirect jumps. Their state is the
 * merged one of these jumps. */
static int follow_indirect(struct flow *f)
{
	f->rested = true;

	int r = built(f, graph_add_rest(&f->graph));

	if (!r)
		r = run_all(f);
	for (unsigned turn = 0; !r && !f->contradicts; turn++) {
		struct frame s = f->jump_frame;

		if (turn == JUMP_TURNS)
			return FLOW_TANGLED;
		for (uint32_t n = 0; n < f->graph.pieces && !r; n++)
			r = arrive(f, f->graph.index[f->graph.piece[n]] - 1, &s);
		if (!r)
			r = settle(f);
		if (!r && !frame_merge(&s, &f->jump_frame))
			break;
	}
	return r;
}

/* Keeps only the jumps that leave no frame behind: these go to other functions. The others were not
 * reached, or lead to a part of this function that the compiler moved elsewhere. */
static void forget_other_jumps(struct graph *g)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < g->jumps; i++) {
		if (g->tail[i])
			g->jump[kept++] = g->jump[i];
	}
	g->jumps = kept;
}

static int run_once(struct flow *f, const struct flow_code *code, unsigned flags, uint32_t from,
		    struct flow_result *ret)
{
	struct graph *g = &f->graph;

	f->points = f->queued = f->rules = f->came_back = 0;
	f->steps = 0;
	f->wrong = UINT32_MAX;
	f->rested = f->contradicts = f->foreign = f->misaligned = false;
	f->returns = f->rets = f->indirect = f->has_jump_frame = f->lost = f->ends = false;

	int r = built(f, graph_build(g, code, flags, from));
	if (!r)
		r = run_all(f);
	if (!r && flags & FLOW_SIZED && f->has_jump_frame && !f->contradicts)
		r = follow_indirect(f);
	if (r)
		return r;
	f->contradicts |= f->nests && f->nests_wrong;
	if (f->contradicts)
		return f->misaligned && !(flags & (FLOW_TRUSTED | FLOW_UNALIGNED))
			       ? FLOW_MISALIGNED
			       : FLOW_CONTRADICTS;
	r = note_rules(f);
	if (r)
		return r;
	forget_other_jumps(g);
	*ret = (struct flow_result){ .returns = f->returns,
				     .rets = f->rets,
				     .misaligned = f->misaligned,
				     .indirect = f->indirect,
				     .unread = f->has_jump_frame,
				     .endless = !f->ends && !g->jumps && !g->supposed && !g->fell,
				     .low = g->low,
				     .end = graph_end(g),
				     .call = g->call,
				     .calls = g->calls,
				     .jump = g->jump,
				     .jumps = g->jumps };
	return 0;
}

static int run_from(struct flow *f, const struct flow_code *code, unsigned flags, uint32_t from,
		    struct flow_result *ret)
{
	int r = run_once(f, code, flags, from, ret);

	f->work += f->steps + graph_work(&f->graph);
	return r;
}

bool flow_foreign(const struct flow *f)
{
	return f->foreign;
}

bool flow_by_hand(const struct flow *f)
{
	return f->graph.labels || (f->graph.restores && f->lost);
}

bool flow_fell(const struct flow *f)
{
	return f->graph.fell;
}

uint64_t flow_work(const struct flow *f)
{
	return f->work;
}

int flow_run(struct flow *f, const struct flow_code *code, unsigned flags, struct flow_result *ret)
{
	return run_from(f, code, flags, 0, ret);
}

static int falling(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x > *y ? -1 : *x < *y;
}

int flow_again(struct flow *f, struct flow_result *ret)
{
	const struct graph *g = &f->graph;
	const struct flow_code code = g->code;
	uint32_t end[GRAPH_ENDS], n = 0;
	int r = FLOW_CONTRADICTS;

	for (uint32_t i = 0; i < g->ends; i++) {
		if (g->end[i] <= f->wrong)
			end[n++] = g->end[i];
	}
	qsort(end, n, sizeof(end[0]), falling);
	for (uint32_t i = 0; i < n && i < AGAIN_MAX && r > 0; i++) {
		/* This call comes after the contradiction, which would recur. */
		if (f->contradicts && f->steps && !f->rested && f->came_back < end[i])
			continue;
		r = run_from(f, &code, g->flags | FLOW_NO_RETURN, end[i], ret);
	}
	return r;
}

bool flow_rule(const struct flow *f, uint32_t at, uint32_t *ret_len, bool *ret_known,
	       struct unwind_rule *ret)
{
	const struct graph_node *node = graph_at(&f->graph, at);

	if (!node || !node->reached)
		return false;
	*ret_len = node->insn.len;
	*ret_known = node->rule != 0;
	if (node->rule)
		*ret = f->rule[node->rule - 1];
	return true;
}

/* --- the beginning --- */

uint32_t flow_saves(const struct flow *f)
{
	const uint32_t callers = 1u << INSN_RBX | 1u << INSN_RBP | 0xf000; /* RBX, RBP, R12 to
									    * R15 */
	uint32_t n = 0, at = f->graph.code.entry;

	for (;;) {
		const struct graph_node *node = graph_at(&f->graph, at);

		if (!node)
			break;
		const struct insn *in = &node->insn;

		at += in->len;
		if (in->op == INSN_OP_PUSH && in->src < 16 && callers >> in->src & 1)
			n++;
		if (in->next != INSN_NEXT_FALL || in->op == INSN_OP_CALL)
			break;
	}
	return n;
}

bool flow_frames(const struct flow *f)
{
	uint32_t at = f->graph.code.entry;
	int64_t depth = 8;

	for (;;) {
		const struct graph_node *node = graph_at(&f->graph, at);

		if (!node)
			return false;
		const struct insn *in = &node->insn;

		at += in->len;
		if (in->op == INSN_OP_CALL)
			return depth > 8 && depth % 16 == 0;
		if (in->next != INSN_NEXT_FALL)
			return false;
		if (in->op == INSN_OP_PUSH)
			depth += in->width;
		else if (in->op == INSN_OP_LEA && in->dst == INSN_RSP && in->src == INSN_RSP)
			depth -= in->imm;
	}
}
