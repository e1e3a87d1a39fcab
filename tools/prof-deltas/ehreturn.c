// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include "tools/prof-deltas/ehreturn.h"
#include "tools/prof-deltas/insn.h"

static bool is_install(const uint8_t *code, uint32_t n)
{
	/* mov rsp, rcx, as gcc and gas write it; then what goes to the landing pad. */
	if (n < 4 || (memcmp(code, "\x48\x89\xcc", 3) != 0 && memcmp(code, "\x48\x8b\xe1", 3) != 0))
		return false;
	return code[3] == 0xc3 || (n >= 6 && memcmp(code + 3, "\x59\xff\xe1", 3) == 0);
}

bool ehreturn_find(const uint8_t *code, uint32_t n, uint32_t *ret_from, uint32_t *ret_to)
{
	uint32_t call[2] = { 0 }, calls = 0; /* the newest ones of this path, the last one last */
	struct decoded d;

	for (uint32_t at = 0; at < n; at += d.len) {
		if (calls && is_install(code + at, n - at)) {
			*ret_from = call[calls == 1];
			*ret_to = at;
			return true;
		}
		if (!insn_decode(code + at, n - at, &d))
			return false;
		if (d.op == OP_CALL) {
			call[0] = call[1];
			call[1] = at;
			calls += calls < 2;
		} else if (d.next != NEXT_FALL && d.next != NEXT_COND && d.next != NEXT_JUMP) {
			calls = 0;
		}
	}
	return false;
}
