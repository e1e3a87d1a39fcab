/* SPDX-License-Identifier: Apache-2.0 */
/* mountinfo, in which users choose names: whatever it contains, a type ends with NUL. */
#include "tools/prof-bpf/open/opening/mounts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mounts_parser p = { 0 };

	for (size_t i = 0; i < size; i++) {
		if (!mounts_feed(&p, (char)data[i]))
			continue;
		if (strnlen(p.line.type, MOUNTS_TYPE) == MOUNTS_TYPE)
			abort();
		(void)mounts_trust(p.line.type);
	}
	return 0;
}
