/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A root of its own with nothing in it, and no network: what is not there cannot be opened, by
 * whatever way. A tool needs the run's folder until its sockets are connected; what mounts and
 * unmounts it has the right to, and is a child of the tool's, which ends before the first foreign
 * byte. The tool itself has dropped its rights meanwhile.
 *
 *   emptyroot_prepare   with the caller's rights: namespaces of its own, and the child
 *   emptyroot_enter     the root is empty but for the folder, at its own path
 *   emptyroot_close     the folder is gone, too, and so is the child
 *
 * A caller without rights gets them within a user namespace of its own, where the kernel allows
 * that, in which it is still itself and nobody else exists.
 */
#ifndef PROFPIPE_EMPTYROOT_H
#define PROFPIPE_EMPTYROOT_H

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

/* One thread only. user: by a user namespace where rights are missing; the ids of others are then
 * not seen as what they are. folder: an absolute path, or NULL; borrowed until the end. Leaves the
 * working folder at "/". 0; -EPERM and the like: not allowed here, and nothing was changed (but for
 * a namespace, perhaps): go on without. */
int emptyroot_prepare(struct emptyroot *e, const char *folder, bool user);
/* 0; -errno: the root is what it was. */
int emptyroot_enter(struct emptyroot *e);
/* 0; -errno: the folder may still be there. Takes EMPTYROOT_NONE, too (-ENOTCONN). */
int emptyroot_close(struct emptyroot *e);

#endif
