/* SPDX-License-Identifier: Apache-2.0 */
#include "common/svm/svmcode.h"

#include <string.h>
#include "common/base/bytes/unaligned.h"

#define FRAME_MAX (1u << 20)
#define TRAP 0xcc
#define TRAPS_MIN 4u /* fewer may be part of an instruction */

static bool has(struct span code, uint32_t at, const char *bytes, uint32_t n)
{
	return at + n <= code.len && memcmp(code.data + at, bytes, n) == 0;
}

/* mov rbp, rsp, in either encoding. */
static bool sets_rbp(struct span code, uint32_t at)
{
	return has(code, at, "\x48\x89\xe5", 3) || has(code, at, "\x48\x8b\xec", 3);
}

bool svmcode_begins(struct span code, struct svmcode_frame *f)
{
	uint32_t at = 0, imm = 0;

	*f = (struct svmcode_frame){ 0 };
	if (has(code, 0, "\x55", 1)) {
		at = f->pushed = 1;
		if (sets_rbp(code, at))
			at += 3;
	}
	if (has(code, at, "\x48\x83\xec", 3) && at + 4 <= code.len) {
		imm = 1;
		f->size = code.data[at + 3];
	} else if (has(code, at, "\x48\x81\xec", 3) && at + 7 <= code.len) {
		imm = 4;
		f->size = unaligned_u32(code.data + at + 3);
	}
	/* At a call, RSP is a multiple of 16. */
	if (!imm || f->size > FRAME_MAX || (imm == 1 && f->size > INT8_MAX) ||
	    (f->size + 8 + (f->pushed ? 8 : 0)) % 16)
		return false;
	/* The `add` differs in one byte: its ModRM. */
	f->add_len = (uint8_t)(3 + imm);
	memcpy(f->add, code.data + at, f->add_len);
	f->add[2] = 0xc4;
	f->begins = (uint8_t)(at + f->add_len);
	if (!f->pushed && imm == 1 && sets_rbp(code, f->begins)) {
		f->based = f->begins + 3;
		memcpy(f->add, "\x48\x8d\x65", 3);
	}
	return true;
}

/* Returns the bytes of a ret, or of a jump, which may leave the method; 0: it is neither. */
static uint32_t leaves(const uint8_t *p, size_t n)
{
	if (n >= 1 && p[0] == 0xc3)
		return 1;
	if (n >= 2 && p[0] == 0xeb)
		return 2;
	if (n >= 5 && p[0] == 0xe9)
		return 5;
	/* jmp with ModRM /4: a register, or [register + displacement]. */
	const uint32_t rex = n >= 1 && (p[0] & 0xf0) == 0x40;

	if (n < rex + 2 || p[rex] != 0xff || (p[rex + 1] >> 3 & 7) != 4)
		return 0;
	const unsigned mod = p[rex + 1] >> 6, sib = mod != 3 && (p[rex + 1] & 7) == 4;

	return rex + 2 + sib + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

bool svmcode_exit(struct span code, const struct svmcode_frame *f, uint32_t from,
		  struct svmcode_exit *ret)
{
	for (size_t at = from; at < code.len;) {
		const uint8_t *hit = memmem(code.data + at, code.len - at, f->add, f->add_len);

		if (!hit)
			return false;
		at = (size_t)(hit - code.data) + f->add_len;
		ret->popped = ret->ret = (uint32_t)at;
		if (f->pushed && !has(code, ret->ret++, "\x5d", 1))
			continue;
		const uint32_t n = ret->ret <= code.len
					   ? leaves(code.data + ret->ret, code.len - ret->ret)
					   : 0;

		ret->end = ret->ret + n;
		if (n && ret->end <= code.len)
			return true;
	}
	return false;
}

bool svmcode_is_trap(uint8_t byte)
{
	return byte == TRAP;
}

uint32_t svmcode_padding(struct span code)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < code.len; i++) {
		if (run >= TRAPS_MIN && i % SVMCODE_ALIGNMENT == 0)
			return i - run;
		run = svmcode_is_trap(code.data[i]) ? run + 1 : 0;
	}
	return (uint32_t)code.len;
}
