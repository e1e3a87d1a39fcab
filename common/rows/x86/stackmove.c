/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/stackmove.h"

#include "common/rows/x86/insn.h"

/* Adds the amount by which an instruction changes RSP to *sum. Returns false if it is unknown. */
static bool add_move(const struct insn *d, int64_t *sum)
{
	switch (d->op) {
	case INSN_OP_PUSH:
		*sum -= d->width;
		return true;
	case INSN_OP_POP:
		*sum += d->width;
		return d->dst != INSN_RSP;
	case INSN_OP_LEA:
		if (d->dst == INSN_RSP)
			*sum += d->imm;
		return d->dst != INSN_RSP || d->src == INSN_RSP;
	case INSN_OP_LEAVE:
		return false;
	case INSN_OP_CONST:
	case INSN_OP_ADDRESS:
	case INSN_OP_CONST_LOW:
	case INSN_OP_LOAD:
	case INSN_OP_LOWER:
	case INSN_OP_RAISE:
	case INSN_OP_ALIGN:
		return d->dst != INSN_RSP;
	case INSN_OP_SWAP:
		return d->dst != INSN_RSP && d->src != INSN_RSP;
	default:
		return !(d->clobbers >> INSN_RSP & 1);
	}
}

bool stackmove_find(struct span head)
{
	struct insn d;
	int64_t sum = 0;

	while (head.len && insn_decode(head.data, (uint32_t)head.len, &d)) {
		if (d.op == INSN_OP_CALL || d.next != INSN_NEXT_FALL)
			break;
		if (!add_move(&d, &sum))
			return true;
		head.data += d.len;
		head.len -= d.len;
	}
	return sum != 0;
}
