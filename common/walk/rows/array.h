/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An array that the kernel's programs read (BPF_MAP_TYPE_ARRAY with BPF_F_MMAPABLE), or the same in
 * ordinary memory. Its address never changes. Pages of the map are mapped only when they are
 * needed, since mapped pages of the kernel also count as memory of this process.
 */
#ifndef COMMON_WALK_ROWS_ARRAY_H
#define COMMON_WALK_ROWS_ARRAY_H

#include <stddef.h>

struct array {
	int fd;	    /* borrowed; -1: ordinary memory */
	void *data; /* `bytes` of address space; contents are initially zero */
	size_t bytes, mapped;
};

/* Reserves the address space. Returns 0, -ENOMEM or -errno. */
int array_init(struct array *a, int fd, size_t bytes);
void array_done(struct array *a);
/* Makes at least the first `bytes` readable and writable. Returns 0 or -errno. */
int array_reach(struct array *a, size_t bytes);

#endif
