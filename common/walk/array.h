/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An array that the kernel's programs read (BPF_MAP_TYPE_ARRAY with BPF_F_MMAPABLE), or the same in
 * ordinary memory. Its address stands from the beginning on; pages of the map come as they are
 * needed, since what the kernel has of it counts for us, too, once it is mapped.
 */
#ifndef PROFPIPE_ARRAY_H
#define PROFPIPE_ARRAY_H

#include <stddef.h>

struct array {
	int fd;	    /* borrowed; -1: ordinary memory */
	void *data; /* of `bytes` of address space, zeros */
	size_t bytes, mapped;
};

/* 0, -ENOMEM, -errno. */
int array_init(struct array *a, int fd, size_t bytes);
void array_done(struct array *a);
/* Makes the front of it, at least so many bytes, readable and writable. 0, -errno. */
int array_reach(struct array *a, size_t bytes);

#endif
