/* SPDX-License-Identifier: Apache-2.0 */
/* The run's folder, which contains the tools' sockets. Each socket is in a folder of the tool that
 * listens on it; the run's group may pass through these folders. */
#ifndef PROFPIPE_RUN_CHILDREN_RUNDIR_H
#define PROFPIPE_RUN_CHILDREN_RUNDIR_H

#include "tools/profpipe/run/rights/identity.h"

#define RUNDIR_NONE ((struct rundir){ .lock = -1 })

struct rundir {
	char path[64]; /* empty: none. Paths of sockets in it must fit into sun_path */
	int lock;      /* the folder, locked while it is open; -1: none */
};
/* Makes the folder in /run, else in $TMPDIR, else in /tmp. First removes folders of killed
 * launchers. Returns 0 or -errno. */
int rundir_make(struct rundir *d, const struct identity *who);
/* Removes what an ended tool left in its folder, because its successor makes new sockets. */
void rundir_clean(const struct rundir *d, const struct identity *who, enum deploy_tool tool);
/* Removes the folder and the sockets that tools left in it. */
void rundir_remove(struct rundir *d);

#endif
