/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor: -1 when empty. */
#ifndef COMMON_BASE_FD_H
#define COMMON_BASE_FD_H

#include <unistd.h>

/* Closes and empties it. */
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#endif
