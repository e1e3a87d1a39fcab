/* SPDX-License-Identifier: Apache-2.0 */
/* The user who called sudo. As root, profpipe opens and makes files with that user's rights. */
#ifndef PROFPIPE_RUN_RIGHTS_USER_H
#define PROFPIPE_RUN_RIGHTS_USER_H

#include <stdbool.h>
#include <sys/types.h>

#define USER_GROUPS 1024

struct user {
	bool changed;
	int count;
	gid_t groups[USER_GROUPS]; /* our own identity, to be restored */
};

enum user_verdict { USER_NONE = 1 };

/* If we are root, finds the user who called sudo. Returns 0; USER_NONE: nobody did; -EINVAL:
 * SUDO_UID or SUDO_GID is not a number. */
int user_of_sudo(uid_t *ret_uid, gid_t *ret_gid);
/* If we are root: takes the file system identity of the user who called sudo. user_return must
 * follow in any case. Returns 0, -errno, or -EINVAL as user_of_sudo. */
int user_become(struct user *u);
/* Restores our identity. Keeps errno. */
void user_return(const struct user *u);

#endif
