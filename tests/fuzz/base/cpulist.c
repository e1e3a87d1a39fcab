/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of cpus. A list that is printed is the same list. */
#include "common/base/system/cpulist.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const char *text)
{
	static struct cpulist l, again;
	static char printed[8 * CPULIST_MOST];

	memset(&l, 0, sizeof(l));
	memset(&again, 0, sizeof(again));
	if (!cpulist_add(&l, text))
		return;
	if (cpulist_empty(&l) || !cpulist_print(&l, printed, sizeof(printed)) ||
	    !cpulist_add(&again, printed) || memcmp(&l, &again, sizeof(l)) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	check_list(text);
	free(text);
	return 0;
}
