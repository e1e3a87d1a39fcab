/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock: what the calling thread, and those it starts, may still do with files, TCP and other
 * processes (landlock(7)); by its system calls, since there is no library. Needs no_new_privs.
 * Sockets that have a path are not covered, nor files that are open already.
 */
#ifndef PROFPIPE_LANDLOCK_H
#define PROFPIPE_LANDLOCK_H

enum landlock_rights {
	LANDLOCK_NOTHING,  /* nor what this program does not know and the kernel does */
	LANDLOCK_NO_FILES, /* nothing but what came after version 8: connecting by a path */
	LANDLOCK_SOCKETS,  /* sockets with a path can be made, and removed */
	LANDLOCK_REMOVE,   /* files */
};

/* The version that the kernel has, from 1 on; -EOPNOTSUPP: none, or it is switched off. */
int landlock_version(void);
/* Leaves `rights` below the folder (NULL with the first two), and nothing else: no other files,
 * no TCP, no abstract sockets and no signals out of the domain, as far as the kernel's version
 * goes. One domain adds to another: what is left is what all allow. 0, -EOPNOTSUPP, or -errno and
 * nothing was changed. */
int landlock_enter(enum landlock_rights rights, const char *folder);

#endif
