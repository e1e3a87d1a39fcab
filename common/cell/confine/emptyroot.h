/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An empty root and no network for a process, so that it has no file to open. A tool needs the
 * run's folder until its sockets are connected. By then it has dropped its rights, so a child of
 * the tool keeps the right to mount and unmount. The child ends before the tool reads the first
 * foreign byte.
 *
 *   emptyroot_prepare   with the caller's rights: makes the namespaces and the child
 *   emptyroot_enter     empties the root, except for the folder at its own path
 *   emptyroot_close     removes the folder from the root and ends the child
 *
 * A caller without rights gets them in a user namespace, if the kernel allows that. There it is
 * still itself, and no other user exists.
 */
#ifndef COMMON_CELL_CONFINE_EMPTYROOT_H
#define COMMON_CELL_CONFINE_EMPTYROOT_H

#include <stdbool.h>
#include <sys/types.h>

struct emptyroot {
	int socket; /* to the child, -1 without one */
	pid_t child;
	bool network; /* its own, with nothing in it */
};
#define EMPTYROOT_NONE \
	(struct emptyroot) \
	{ \
		.socket = -1 \
	}

/* The process must have only one thread. user: use a user namespace if rights are missing; the ids
 * of other users are then invisible. folder: an absolute path, or NULL; borrowed until
 * emptyroot_close. The working folder becomes "/". Returns 0, or an error such as -EPERM if the
 * host does not allow this. Then continue without; nothing has changed, except perhaps a
 * namespace. */
int emptyroot_prepare(struct emptyroot *e, const char *folder, bool user);
/* Returns 0, or -errno with the root unchanged. */
int emptyroot_enter(struct emptyroot *e);
/* Returns 0, or -errno if the folder may still be visible; -ENOTCONN for EMPTYROOT_NONE. */
int emptyroot_close(struct emptyroot *e);

#endif
