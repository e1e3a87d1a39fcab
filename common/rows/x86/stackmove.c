// SPDX-License-Identifier: Apache-2.0
#include "common/rows/x86/stackmove.h"

#include "common/rows/x86/insn.h"

static bool moves(const struct decoded *d)
{
	switch (d->op) {
	case INSN_OP_PUSH:
	case INSN_OP_POP:
	case INSN_OP_LEAVE:
		return true;
	case INSN_OP_LEA:
	case INSN_OP_LOAD:
	case INSN_OP_LOWER:
	case INSN_OP_RAISE:
	case INSN_OP_ALIGN:
		return d->dst == RSP;
	case INSN_OP_SWAP:
		return d->dst == RSP || d->src == RSP;
	default:
		return d->clobbers >> RSP & 1;
	}
}

bool stackmove_find(struct span head)
{
	struct decoded d;

	while (head.len && insn_decode(head.data, (uint32_t)head.len, &d)) {
		if (d.op == INSN_OP_CALL || d.next != INSN_NEXT_FALL)
			return false;
		if (moves(&d))
			return true;
		head.data += d.len;
		head.len -= d.len;
	}
	return false;
}
