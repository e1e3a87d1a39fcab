/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/lispcall.h"

#include <string.h>

/* Returns the offset of the first match of `bytes` from offset `from` on, or UINT32_MAX. */
static uint32_t find(struct span code, uint32_t from, const void *bytes, size_t len)
{
	const uint8_t *at = from <= code.len ? memmem(code.data + from, code.len - from, bytes, len)
					     : NULL;

	return at ? (uint32_t)(at - code.data) : UINT32_MAX;
}

bool lispcall_find(struct span code, struct lispcall *ret)
{
	if (find(code, 0, "\x55\x55\x48\x89\xe5", LISPCALL_FRAME) != 0)
		return false;
	const uint32_t call = find(code, LISPCALL_FRAME, "\xff\x50\xfd", 3);
	const uint32_t leave = call == UINT32_MAX ? call : find(code, call + 3, "\xc9\xc3", 2);

	if (leave == UINT32_MAX)
		return false;
	*ret = (struct lispcall){ .call = call, .ret = leave + 1 };
	return true;
}
