/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock (landlock(7)) limits what the calling thread and those that it starts can do with files,
 * TCP and other processes. It is used by its system calls, since there is no library, and needs
 * no_new_privs. It does not cover connecting to sockets by a path, nor files that are already open.
 */
#ifndef PROFPIPE_LANDLOCK_H
#define PROFPIPE_LANDLOCK_H

enum landlock_rights {
	LANDLOCK_NOTHING,  /* also none that only the kernel knows and this program does not */
	LANDLOCK_NO_FILES, /* only those of later versions than 8: connecting by a path */
	LANDLOCK_SOCKETS,  /* sockets with a path can be made, and removed */
	LANDLOCK_REMOVE,   /* files can be removed */
};

/* The kernel's version, 1 or more; -EOPNOTSUPP: it has none, or it is switched off. */
int landlock_version(void);
/* Leaves `rights` below the folder (NULL for the first two) and nothing else: no other files, no
 * TCP, no abstract sockets and no signals out of the domain, as far as the kernel's version goes.
 * Several domains leave only what all of them allow. 0, -EOPNOTSUPP, or -errno and nothing was
 * changed. */
int landlock_enter(enum landlock_rights rights, const char *folder);

#endif
