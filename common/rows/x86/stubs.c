/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/stubs.h"

#include <string.h>

bool stub_bytes(const uint8_t *code, uint32_t n, uint32_t at, const char *bytes, uint32_t len)
{
	return at + len <= n && memcmp(code + at, bytes, len) == 0;
}

uint32_t stub_endbr(const uint8_t *code, uint32_t n)
{
	return stub_bytes(code, n, 0, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;
}

static struct unwind_rule by_rsp(int32_t off)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_REG,
				     .cfa_reg = UNWIND_REG_RSP,
				     .cfa_off = off,
				     .flags = UNWIND_DERIVED };
}

static void add(struct stub *s, uint32_t len, struct unwind_rule rule)
{
	s->piece[s->pieces++] = (struct stub_piece){ .len = len, .rule = rule };
	s->used += len;
}

/* The length of push x(%rip); jmp *y(%rip), with or without a bnd prefix; or 0. */
static uint32_t is_push_jump(const uint8_t *code, uint32_t n, uint32_t at)
{
	uint32_t jump = at + 6;

	if (!stub_bytes(code, n, at, "\xff\x35", 2))
		return 0;
	if (stub_bytes(code, n, jump, "\xf2", 1))
		jump++;
	return stub_bytes(code, n, jump, "\xff\x25", 2) && jump + 6 <= n ? jump + 6 - at : 0;
}

/* Matches lld's -z retpolineplt. A part of slot 0 replaces its return address with r11, so that its
 * ret jumps there. If functions are bound at start (-z now), slot 0 is only that part. */
static bool find_retpoline(const uint8_t *code, uint32_t n, struct stub *s)
{
	static const char loop[] = "\xf3\x90\x0f\xae\xe8\xeb\xf9\xcc\xcc\xcc\xcc";
	static const char jump[] = "\x4c\x89\x1c\x24\xc3", load[] = "\x4c\x8b\x1d";

	if (stub_bytes(code, n, 0, "\xe8\x0b\0\0\0", 5) && stub_bytes(code, n, 5, loop, 11) &&
	    stub_bytes(code, n, 16, jump, 5)) {
		add(s, 20, by_rsp(8));
		add(s, 1, by_rsp(16));
		return true;
	}
	/* push x(%rip); mov y(%rip), %r11; call */
	if (stub_bytes(code, n, 0, "\xff\x35", 2) && stub_bytes(code, n, 6, load, 3) &&
	    stub_bytes(code, n, 13, "\xe8\x0e\0\0\0", 5) && stub_bytes(code, n, 18, loop, 11) &&
	    stub_bytes(code, n, 32, jump, 5)) {
		add(s, 6, by_rsp(16));
		add(s, 26, by_rsp(24));
		add(s, 4, by_rsp(8));
		add(s, 1, by_rsp(16));
		return true;
	}
	/* mov y(%rip), %r11; jmp slot 0; int3 up to the next slot */
	if (stub_bytes(code, n, 0, load, 3) && stub_bytes(code, n, 7, "\xe9", 1) &&
	    stub_bytes(code, n, 12, "\xcc\xcc\xcc\xcc", 4)) {
		add(s, 12, by_rsp(8));
		return true;
	}
	/* mov y(%rip), %r11; call; jmp; push $number; jmp slot 0 */
	if (stub_bytes(code, n, 0, load, 3) && stub_bytes(code, n, 7, "\xe8", 1) &&
	    stub_bytes(code, n, 12, "\xe9", 1) && stub_bytes(code, n, 17, "\x68", 1) &&
	    stub_bytes(code, n, 22, "\xe9", 1)) {
		add(s, 22, by_rsp(8));
		add(s, 5, by_rsp(16));
		return true;
	}
	return false;
}

bool stub_is_slot_zero(const uint8_t *code, uint32_t n)
{
	return is_push_jump(code, n, stub_endbr(code, n)) > 0;
}

/* Matches slot 0, where lazy binding continues with a number on the stack. With mold, slot 0 itself
 * pushes the number, from r11. */
static bool find_slot_zero(const uint8_t *code, uint32_t n, struct stub *s)
{
	uint32_t skip = stub_endbr(code, n);
	uint32_t push = skip + (stub_bytes(code, n, skip, "\x41\x53", 2) ? 2 : 0);
	uint32_t jump = is_push_jump(code, n, push);

	if (!jump)
		return false;
	add(s, push, by_rsp(push > skip ? 8 : 16));
	add(s, 6, by_rsp(16));
	add(s, jump - 6, by_rsp(24));
	return true;
}

static bool find_slot(const uint8_t *code, uint32_t n, uint64_t address, struct stub *s)
{
	uint32_t push = stub_endbr(code, n), jump;
	int32_t to;

	if (stub_bytes(code, n, push, "\x41\x53", 2))
		push += 2;
	if (stub_bytes(code, n, push, "\xff\x25", 2))
		push += 6;
	else if (stub_bytes(code, n, push, "\xf2\xff\x25", 3))
		push += 7;
	jump = push + 5;
	if (!stub_bytes(code, n, push, "\x68", 1))
		return false;
	if (stub_bytes(code, n, jump, "\xf2", 1))
		jump++;
	if (!stub_bytes(code, n, jump, "\xe9", 1) || jump + 5 > n)
		return false;
	memcpy(&to, code + jump + 1, 4);
	s->slot = true;
	s->zero = (int64_t)jump + 5 + to;
	if (address % 16 == 0) {
		add(s, 16,
		    (struct unwind_rule){ .cfa = UNWIND_CFA_PLT,
					  .cfa_reg = UNWIND_REG_RSP,
					  .cfa_off = (int32_t)push + 5,
					  .flags = UNWIND_DERIVED });
		return true;
	}
	add(s, push + 5, by_rsp(8));
	add(s, jump - push, by_rsp(16));
	return true;
}

bool stub_find(const uint8_t *code, uint32_t n, uint64_t address, struct stub *ret)
{
	*ret = (struct stub){ 0 };
	return find_retpoline(code, n, ret) || find_slot_zero(code, n, ret) ||
	       find_slot(code, n, address, ret);
}

uint32_t stub_restorer(const uint8_t *code, uint32_t n)
{
	if (stub_bytes(code, n, 0, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9))
		return 9;
	return stub_bytes(code, n, 0, "\xb8\x0f\0\0\0\x0f\x05", 7) ? 7 : 0;
}

uint32_t stub_fiber_end(const uint8_t *code, uint32_t n)
{
	for (uint32_t call = 5; call <= 6 && call + 4 <= n; call++) {
		uint32_t at = n - 4 - call;

		if (!stub_bytes(code, n, at, "\x48\x31\xff", 3) ||
		    !(call == 5 ? stub_bytes(code, n, at + 3, "\xe8", 1)
				: stub_bytes(code, n, at + 3, "\xff\x15", 2)) ||
		    code[n - 1] != 0xf4)
			continue;
		if (at >= 4 && stub_endbr(code + at - 4, 4))
			at -= 4;
		return n - at;
	}
	return 0;
}
