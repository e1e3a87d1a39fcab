/* SPDX-License-Identifier: Apache-2.0 */
/* Who the tools are: a user of its own for each, and one group for the run, out of a range that
 * nobody uses. */
#ifndef PROFPIPE_IDENTITY_H
#define PROFPIPE_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>
#include "common/cell/deploy.h"

struct identity {
	bool separate; /* false: all are who we are */
	gid_t gid;
	uid_t uid[DEPLOY_TOOLS];
	int lock; /* holds the range while open; -1 */
};
/* As root: the first range from IDENTITY_BASE on that is neither locked by another run (a byte of
 * /run/profpipe.lock) nor lived in by any process, as user or group, nor given to users' namespaces
 * by /etc/subuid or /etc/subgid, nor known by name. Otherwise everyone is who we are. -EBUSY: all
 * taken; -ENOTSUP: a root that may not change users; -ELOOP: the lock file
 * is no file of root's; -errno: it cannot be made. */
#define IDENTITY_BASE 2000000000u
#define IDENTITY_STEP 16u
#define IDENTITY_RANGES 64u
int identity_take(struct identity *ret);
/* What an error of it means, and what to do; static texts. */
const char *identity_reason(int r);
const char *identity_remedy(int r);
void identity_release(struct identity *i);

#endif
