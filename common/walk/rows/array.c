/* SPDX-License-Identifier: Apache-2.0 */
#include "common/walk/rows/array.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "common/base/bytes/numbers.h"

int array_init(struct array *a, int fd, size_t bytes)
{
	*a = (struct array){ .fd = fd, .bytes = bytes };
	if (fd < 0) {
		a->data = calloc(1, bytes);
		return a->data ? 0 : -ENOMEM;
	}
	void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	a->data = at;
	return 0;
}

void array_done(struct array *a)
{
	if (a->fd < 0)
		free(a->data);
	else if (a->data)
		munmap(a->data, a->bytes);
	a->data = NULL;
}

int array_reach(struct array *a, size_t bytes)
{
	size_t wanted = a->mapped ? a->mapped : NUMBERS_PAGE;

	if (a->fd < 0 || bytes <= a->mapped)
		return 0;
	while (wanted < bytes)
		wanted *= 2;
	if (mmap(a->data, wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, a->fd, 0) ==
	    MAP_FAILED)
		return -errno;
	a->mapped = wanted;
	return 0;
}
