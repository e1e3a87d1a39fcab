/* SPDX-License-Identifier: Apache-2.0 */
/* Names of cgroups, which users choose where they may make cgroups, and lists of cpus. The id of a
 * container is a whole run of digits in its name; a list that is printed is the same list. */
#include "common/cell/cgrouptree.h"

#include <stdlib.h>
#include <string.h>
#include "common/base/cpulist.h"

#define DIGITS "0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_id(const char *name, size_t len)
{
	const char *id = NULL;
	const size_t n = cgrouptree_container(name, &id);

	if (!n)
		return;
	if (n < TARGETS_ID_LEAST || id < name || id + n > name + len || strspn(id, DIGITS) != n ||
	    (id > name && strchr(DIGITS, id[-1])))
		abort();
	/* It is the last one. */
	const char *later = NULL;

	if (cgrouptree_container(id + n, &later))
		abort();
}

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
	check_id(text, strlen(text));
	check_list(text);
	free(text);
	return 0;
}
