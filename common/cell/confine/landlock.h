/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock (landlock(7)) restricts what the calling thread and its later threads can do with files,
 * TCP and other processes. There is no library for it, so this makes the system calls itself.
 * no_new_privs must be set. Landlock covers neither connecting to a socket's path nor files that
 * are already open.
 */
#ifndef COMMON_CELL_CONFINE_LANDLOCK_H
#define COMMON_CELL_CONFINE_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum landlock_rights {
	LANDLOCK_NOTHING,  /* nothing, including rights that are newer than this program */
	LANDLOCK_NO_FILES, /* only rights newer than version 8, such as connecting to a path */
	LANDLOCK_SOCKETS,  /* sockets with a path can be created and removed */
};

/* The kernel's version, 1 or more; -EOPNOTSUPP: it has none, or Landlock is switched off. */
int landlock_version(void);
/* Keeps `rights` below the folder (NULL for the first two) and nothing else: no other files, no
 * TCP, no abstract sockets, and no signals out of the domain, as far as the kernel's version covers
 * that. Several domains keep only what all of them allow. Returns 0, -EOPNOTSUPP, or another -errno
 * with nothing changed. */
int landlock_enter(enum landlock_rights rights, const char *folder);

/* --- for a process that needs some files or ports --- */

enum landlock_use {
	LANDLOCK_READ,	     /* read the file, or the files below the folder */
	LANDLOCK_KEEP_FILES, /* create, read, write, rename and remove files in the folder */
};
struct landlock_place {
	int fd; /* borrowed; may be O_PATH */
	enum landlock_use use;
};
struct landlock_allowed {
	const struct landlock_place *places;
	size_t place_count;
	const uint16_t *ports; /* TCP ports to connect to */
	size_t port_count;
	bool newest; /* also remove rights to files that are newer than this program */
};
/* Keeps what is listed and nothing else, as landlock_enter. Older versions do not cover ports.
 * Results of landlock_enter. */
int landlock_enter_allowed(const struct landlock_allowed *a);

#endif
