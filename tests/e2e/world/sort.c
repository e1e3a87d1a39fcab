/* SPDX-License-Identifier: Apache-2.0 */
/* Spends some seconds of cpu in libc's qsort. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(long));
}

int main(int argc, char **argv)
{
	const clock_t end = (argc > 1 ? atoi(argv[1]) : 1) * CLOCKS_PER_SEC;
	static long all[4096];

	while (clock() < end) {
		for (unsigned i = 0; i < 4096; i++)
			all[i] = (long)i * 2654435761u % 65521;
		qsort(all, 4096, sizeof(*all), compare);
	}
	return 0;
}
