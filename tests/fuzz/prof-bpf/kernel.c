/* SPDX-License-Identifier: Apache-2.0 */
/* Input: uname and /proc/kallsyms, line by line, then a NUL and bytes of the kernel's code. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "tools/prof-bpf/checks/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kernel_symbols s = { 0 };
	struct kernel_version v;
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	const size_t n = nul ? (size_t)(nul - data) : size;
	char *text = malloc(n + 1);

	if (!text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		kernel_symbols_line(&s, line);
		if (kernel_version_parse(line, line, &v)) {
			assert(v.major <= 999 && v.minor <= 999 && v.patch <= 999);
			assert(kernel_may_lock_up(&v) || !kernel_locks_up(&v));
		}
	}
	if (nul && kernel_code_locks_up(&s, nul + 1, size - n - 1))
		assert(s.object_size);
	free(text);
	return 0;
}
