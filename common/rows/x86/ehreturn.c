/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/ehreturn.h"

#include <string.h>
#include "common/rows/x86/insn.h"

/* The value of a register: a distance from RBP, or the word loaded from there. */
struct ehreturn_value {
	enum { UNKNOWN, PLACE, LOADED } is;
	int32_t at;
};

struct ehreturn_call {
	uint32_t at, end;
	struct ehreturn_value rdi, rsi;
};

struct ehreturn_state {
	struct ehreturn_value r[16];
	/* The last calls on this path, the newest last. */
	struct ehreturn_call call[2];
	uint32_t calls;
	int32_t context; /* the context of its own frame, relative to RBP; 0: not seen */
	bool rbp_odd;	 /* RBP is not a frame pointer */
};

#define PRESERVED (1u << INSN_RBX | 1u << INSN_RBP | 0xf000) /* registers that calls preserve */

static bool is_install(const uint8_t *code, uint32_t n)
{
	/* mov rsp, rcx, as gcc and gas encode it; then the jump to the landing pad. */
	if (n < 4 || (memcmp(code, "\x48\x89\xcc", 3) != 0 && memcmp(code, "\x48\x8b\xe1", 3) != 0))
		return false;
	return code[3] == 0xc3 || (n >= 6 && memcmp(code + 3, "\x59\xff\xe1", 3) == 0);
}

static void forget(struct ehreturn_state *f, uint32_t registers)
{
	for (unsigned i = 0; i < 16; i++) {
		if (registers & 1u << i)
			f->r[i].is = UNKNOWN;
	}
}

static void take_call(struct ehreturn_state *f, uint32_t at, uint32_t end)
{
	const struct ehreturn_value rdi = f->r[INSN_RDI], rsi = f->r[INSN_RSI],
				    rdx = f->r[INSN_RDX];

	/* The arguments are the frame's CFA and its return address. */
	if (!f->context && rdi.is == PLACE && rsi.is == PLACE && rsi.at == 16 && rdx.is == LOADED &&
	    rdx.at == 8)
		f->context = rdi.at;
	f->call[0] = f->call[1];
	f->call[1] = (struct ehreturn_call){ .at = at, .end = end, .rdi = rdi, .rsi = rsi };
	f->calls += f->calls < 2;
	forget(f, ~PRESERVED);
}

/* Applies an instruction to the registers. An instruction that restores a callee-saved register is
 * part of a return. The code after it is reached on another path, so the old value is kept. */
static void take_values(struct ehreturn_state *f, const struct insn *d)
{
	const bool restored = (d->op == INSN_OP_LOAD && d->src == INSN_RBP) || d->op == INSN_OP_POP;
	const unsigned dst = d->dst;
	struct ehreturn_value v = { UNKNOWN, 0 };

	forget(f, d->clobbers);
	f->rbp_odd |= d->clobbers >> INSN_RBP & 1;
	if (d->op == INSN_OP_LEAVE || (restored && dst == INSN_RBP))
		return;
	if (d->op == INSN_OP_SWAP) {
		forget(f, 1u << (d->src & 15));
		f->rbp_odd |= d->src == INSN_RBP;
	} else if (d->op != INSN_OP_LEA && d->op != INSN_OP_LOAD && d->op != INSN_OP_POP &&
		   d->op != INSN_OP_CONST && d->op != INSN_OP_CONST_LOW &&
		   d->op != INSN_OP_ADDRESS) {
		return;
	}
	if (dst >= 16 || (restored && PRESERVED & 1u << dst))
		return;
	if (dst == INSN_RBP) {
		f->rbp_odd |= d->op != INSN_OP_LEA || d->src != INSN_RSP || d->imm;
		return;
	}
	if (d->op == INSN_OP_LEA && d->src == INSN_RBP)
		v = (struct ehreturn_value){ PLACE, d->imm };
	else if (d->op == INSN_OP_LEA && d->src < 16 && !d->imm)
		v = f->r[d->src];
	else if (d->op == INSN_OP_LOAD && d->src == INSN_RBP)
		v = (struct ehreturn_value){ LOADED, d->imm };
	f->r[dst] = v;
}

/* Checks the arguments of both calls: first (own context, other context), then (CFA, handler) of
 * the other context. Returns the place of the return address, or 0. */
static int32_t return_address(const struct ehreturn_state *f)
{
	const struct ehreturn_call *install = &f->call[0], *hook = &f->call[1];

	if (f->calls < 2 || !f->context || f->rbp_odd || install->rdi.is != PLACE ||
	    install->rdi.at != f->context || install->rsi.is != PLACE ||
	    install->rsi.at == f->context || hook->rdi.is != LOADED || hook->rsi.is != LOADED)
		return 0;

	const int64_t within = (int64_t)hook->rsi.at - install->rsi.at, ra = f->context + within;

	if (hook->rdi.at != (int64_t)hook->rsi.at - 8 || within < 8 || within > 1024 || ra >= 0 ||
	    ra < -(1 << 16))
		return 0;
	return (int32_t)ra;
}

bool ehreturn_find(const uint8_t *code, uint32_t n, struct ehreturn *ret)
{
	struct ehreturn_state f = { 0 };
	struct insn d;

	for (uint32_t at = 0; at < n; at += d.len) {
		if (f.calls && is_install(code + at, n - at)) {
			*ret = (struct ehreturn){ .from = f.call[f.calls == 1].at,
						  .to = at,
						  .ra = return_address(&f),
						  .ra_to = f.call[1].end };
			return true;
		}
		if (!insn_decode(code + at, n - at, &d))
			return false;
		if (d.op == INSN_OP_CALL)
			take_call(&f, at, at + d.len);
		else
			take_values(&f, &d);
		if (d.next == INSN_NEXT_FALL || d.next == INSN_NEXT_COND)
			continue;
		forget(&f, ~PRESERVED);
		if (d.next != INSN_NEXT_JUMP)
			f.calls = 0;
	}
	return false;
}
