/* SPDX-License-Identifier: Apache-2.0 */
/* The user who called sudo, with whose rights root opens and makes files. */
#ifndef PROFPIPE_RUN_USER_H
#define PROFPIPE_RUN_USER_H

#include <stdbool.h>
#include <sys/types.h>

#define USER_GROUPS 1024

struct user {
	bool changed;
	int count;
	gid_t groups[USER_GROUPS]; /* our own, to be restored */
};

enum user_verdict { USER_NONE = 1 };

/* Who called sudo, if we are root. 0; USER_NONE: root, or nobody did; -EINVAL: SUDO_UID or SUDO_GID
 * is no number. */
int user_of_sudo(uid_t *ret_uid, gid_t *ret_gid);
/* Becomes the user of sudo, for the file system's checks, if we are root. user_return follows in
 * any case. 0; -errno; -EINVAL as above. */
int user_become(struct user *u);
/* Keeps errno. */
void user_return(const struct user *u);

#endif
