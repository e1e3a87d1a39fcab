// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <Zydis/Zydis.h>
#include "tools/prof-deltas/cases.h"
#include "tools/prof-deltas/flow.h"
#include "tools/prof-deltas/insn.h"

#define MAX_STATES 8192
#define MAX_SLOTS 12
#define MAX_CALLS 4096
#define MAX_ENDS 256
#define MAX_TARGETS 65536	      /* of jumps by tables, about */
#define MAX_ENTRIES (4 * MAX_TARGETS) /* read of tables */
#define SEARCH_PER_INSN 1024
#define AGAIN_MAX 12
#define NONE UINT32_MAX
#define RED_ZONE 128
#define JUMP_TURNS 8
#define CHILD_LOOK 24 /* instructions of what clone made that are looked at */

#define CALL_CLOBBERS 0x0fc7	/* rax rcx rdx rsi rdi r8-r11 */
#define SYSCALL_CLOBBERS 0x0803 /* rax rcx r11 */
static const uint8_t dwarf_of[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

enum kind {
	UNKNOWN,
	CFA,	 /* the CFA + off */
	ALIGNED, /* where RSP was when it was last set to what is not known, + off */
	CALLER,	 /* what register `off` held on entry */
	RETURN,	 /* the return address */
	CONST,
};
/* kind << 32 | off: compared as a whole. */
#define VALUE(kind, off) ((uint64_t)(kind) << 32 | (uint32_t)(off))

static enum kind kind_of(uint64_t v)
{
	return (enum kind)(v >> 32);
}

static int32_t off_of(uint64_t v)
{
	return (int32_t)(uint32_t)v;
}

struct slot {
	uint64_t place; /* CFA or ALIGNED and offset */
	uint64_t value;
};

enum life {
	LIFE_PLAIN,
	LIFE_CLONE, /* behind the system call, before it is told who is who */
	LIFE_CHILD, /* nothing called this */
	LIFE_MIXED,
};

struct state {
	uint64_t reg[16];
	struct slot slot[MAX_SLOTS];
	uint8_t slots, life;
	bool queued;
	uint32_t insn;
};

struct insn {
	uint32_t at;
	uint32_t target; /* index, of a jump inside */
	uint32_t after;	 /* index of the next one in memory; NONE: not followed */
	uint32_t state;	 /* 1 + that of a leader; 0 */
	uint32_t rule;	 /* 1 + number in rules; 0: none */
	uint32_t before; /* 1 + index of the last of those that lead here; 0 */
	int32_t imm;
	uint16_t clobbers;
	uint8_t len, op, next, dst, src, width;
	bool leader, reached;
	bool pads;    /* a call that padding follows, which is taken to come back */
	uint8_t zero; /* 1: jumps on zero; 2: on not zero */
	bool memory;  /* an indirect jump through memory at a fixed address: to another function */
	uint32_t first_case, cases; /* of an indirect jump whose table was read: in flow.target */
	uint32_t leaves;	    /* 1 + index in flow.jump of a jump out of the code; 0 */
};

struct flow {
	ZydisDecoder zydis;
	const uint8_t *code;
	uint32_t size, max_code;
	unsigned flags;
	uint64_t address; /* of code[0]: for its last digit */
	uint32_t *index;  /* of code bytes: 1 + insn; 0 */
	uint32_t dirty;	  /* bytes of index that may be set */
	struct insn *insn;
	uint32_t insns, insn_cap;
	struct state *state;
	uint32_t states;
	uint32_t *queue; /* states */
	uint32_t queued;
	uint32_t *head; /* of pieces that indirect jumps lead to: offsets */
	uint32_t *todo; /* insns to be followed, at decoding */
	uint32_t todo_cap;
	struct flow_reader reader;
	uint32_t *target; /* of jumps by tables: offsets, then insns */
	uint32_t targets, target_cap;
	struct unwind_rule *rule;
	uint32_t rules, rule_cap;
	uint32_t calls, jumps;
	uint64_t steps, limit; /* of settling */
	uint64_t work;	       /* of all runs */
	uint32_t entries;      /* that were read of tables */
	uint32_t searched;     /* instructions, for addresses of tables */
	bool contradicts, misaligned, returns, rets, indirect, has_jump_state;
	/* Behind calls that may not come back, since padding follows; and where it first went
	 * wrong.
	 */
	uint32_t end[MAX_ENDS], ends, from, wrong;
	uint32_t came_back;	 /* the last of them that a path went on behind */
	bool rested;		 /* what no branch reaches was followed, too */
	struct state jump_state; /* of all indirect jumps */
	/* Not cleared: only as far as calls and jumps are counted. */
	int64_t call[MAX_CALLS], jump[MAX_CALLS];
	bool tail[MAX_CALLS]; /* of the jumps: see forget_other_jumps */
};

int flow_new(uint32_t code, struct flow **ret)
{
	struct flow *f = malloc(sizeof(*f));

	if (!f)
		return -ENOMEM;
	memset(f, 0, offsetof(struct flow, call));
	ZydisDecoderInit(&f->zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	f->max_code = code < FLOW_MAX_CODE ? code : FLOW_MAX_CODE;
	f->index = calloc(f->max_code, sizeof(*f->index));
	f->state = malloc(MAX_STATES * sizeof(*f->state));
	f->queue = malloc(MAX_STATES * sizeof(*f->queue));
	f->head = malloc(MAX_STATES * sizeof(*f->head));
	if (!f->head || !f->index || !f->state || !f->queue) {
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
	free(f->index);
	free(f->insn);
	free(f->state);
	free(f->queue);
	free(f->head);
	free(f->todo);
	free(f->target);
	free(f->rule);
	free(f);
}

void flow_set_reader(struct flow *f, const struct flow_reader *reader)
{
	f->reader = *reader;
}

/* --- decoding --- */

static int grow(void **array, uint32_t *cap, uint32_t want, size_t item)
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

static bool decode(struct flow *f, uint32_t at, struct decoded *ret)
{
	return insn_decode(f->code + at, f->size - at, ret);
}

/* A call with padding behind it up to a multiple of 16, as the last thing of a function has. */
static bool pads(struct flow *f, uint32_t at)
{
	uint32_t begin = at;
	struct decoded d;

	while (at < f->size && at - begin < 64 && decode(f, at, &d) && d.filler)
		at += d.len;
	return at == f->size || (f->address + at) % 16 == 0;
}

/* Decodes the instruction at `at`, which is new. 0, FLOW_*, -ENOMEM. Where it goes on is put into
 * *ret_after and *ret_target (offsets; NONE). */
static int decode_one(struct flow *f, uint32_t at, uint32_t *ret_after, uint32_t *ret_target)
{
	struct decoded d;
	int64_t target;
	int r = grow((void **)&f->insn, &f->insn_cap, f->insns + 1, sizeof(*f->insn));

	if (r)
		return r;
	*ret_after = *ret_target = NONE;

	struct insn *i = &f->insn[f->insns];

	*i = (struct insn){ .at = at, .target = NONE, .after = NONE, .len = 1, .next = NEXT_END };
	f->index[at] = ++f->insns;
	if (at >= f->dirty)
		f->dirty = at + 1;
	/* What is no instruction ends the path. */
	if (!decode(f, at, &d)) {
		f->contradicts = true;
		f->wrong = at;
		return 0;
	}
	i->imm = d.imm;
	i->clobbers = d.clobbers;
	i->len = d.len;
	i->op = d.op;
	i->next = d.next;
	i->dst = d.dst;
	i->src = d.src;
	i->width = d.width;
	i->zero = d.zero;
	i->memory = d.memory;
	target = (int64_t)at + d.len + d.imm;
	if (d.next == NEXT_FALL || d.next == NEXT_COND)
		*ret_after = at + d.len;
	if (d.op == OP_CALL) {
		if (d.relative && d.imm == 0) {
			i->op = OP_PUSH;
			i->src = NO_REG;
			i->width = 8;
			return 0;
		}
		if (d.relative && f->calls < MAX_CALLS)
			f->call[f->calls++] = target;
		if (!pads(f, at + d.len))
			return 0;
		if (f->ends < MAX_ENDS)
			f->end[f->ends++] = at + d.len;
		if (f->flags & FLOW_NO_RETURN && at + d.len >= f->from) {
			i->next = NEXT_END;
			*ret_after = NONE;
			return 0;
		}
		i->pads = true;
	} else if (d.next == NEXT_JUMP || d.next == NEXT_COND) {
		if (target >= 0 && target < f->size) {
			*ret_target = (uint32_t)target;
			return 0;
		}
		if (f->jumps == MAX_CALLS)
			return FLOW_TANGLED;
		f->jump[f->jumps++] = target;
		i->leaves = f->jumps;
		f->tail[i->leaves - 1] = false;
		if (d.next == NEXT_JUMP)
			i->next = NEXT_LEAVES;
	}
	return 0;
}

static void lead(struct flow *f, uint32_t from, uint32_t to)
{
	if (f->insn[to].before <= from)
		f->insn[to].before = from + 1;
}

/* Decodes all that is reached from `at`. */
static int discover(struct flow *f, uint32_t at)
{
	uint32_t n = 0, offset = at;
	uint32_t before = NONE; /* the insn that falls through to offset */

	for (;;) {
		if (offset == NONE || offset >= f->size) {
			if (!n)
				return 0;
			offset = f->todo[--n];
			before = NONE;
			continue;
		}
		uint32_t known = f->index[offset];

		if (known) {
			if (before != NONE) {
				f->insn[before].after = known - 1;
				lead(f, before, known - 1);
				f->insn[known - 1].leader = true;
			}
			offset = NONE;
			continue;
		}

		uint32_t after, target, i = f->insns;
		int r = decode_one(f, offset, &after, &target);

		if (r)
			return r;
		if (before != NONE) {
			f->insn[before].after = i;
			lead(f, before, i);
		}
		if (target != NONE) {
			r = grow((void **)&f->todo, &f->todo_cap, n + 1, sizeof(*f->todo));
			if (r)
				return r;
			f->insn[i].target = target; /* an offset until all is decoded */
			f->todo[n++] = target;
		}
		before = i;
		offset = after;
	}
}

/* Makes indexes of targets, from insn `first` on. */
static void link_targets(struct flow *f, uint32_t first)
{
	for (uint32_t i = first; i < f->insns; i++) {
		if (f->insn[i].target == NONE)
			continue;
		uint32_t to = f->index[f->insn[i].target] - 1;

		f->insn[i].target = to;
		f->insn[to].leader = true;
		lead(f, i, to);
	}
}

/* The instructions that run before insn i, the nearest first, as far as only one way leads there.
 */
static uint32_t path_to(const struct flow *f, uint32_t i, uint32_t *path)
{
	uint32_t n = 0;

	for (;;) {
		path[n++] = f->insn[i].at;
		if (n == CASES_PATH || i == 0)
			return n;
		/* Mostly it was decoded just before. */
		if (f->insn[i - 1].after == i)
			i--;
		else if (f->insn[i].before)
			i = f->insn[i].before - 1;
		else
			return n;
	}
}

/* A table's address that was put into a register elsewhere: by the last instruction decoded that
 * does so, as far as looking for it stays linear in the code. */
static bool base_of(struct flow *f, uint32_t i, uint8_t reg, uint64_t *ret)
{
	for (uint32_t k = i; k-- && f->searched < SEARCH_PER_INSN * f->insns;) {
		const struct insn *in = &f->insn[k];

		f->searched++;
		if (in->op != OP_ADDRESS || in->dst != reg)
			continue;
		*ret = f->address + in->at + in->len + (uint64_t)(int64_t)in->imm;
		return true;
	}
	return false;
}

static int add_case(struct flow *f, uint32_t at)
{
	int r = grow((void **)&f->target, &f->target_cap, f->targets + 1, sizeof(*f->target));

	if (!r)
		f->target[f->targets++] = at;
	return r;
}

/* Assembly may put one of some labels into the register that it jumps to: all that are put there in
 * a function whose code is known to be its own. */
static int take_labels(struct flow *f, uint32_t i)
{
	uint32_t first = f->targets;

	if (!(f->flags & FLOW_SIZED) || f->insn[i].src >= 16)
		return 0;
	for (uint32_t k = 0; k < f->insns && f->searched < SEARCH_PER_INSN * f->insns; k++) {
		const struct insn *in = &f->insn[k];
		int64_t at = (int64_t)in->at + in->len + in->imm;
		int r;

		f->searched++;
		if (in->op != OP_ADDRESS || in->dst != f->insn[i].src || at < 0 || at >= f->size)
			continue;
		r = add_case(f, (uint32_t)at);
		if (r)
			return r;
	}
	f->insn[i].first_case = first;
	f->insn[i].cases = f->targets - first;
	return 0;
}

/* Reads the table of the indirect jump i: those of its cases that lie in the code. */
static int read_cases(struct flow *f, uint32_t i)
{
	uint32_t path[CASES_PATH], first = f->targets, entries[512];
	uint64_t base = 0, entry;
	struct cases_table t;

	uint32_t steps = path_to(f, i, path);

	f->work += steps;
	if (!cases_find(&f->zydis, f->code, f->size, f->address, path, steps, &t))
		return take_labels(f, i);
	if (!t.bound || (!t.known && !base_of(f, i, t.base, &base)))
		return 0;
	t.address += base;
	f->entries += t.bound;
	for (uint32_t n = 0; n < t.bound; n++) {
		uint32_t in_chunk = n % (sizeof(entries) / t.width);
		uint32_t left = (t.bound - n) * t.width;
		uint32_t at;
		int r;

		if (!in_chunk &&
		    !f->reader.read(f->reader.ctx, t.address + (uint64_t)n * t.width, entries,
				    left < sizeof(entries) ? left : sizeof(entries)))
			break;
		if (t.width == 4)
			entry = t.address + (uint64_t)(int64_t)(int32_t)entries[in_chunk];
		else
			memcpy(&entry, &entries[in_chunk * 2], 8);
		entry -= f->address;
		at = (uint32_t)entry;
		if (entry >= f->size || (f->targets > first && f->target[f->targets - 1] == at))
			continue;
		r = add_case(f, at);
		if (r)
			return r;
	}
	f->insn[i].first_case = first;
	f->insn[i].cases = f->targets - first;
	return 0;
}

/* Follows the cases of indirect jumps from insn `first` on, and of those that they lead to. */
static int discover_cases(struct flow *f, uint32_t first)
{
	for (uint32_t i = first; f->reader.read && i < f->insns; i++) {
		struct insn *in = &f->insn[i];
		int r;

		if (in->next != NEXT_INDIRECT || in->memory || f->targets >= MAX_TARGETS ||
		    f->entries >= MAX_ENTRIES)
			continue;
		r = read_cases(f, i);
		for (uint32_t n = 0; !r && n < f->insn[i].cases; n++) {
			uint32_t *target = &f->target[f->insn[i].first_case + n];
			uint32_t before = f->insns;

			r = discover(f, *target);
			if (r)
				break;
			link_targets(f, before);
			*target = f->index[*target] - 1;
			f->insn[*target].leader = true;
		}
		if (r)
			return r;
	}
	return 0;
}

/* --- states --- */

static void drop_slot(struct state *s, unsigned n)
{
	s->slot[n] = s->slot[--s->slots];
}

/* RSP is where nobody knows: the base of what is aligned, from here on. */
static void rebase(struct state *s)
{
	for (unsigned n = s->slots; n--;) {
		if (kind_of(s->slot[n].place) == ALIGNED || kind_of(s->slot[n].value) == ALIGNED)
			drop_slot(s, n);
	}
	for (unsigned r = 0; r < 16; r++) {
		if (kind_of(s->reg[r]) == ALIGNED)
			s->reg[r] = VALUE(UNKNOWN, 0);
	}
	s->reg[RSP] = VALUE(ALIGNED, 0);
}

static void set(struct state *s, unsigned reg, uint64_t v)
{
	if (reg >= 16)
		return;
	if (reg == RSP && kind_of(v) != CFA && kind_of(v) != ALIGNED)
		rebase(s);
	else
		s->reg[reg] = v;
}

static bool is_place(uint64_t v)
{
	return kind_of(v) == CFA || kind_of(v) == ALIGNED;
}

/* A place plus n bytes; unknown where that cannot be. */
static uint64_t advanced(uint64_t v, int32_t n)
{
	int32_t off;

	if (n == 0)
		return v;
	if (!is_place(v) || __builtin_add_overflow(off_of(v), n, &off) || off > 1 << 28 ||
	    off < -(1 << 28))
		return VALUE(UNKNOWN, 0);
	return VALUE(kind_of(v), off);
}

static void store(struct state *s, uint64_t place, unsigned width, uint64_t v)
{
	if (!is_place(place))
		return;
	for (unsigned n = s->slots; n--;) {
		int64_t d = (int64_t)off_of(s->slot[n].place) - off_of(place);

		if (kind_of(s->slot[n].place) == kind_of(place) && d > -8 && d < (int64_t)width)
			drop_slot(s, n);
	}
	if (width != 8 || (kind_of(v) != CFA && kind_of(v) != CALLER && kind_of(v) != RETURN) ||
	    s->slots == MAX_SLOTS)
		return;
	s->slot[s->slots++] = (struct slot){ .place = place, .value = v };
}

static uint64_t load(const struct state *s, uint64_t place)
{
	for (unsigned n = 0; n < s->slots; n++) {
		if (s->slot[n].place == place)
			return s->slot[n].value;
	}
	return VALUE(UNKNOWN, 0);
}

/* What lies below RSP is lost to a call. */
static void forget_below(struct state *s)
{
	for (unsigned n = s->slots; n--;) {
		if (kind_of(s->slot[n].place) == kind_of(s->reg[RSP]) &&
		    off_of(s->slot[n].place) < off_of(s->reg[RSP]))
			drop_slot(s, n);
	}
}

static void clobber(struct state *s, unsigned mask)
{
	for (; mask; mask &= mask - 1)
		set(s, (unsigned)__builtin_ctz(mask), VALUE(UNKNOWN, 0));
}

/* Applies one instruction. */
static void apply(struct flow *f, struct state *s, const struct insn *i)
{
	uint64_t v;

	switch (i->op) {
	case OP_PUSH:
		v = i->src < 16 ? s->reg[i->src] : VALUE(UNKNOWN, 0);
		set(s, RSP, advanced(s->reg[RSP], -(int32_t)i->width));
		store(s, s->reg[RSP], i->width, v);
		break;
	case OP_POP:
		v = load(s, s->reg[RSP]);
		if (i->width != 8)
			v = VALUE(UNKNOWN, 0);
		set(s, RSP, advanced(s->reg[RSP], i->width));
		if (kind_of(s->reg[RSP]) == CFA && off_of(s->reg[RSP]) > 0 && s->life == LIFE_PLAIN)
			f->contradicts = true;
		set(s, i->dst, v);
		break;
	case OP_LEA:
		set(s, i->dst, advanced(s->reg[i->src], i->imm));
		break;
	case OP_CONST:
		set(s, i->dst, VALUE(CONST, i->imm));
		break;
	case OP_CONST_LOW:
		v = s->reg[i->dst];
		set(s, i->dst,
		    kind_of(v) == CONST ? VALUE(CONST, (off_of(v) & ~0xff) | i->imm)
					: VALUE(UNKNOWN, 0));
		break;
	case OP_LOAD:
		v = advanced(s->reg[i->src], i->imm);
		set(s, i->dst, is_place(v) ? load(s, v) : VALUE(UNKNOWN, 0));
		break;
	case OP_STORE:
		v = i->src < 16 ? s->reg[i->src] : VALUE(UNKNOWN, 0);
		store(s, advanced(s->reg[i->dst], i->imm), i->width, v);
		break;
	case OP_LEAVE:
		v = s->reg[RBP];
		set(s, RSP, is_place(v) ? advanced(v, 8) : VALUE(UNKNOWN, 0));
		set(s, RBP, is_place(v) ? load(s, v) : VALUE(UNKNOWN, 0));
		break;
	case OP_ALIGN:
		rebase(s);
		break;
	case OP_SWAP:
		v = s->reg[i->dst];
		set(s, i->dst, s->reg[i->src]);
		set(s, i->src, v);
		break;
	case OP_CALL:
		/* Compilers keep the stack aligned: else this was not the beginning, or they know
		 * that the function called does without. */
		if (!(f->flags & (FLOW_TRUSTED | FLOW_UNALIGNED)) && kind_of(s->reg[RSP]) == CFA &&
		    off_of(s->reg[RSP]) % 16 && s->life == LIFE_PLAIN)
			f->contradicts = f->misaligned = true;
		forget_below(s);
		clobber(s, CALL_CLOBBERS);
		if (s->life == LIFE_CLONE)
			s->life = LIFE_PLAIN;
		break;
	case OP_SYSCALL:
		v = s->reg[RAX];
		clobber(s, SYSCALL_CLOBBERS);
		if (s->life == LIFE_PLAIN && (v == VALUE(CONST, 56) || v == VALUE(CONST, 435)))
			s->life = LIFE_CLONE;
		break;
	default:
		break;
	}
	clobber(s, i->clobbers);
}

/* What holds in both. True where that is less than held in `to`. */
static bool merge(struct state *to, const struct state *from)
{
	struct state old = *to, other = *from;
	bool changed = false;

	if (to->reg[RSP] != other.reg[RSP]) {
		rebase(&other);
		rebase(to);
	}
	for (unsigned r = 0; r < 16; r++) {
		if (to->reg[r] != other.reg[r])
			to->reg[r] = VALUE(UNKNOWN, 0);
		changed |= to->reg[r] != old.reg[r];
	}
	for (unsigned n = to->slots; n--;) {
		if (load(&other, to->slot[n].place) != to->slot[n].value)
			drop_slot(to, n);
	}
	if (to->life != other.life)
		to->life = LIFE_MIXED;
	return changed || to->slots != old.slots || to->life != old.life;
}

/* A path comes to insn i with this state. */
static int arrive(struct flow *f, uint32_t i, const struct state *s)
{
	struct insn *in = &f->insn[i];

	if (!in->state) {
		if (f->states == MAX_STATES)
			return FLOW_TANGLED;
		f->state[f->states] = *s;
		f->state[f->states].insn = i;
		f->state[f->states].queued = false;
		in->state = ++f->states;
		in->leader = true;
	} else if (!merge(&f->state[in->state - 1], s)) {
		return 0;
	}

	struct state *kept = &f->state[in->state - 1];

	if (!kept->queued) {
		kept->queued = true;
		f->queue[f->queued++] = in->state - 1;
	}
	return 0;
}

/* Whether the code from insn i on is what clone starts a thread with: it gets its function or the
 * argument off its stack, or clears the frame pointer. */
static bool is_child(const struct flow *f, uint32_t i)
{
	for (unsigned n = 0; n < CHILD_LOOK && i != NONE; n++) {
		const struct insn *in = &f->insn[i];

		if (in->op == OP_POP || (in->op == OP_CONST && in->dst == RBP && in->imm == 0))
			return true;
		if (in->op == OP_CALL || in->op == OP_SYSCALL || in->op == OP_PUSH)
			return false;
		i = in->next == NEXT_JUMP ? in->target : in->after;
	}
	return false;
}

/* Of the jumps that leave the code only those that were seen to leave their frame behind go to
 * another function: others lead to a part that compilers put elsewhere, or were not reached. */
static void forget_other_jumps(struct flow *f)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->jumps; i++) {
		if (f->tail[i])
			f->jump[kept++] = f->jump[i];
	}
	f->jumps = kept;
}

/* What is wrong with leaving the function in this state: nothing, or it is none. */
static void check_end(struct flow *f, const struct state *s, const struct insn *i)
{
	bool at_return = s->reg[RSP] == VALUE(CFA, -8);
	bool guessed = !(f->flags & FLOW_TRUSTED);

	if (s->life != LIFE_PLAIN)
		return;
	if (f->flags & (FLOW_STUB | FLOW_LAZY_PLT)) {
		f->returns = true;
		return;
	}
	if (at_return && load(s, VALUE(CFA, -8)) == VALUE(RETURN, 0) &&
	    (s->reg[RBP] == VALUE(CALLER, RBP) || (!guessed && kind_of(s->reg[RBP]) != CFA))) {
		f->returns = true;
		f->rets |= i->next == NEXT_RET;
		if (i->leaves)
			f->tail[i->leaves - 1] = true;
		return;
	}
	if (i->next == NEXT_COND && i->leaves && kind_of(s->reg[RSP]) == CFA &&
	    off_of(s->reg[RSP]) < -8)
		return;
	if (i->next == NEXT_RET ? (kind_of(s->reg[RSP]) == CFA && !at_return) || guessed
				: guessed) {
		f->contradicts = true;
		f->wrong = i->at;
	}
}

/* How the CFA is found, if it is. */
static bool rule_cfa(const struct state *s, struct unwind_rule *rule)
{
	/* A frame pointer holds where what was called took arguments off the stack, as V8's code
	 * does. */
	bool frame = s->reg[RBP] == VALUE(CFA, -16) &&
		     load(s, VALUE(CFA, -16)) == VALUE(CALLER, RBP);

	for (unsigned n = 0; n < 2; n++) {
		unsigned r = frame == (n == 0) ? RBP : RSP;

		if (kind_of(s->reg[r]) != CFA)
			continue;
		rule->cfa = UNWIND_CFA_REG;
		rule->cfa_reg = dwarf_of[r];
		rule->cfa_off = -off_of(s->reg[r]);
		return r != RSP || rule->cfa_off >= 0;
	}
	for (unsigned n = 0; n < s->slots; n++) {
		if (kind_of(s->slot[n].place) != ALIGNED || kind_of(s->slot[n].value) != CFA ||
		    kind_of(s->reg[RSP]) != ALIGNED)
			continue;
		rule->cfa = UNWIND_CFA_DEREF;
		rule->cfa_reg = UNWIND_REG_RSP;
		rule->cfa_off = off_of(s->slot[n].place) - off_of(s->reg[RSP]);
		rule->cfa_add = -off_of(s->slot[n].value);
		if (rule->cfa_off >= 0)
			return true;
	}
	/* Of a leaf, or RBX, which rules follow. */
	for (unsigned n = 0; n < 16; n++) {
		unsigned r = n == 0 ? RBX : n == RBX ? RAX : n;

		if (kind_of(s->reg[r]) != CFA)
			continue;
		rule->cfa = UNWIND_CFA_REG;
		rule->cfa_reg = dwarf_of[r];
		rule->cfa_off = -off_of(s->reg[r]);
		rule->cfa_add = 0;
		return true;
	}
	return false;
}

/* Runs from a leader to the next. */
static int run(struct flow *f, struct state s, uint32_t i)
{
	for (bool first = true;; first = false) {
		struct insn *in = &f->insn[i];
		uint64_t rax = s.reg[RAX];
		int r = 0;

		if (!first && in->leader)
			return arrive(f, i, &s);
		if (++f->steps > f->limit)
			return FLOW_TANGLED;
		in->reached = true;
		if (in->next == NEXT_RET || in->next == NEXT_LEAVES ||
		    (in->next == NEXT_INDIRECT && in->memory)) {
			check_end(f, &s, in);
			return 0;
		}
		apply(f, &s, in);
		if (in->pads && in->at + in->len > f->came_back)
			f->came_back = in->at + in->len;
		if (f->contradicts)
			return 0;
		if (in->op == OP_SYSCALL && (rax == VALUE(CONST, 60) || rax == VALUE(CONST, 231) ||
					     rax == VALUE(CONST, 15)))
			return 0;
		if (in->next == NEXT_INDIRECT) {
			struct unwind_rule rule = { 0 };

			/* One that has left this stack leads elsewhere. */
			if (!rule_cfa(&s, &rule))
				return 0;
			f->indirect = true;
			/* A call in place of the return: of a pointer. */
			if (!in->cases && s.life == LIFE_PLAIN && s.reg[RSP] == VALUE(CFA, -8) &&
			    s.reg[RBP] == VALUE(CALLER, RBP))
				f->returns = true;
			f->steps += in->cases;
			for (uint32_t n = 0; n < in->cases && !r; n++)
				r = arrive(f, f->target[in->first_case + n], &s);
			if (in->cases)
				return r;
			if (f->has_jump_state)
				merge(&f->jump_state, &s);
			else
				f->jump_state = s;
			f->has_jump_state = true;
			return 0;
		}
		if (in->next == NEXT_COND || in->next == NEXT_JUMP) {
			struct state taken = s;

			if (s.life == LIFE_CLONE && in->zero && in->target != NONE) {
				uint32_t child = in->zero == 1 ? in->target : in->after;
				bool is = child != NONE && is_child(f, child);

				s.life = is && in->zero == 2 ? LIFE_CHILD : LIFE_PLAIN;
				taken.life = is && in->zero == 1 ? LIFE_CHILD : LIFE_PLAIN;
			}
			if (in->target != NONE)
				r = arrive(f, in->target, &taken);
			else if (in->next == NEXT_COND)
				check_end(f, &s, in);
			if (r || in->next == NEXT_JUMP)
				return r;
		}
		if (in->next == NEXT_END)
			return 0;
		if (in->after == NONE) {
			/* Into what follows the code, which is another function, unless the call
			 * does not return. */
			if (in->op != OP_CALL) {
				check_end(f, &s, in);
				f->contradicts |= kind_of(s.reg[RSP]) == CFA &&
						  s.reg[RSP] != VALUE(CFA, -8) &&
						  s.life == LIFE_PLAIN;
			}
			return 0;
		}
		i = in->after;
	}
}

static int settle(struct flow *f)
{
	while (f->queued && !f->contradicts) {
		struct state *s = &f->state[f->queue[--f->queued]];
		int r;

		s->queued = false;
		r = run(f, *s, s->insn);
		if (r)
			return r;
	}
	f->queued = 0;
	return 0;
}

/* --- rules --- */

static bool rule_ra(const struct state *s, struct unwind_rule *rule)
{
	if (load(s, VALUE(CFA, -8)) == VALUE(RETURN, 0) &&
	    (kind_of(s->reg[RSP]) != CFA || off_of(s->reg[RSP]) <= -8)) {
		rule->ra = UNWIND_RA_CFA;
		return true;
	}
	if (rule->cfa != UNWIND_CFA_REG)
		return false;
	/* On the stack first: that is known of callers, too. Above the frame pointer where RSP was
	 * aligned. */
	uint64_t lowest = kind_of(s->reg[RSP]) == CFA ? s->reg[RSP] : s->reg[RBP];
	for (unsigned n = 0; n < s->slots; n++) {
		if (s->slot[n].value != VALUE(RETURN, 0) || kind_of(s->slot[n].place) != CFA ||
		    kind_of(lowest) != CFA || off_of(s->slot[n].place) < off_of(lowest))
			continue;
		rule->ra = UNWIND_RA_CFA_OFF;
		rule->cfa_add = off_of(s->slot[n].place);
		return true;
	}
	for (unsigned r = 0; r < 16; r++) {
		if (s->reg[r] != VALUE(RETURN, 0))
			continue;
		rule->ra = UNWIND_RA_REG;
		rule->ra_reg = dwarf_of[r];
		return true;
	}
	return false;
}

/* Where the caller's `reg` is: a CFA slot that RSP is not above, one in the red zone, one above an
 * aligned RSP. */
static bool saved(const struct state *s, unsigned reg, bool red_zone, uint64_t *ret_place)
{
	for (unsigned n = 0; n < s->slots; n++) {
		uint64_t place = s->slot[n].place, rsp = s->reg[RSP];

		if (s->slot[n].value != VALUE(CALLER, reg))
			continue;
		if (kind_of(place) == kind_of(rsp) &&
		    off_of(place) < off_of(rsp) - (red_zone ? RED_ZONE : 0))
			continue;
		*ret_place = place;
		return true;
	}
	return false;
}

static bool rule_of(const struct state *s, struct unwind_rule *ret)
{
	struct unwind_rule rule = { .flags = UNWIND_DERIVED };
	uint64_t place;

	if (s->life == LIFE_CHILD) {
		*ret = (struct unwind_rule){ .cfa = UNWIND_CFA_REG,
					     .cfa_reg = UNWIND_REG_RSP,
					     .cfa_off = 8,
					     .ra = UNWIND_RA_UNDEFINED,
					     .flags = UNWIND_DERIVED };
		return true;
	}
	if (s->life == LIFE_MIXED || !rule_cfa(s, &rule) || !rule_ra(s, &rule))
		return false;
	if (saved(s, RBP, false, &place) ||
	    (s->reg[RBP] != VALUE(CALLER, RBP) && saved(s, RBP, true, &place))) {
		if (kind_of(place) == CFA) {
			rule.rbp = UNWIND_RBP_CFA;
			rule.rbp_off = off_of(place);
		} else if (kind_of(s->reg[RSP]) == ALIGNED) {
			rule.rbp = UNWIND_RBP_DEREF_REG;
			rule.rbp_reg = UNWIND_REG_RSP;
			rule.rbp_off = off_of(place) - off_of(s->reg[RSP]);
		} else {
			rule.rbp = UNWIND_RBP_UNDEFINED;
		}
	} else if (s->reg[RBP] != VALUE(CALLER, RBP)) {
		rule.rbp = UNWIND_RBP_UNDEFINED;
	}
	if (saved(s, RBX, s->reg[RBX] != VALUE(CALLER, RBX), &place) && kind_of(place) == CFA &&
	    off_of(place) % 8 == 0 && off_of(place) < 0 && off_of(place) >= -8 * 255)
		rule.rbx = (uint8_t)(-off_of(place) / 8);
	*ret = rule;
	return true;
}

/* Whether an instruction may change what rules are made of. */
static bool matters(const struct state *s, const struct insn *i)
{
	if (i->op != OP_NONE)
		return true;
	for (unsigned mask = i->clobbers; mask; mask &= mask - 1) {
		enum kind kind = kind_of(s->reg[__builtin_ctz(mask)]);

		if (kind != UNKNOWN && kind != CONST)
			return true;
	}
	return false;
}

/* The rule of a state: 1 + its number; 0: none. 0, -ENOMEM. */
static int note_rule(struct flow *f, const struct state *s, uint32_t *ret)
{
	struct unwind_rule rule;
	int r;

	*ret = 0;
	if (!rule_of(s, &rule))
		return 0;
	if (!f->rules || memcmp(&f->rule[f->rules - 1], &rule, sizeof(rule)) != 0) {
		r = grow((void **)&f->rule, &f->rule_cap, f->rules + 1, sizeof(*f->rule));
		if (r)
			return r;
		f->rule[f->rules++] = rule;
	}
	*ret = f->rules;
	return 0;
}

static int note_rules(struct flow *f)
{
	for (uint32_t n = 0; n < f->states; n++) {
		struct state s = f->state[n];
		uint32_t i = s.insn, rule = 0;
		bool fresh = true;

		do {
			struct insn *in = &f->insn[i];

			if (!in->reached)
				break;
			if (fresh) {
				int r = note_rule(f, &s, &rule);

				if (r)
					return r;
			}
			in->rule = rule;
			if (in->next != NEXT_FALL && in->next != NEXT_COND)
				break;

			uint8_t life = s.life;

			fresh = matters(&s, in) || life != LIFE_PLAIN;
			if (in->op != OP_NONE || in->clobbers)
				apply(f, &s, in);
			if (in->next == NEXT_COND && life == LIFE_CLONE && in->zero)
				s.life = in->zero == 2 && in->after != NONE &&
							 is_child(f, in->after)
						 ? LIFE_CHILD
						 : LIFE_PLAIN;
			i = in->after;
		} while (i != NONE && !f->insn[i].leader);
	}
	return 0;
}

/* --- all of it --- */

uint32_t flow_saves(const struct flow *f)
{
	const uint32_t callers = 1u << RBX | 1u << RBP | 0xf000; /* and r12 to r15 */
	uint32_t n = 0, at = 0;

	while (at < f->size && f->index[at]) {
		const struct insn *in = &f->insn[f->index[at] - 1];

		if (in->op == OP_PUSH && in->src < 16 && callers >> in->src & 1)
			n++;
		if (in->next != NEXT_FALL || in->op == OP_CALL)
			break;
		at += in->len;
	}
	return n;
}

bool flow_frames(const struct flow *f)
{
	int64_t depth = 8;

	for (uint32_t at = 0; at < f->size && f->index[at];) {
		const struct insn *in = &f->insn[f->index[at] - 1];

		if (in->op == OP_CALL)
			return depth > 8 && depth % 16 == 0;
		if (in->next != NEXT_FALL)
			return false;
		if (in->op == OP_PUSH)
			depth += in->width;
		else if (in->op == OP_LEA && in->dst == RSP && in->src == RSP)
			depth -= in->imm;
		at += in->len;
	}
	return false;
}

uint32_t flow_padding(struct flow *f, const uint8_t *code, uint32_t size)
{
	uint32_t at = 0;
	struct decoded d;

	f->code = code;
	f->size = size;
	while (at < size) {
		if (code[at] == 0xcc || code[at] == 0x90) {
			at++;
			continue;
		}
		if (code[at] == 0 && (at + 1 == size || code[at + 1] == 0)) {
			at++;
			continue;
		}
		if (code[at] != 0x66 && code[at] != 0x0f && code[at] != 0x2e)
			break;
		if (!decode(f, at, &d) || d.filler != FILLER_NOP)
			break;
		at += d.len;
	}
	return at;
}

uint32_t flow_entry(struct flow *f, const uint8_t *code, uint32_t size, int64_t *ret_call)
{
	uint32_t at = 0;
	bool called_next = false;
	ZydisDecodedInstruction in;
	ZydisDecoderContext ctx;
	bool after_call = false;

	f->code = code;
	f->size = size < FLOW_MAX_ENTRY ? size : FLOW_MAX_ENTRY;
	while (at < f->size && ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
				       &f->zydis, &ctx, f->code + at, f->size - at, &in))) {
		bool stops = in.mnemonic == ZYDIS_MNEMONIC_HLT || in.mnemonic == ZYDIS_MNEMONIC_UD2;

		/* Another function begins behind a call that does not return. */
		if (after_call && !stops &&
		    (called_next || in.mnemonic == ZYDIS_MNEMONIC_NOP ||
		     in.mnemonic == ZYDIS_MNEMONIC_INT3 || in.mnemonic == ZYDIS_MNEMONIC_PUSH ||
		     in.mnemonic == ZYDIS_MNEMONIC_ENDBR64 || in.mnemonic == ZYDIS_MNEMONIC_SUB))
			break;
		at += in.length;
		after_call = in.meta.category == ZYDIS_CATEGORY_CALL;
		called_next = after_call && in.raw.imm[0].is_relative && in.raw.imm[0].value.s == 0;
		if (after_call && in.raw.imm[0].is_relative)
			*ret_call = (int64_t)at + in.raw.imm[0].value.s;
		if (stops || in.meta.category == ZYDIS_CATEGORY_RET ||
		    in.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
			break;
	}
	return at;
}

uint32_t flow_past(struct flow *f, const uint8_t *code, uint32_t size)
{
	uint32_t at = 0;
	struct decoded d;

	f->code = code;
	f->size = size;
	while (at < size) {
		if (!decode(f, at, &d)) {
			at++;
			continue;
		}
		at += d.len;
		if (d.next != NEXT_FALL && d.next != NEXT_COND)
			break;
	}
	return at;
}

static void reset(struct flow *f)
{
	for (uint32_t i = 0; i < f->insns; i++)
		f->index[f->insn[i].at] = 0;
	f->dirty = f->insns = f->states = f->queued = f->rules = f->calls = f->jumps = f->targets =
		f->entries = f->searched = f->came_back = 0;
	f->steps = 0;
	f->rested = false;
	f->contradicts = f->misaligned = f->returns = f->rets = f->indirect = f->has_jump_state =
		false;
}

/* Decodes what no direct branch reaches: *ret_heads pieces, whose beginnings are in f->head. */
static int discover_rest(struct flow *f, uint32_t *ret_heads)
{
	uint32_t at = 0, heads = 0;

	while (at < f->size) {
		struct decoded d;
		uint32_t first = f->insns;

		if (f->index[at]) {
			at += f->insn[f->index[at] - 1].len;
			continue;
		}
		if (!decode(f, at, &d)) {
			at++;
			continue;
		}
		if (d.filler) {
			at += d.len;
			continue;
		}
		if (heads == MAX_STATES)
			return FLOW_TANGLED;
		f->head[heads++] = at;

		int r = discover(f, at);

		if (!r)
			link_targets(f, first);
		if (!r)
			r = discover_cases(f, first);
		if (r)
			return r;
	}
	for (uint32_t n = 0; n < heads; n++)
		f->insn[f->index[f->head[n]] - 1].leader = true;
	*ret_heads = heads;
	return 0;
}

/* From the function's first instruction, as it is called. */
static int run_all(struct flow *f)
{
	struct state s = { 0 };
	int r;

	f->states = f->queued = 0;
	f->work += f->steps;
	f->steps = 0;
	f->limit = 32ull * f->insns + 16ull * f->targets + 4096;
	f->returns = f->rets = f->indirect = f->has_jump_state = false;
	for (uint32_t i = 0; i < f->insns; i++) {
		f->insn[i].state = 0;
		f->insn[i].reached = false;
	}
	s.reg[RSP] = VALUE(CFA, f->flags & FLOW_LAZY_PLT ? -16 : -8);
	s.reg[RBP] = VALUE(CALLER, RBP);
	s.reg[RBX] = VALUE(CALLER, RBX);
	s.slot[s.slots++] = (struct slot){ .place = VALUE(CFA, -8), .value = VALUE(RETURN, 0) };
	r = arrive(f, 0, &s);
	return r ? r : settle(f);
}

/* The targets of indirect jumps: what no direct branch reaches, in the state of those jumps. */
static int follow_indirect(struct flow *f)
{
	uint32_t heads = 0;
	int r;

	f->rested = true;
	r = discover_rest(f, &heads);

	if (!r)
		r = run_all(f);
	for (unsigned turn = 0; !r && !f->contradicts; turn++) {
		struct state s = f->jump_state;

		if (turn == JUMP_TURNS)
			return FLOW_TANGLED;
		for (uint32_t n = 0; n < heads && !r; n++)
			r = arrive(f, f->index[f->head[n]] - 1, &s);
		if (!r)
			r = settle(f);
		if (!r && !merge(&s, &f->jump_state))
			break;
	}
	return r;
}

static int run_once(struct flow *f, const uint8_t *code, uint32_t size, uint64_t address,
		    unsigned flags, uint32_t from, struct flow_result *ret)
{
	int r;

	reset(f);
	f->code = code;
	f->from = from;
	f->ends = 0;
	f->wrong = UINT32_MAX;
	f->size = size < f->max_code ? size : f->max_code;
	f->flags = flags;
	f->address = address;
	if (!size)
		return FLOW_CONTRADICTS;
	r = discover(f, 0);
	if (r)
		return r;
	link_targets(f, 0);
	r = discover_cases(f, 0);
	if (r)
		return r;
	r = run_all(f);
	if (!r && flags & FLOW_SIZED && f->has_jump_state && !f->contradicts)
		r = follow_indirect(f);
	if (r)
		return r;
	if (f->contradicts)
		return f->misaligned ? FLOW_MISALIGNED : FLOW_CONTRADICTS;
	r = note_rules(f);
	if (r)
		return r;

	uint32_t end = f->dirty;

	if (end)
		end = f->insn[f->index[end - 1] - 1].at + f->insn[f->index[end - 1] - 1].len;
	forget_other_jumps(f);
	*ret = (struct flow_result){ .returns = f->returns,
				     .rets = f->rets,
				     .indirect = f->indirect,
				     .end = end < f->size ? end : f->size,
				     .call = f->call,
				     .calls = f->calls,
				     .jump = f->jump,
				     .jumps = f->jumps };
	return 0;
}

static int run_from(struct flow *f, const uint8_t *code, uint32_t size, uint64_t address,
		    unsigned flags, uint32_t from, struct flow_result *ret)
{
	int r = run_once(f, code, size, address, flags, from, ret);

	f->work += f->insns + f->steps + f->entries + f->searched / 64;
	return r;
}

uint64_t flow_work(const struct flow *f)
{
	return f->work;
}

int flow_run(struct flow *f, const uint8_t *code, uint32_t size, uint64_t address, unsigned flags,
	     struct flow_result *ret)
{
	return run_from(f, code, size, address, flags, 0, ret);
}

static int falling(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x > *y ? -1 : *x < *y;
}

int flow_again(struct flow *f, struct flow_result *ret)
{
	uint32_t end[MAX_ENDS], n = 0;
	int r = FLOW_CONTRADICTS;

	for (uint32_t i = 0; i < f->ends; i++) {
		if (f->end[i] <= f->wrong)
			end[n++] = f->end[i];
	}
	qsort(end, n, sizeof(end[0]), falling);
	for (uint32_t i = 0; i < n && i < AGAIN_MAX && r > 0; i++) {
		/* It went wrong before any of those calls: so it would again. */
		if (f->contradicts && f->steps && !f->rested && f->came_back < end[i])
			continue;
		r = run_from(f, f->code, f->size, f->address, f->flags | FLOW_NO_RETURN, end[i],
			     ret);
	}
	return r;
}

bool flow_rule(const struct flow *f, uint32_t at, uint32_t *ret_len, bool *ret_known,
	       struct unwind_rule *ret)
{
	if (at >= f->size || !f->index[at])
		return false;

	const struct insn *i = &f->insn[f->index[at] - 1];

	if (!i->reached)
		return false;
	*ret_len = i->len;
	*ret_known = i->rule != 0;
	if (i->rule)
		*ret = f->rule[i->rule - 1];
	return true;
}
