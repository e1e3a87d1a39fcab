/* SPDX-License-Identifier: Apache-2.0 */
/* The run's folder: where the tools' sockets are, each in a folder of the tool that listens, open to the run's group to pass through. */
#ifndef PROFPIPE_RUNDIR_H
#define PROFPIPE_RUNDIR_H

#include "tools/profpipe/identity.h"

struct rundir {
	char path[64];		/* empty: none */
};
/* Makes it below /run, else /tmp. -errno. */
int rundir_make(struct rundir *d, const struct identity *who);
/* Removes it with the sockets in it, which their owners may have left. */
void rundir_remove(struct rundir *d);

#endif
