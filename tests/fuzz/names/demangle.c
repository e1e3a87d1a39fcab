/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a name. Demangles it into a large and a small buffer: both results are terminated, within
 * bounds, and begin alike. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/demangle_leaves.h"
#include "common/names/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1);
	char large[DEMANGLE_MAX + 1], small[16];
	size_t n, m;

	if (!name)
		abort();
	if (size)
		memcpy(name, data, size);
	name[size] = '\0';
	n = demangle(name, large, sizeof(large));
	m = demangle(name, small, sizeof(small));
	if (n > DEMANGLE_MAX || strlen(large) != n || m >= sizeof(small) || strlen(small) != m ||
	    m > n || memcmp(large, small, m) != 0)
		abort();
	free(name);
	return 0;
}
