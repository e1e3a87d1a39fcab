/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Stubs between C code and code that a JIT generated, which has no fixed layout (TABLES_RULE_STUB).
 * CPython's JIT makes one before each trace:
 *
 *     push REGISTER...; mov...; call TRACE; [add rsp, N;] pop REGISTER...; ret
 * TRACE:
 *
 * Traces jump to each other, and their frames are small and change from one instruction to the
 * next. So the walk searches for the stub's return address close above RSP. It is recognized by two
 * facts: the call before it leads to the first byte after the stub, and the stub returns to code
 * with rows. No other code is known to do so.
 *
 * The functions are global, for the reason given in search.h.
 */
#ifndef BPF_WALK_STUB_H
#define BPF_WALK_STUB_H

#include "bpf/walk/owner.h"

#define STUB_POPS 7 /* at most */
/* The parts of the results of these functions, in bytes. RBX_AT, RBP_AT: from the word with the
 * return address up to the saved register; 0: not saved. SIZE: from the end of that word to the
 * stub's own return address. AT: from RSP up to the word. */
#define STUB_SIZE(stub) ((stub)&0xff)
#define STUB_RBX_AT(stub) ((stub) >> 8 & 0xff)
#define STUB_RBP_AT(stub) ((stub) >> 16 & 0xff)
#define STUB_AT(stub) ((stub) >> 32)

/* Returns how many bytes the end of a stub pops, if code returns to the stub at `back`; 0: it is
 * not a stub. */
ENV_FUNCTION __u64 stub_behind(__u64 back)
{
	__u64 code[3], size, rbx = 0, rbp = 0, length;

	if (env_read_user(code, sizeof(code), back - 8))
		return 0;
	__u64 low = code[1], high = code[2], target = code[0] >> 32;
	/* add rsp, N */
	__u64 add = OWNER_SAME(low & 0xffffff, 0xc48348);

	size = (low >> 24 & 0x78) & -add;
	length = add * 4;
	low = (low & (add - 1)) | ((code[1] >> 32 | code[2] << 32) & -add);
	high = (high & (add - 1)) | (code[2] >> 32 & -add);
	for (int i = 0; i < STUB_POPS; i++) {
		__u64 rex = OWNER_SAME(low & 0xff, 0x41), op = low >> rex * 8 & 0xff;
		__u64 pops = OWNER_SAME(op & 0xf8, 0x58), shift = pops * (8 + rex * 8);

		rbx |= (size + 8) & -(OWNER_SAME(op, 0x5b) & ~rex & 1);
		rbp |= (size + 8) & -(OWNER_SAME(op, 0x5d) & ~rex & 1);
		size += pops * 8;
		length += shift / 8;
		low = low >> shift | high << 1 << (63 - shift);
		high >>= shift;
	}
	if ((code[0] >> 24 & 0xff) != 0xe8 || (low & 0xff) != 0xc3 || target != length + 1 || !size)
		return 0;
	return size | rbx << 8 | rbp << 16;
}

#endif
