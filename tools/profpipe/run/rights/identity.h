/* SPDX-License-Identifier: Apache-2.0 */
/* The identities of the tools: one user for each tool and one group for the run, from a range of
 * ids that nobody else uses. */
#ifndef PROFPIPE_RUN_RIGHTS_IDENTITY_H
#define PROFPIPE_RUN_RIGHTS_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>
#include "common/cell/deploy.h"

struct identity {
	bool separate; /* false: all tools run as the caller */
	gid_t gid;
	uid_t uid[DEPLOY_USERS];
	int lock; /* holds the lock of the range while it is open; -1: none */
};
/* For root: takes a free range, by chance. A range is free if no run has locked it (a byte of
 * /run/profpipe.lock), no process has one of its ids, /etc/subuid and /etc/subgid give away none of
 * them, and none has a name. For other callers, `separate` is false. Returns 0; -EBUSY: none of
 * those that were tried is free; -ENOTSUP: this root may not change users; -ELOOP: the lock file is
 * not root's own file; -errno: it cannot be made. */
#define IDENTITY_BASE DEPLOY_IDS_BASE
#define IDENTITY_STEP DEPLOY_IDS_STEP
#define IDENTITY_RANGES DEPLOY_IDS_RANGES
int identity_take(struct identity *ret);
/* The reason and the remedy for an error of identity_take. Static storage. */
const char *identity_reason(int r);
const char *identity_remedy(int r);
void identity_release(struct identity *i);

#endif
