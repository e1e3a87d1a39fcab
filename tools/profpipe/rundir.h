/* SPDX-License-Identifier: Apache-2.0 */
/* The run's folder: where the tools' sockets are, each in a folder of the tool that listens, open
 * to the run's group to pass through. */
#ifndef PROFPIPE_RUNDIR_H
#define PROFPIPE_RUNDIR_H

#include "tools/profpipe/identity.h"

#define RUNDIR_NONE ((struct rundir){ .lock = -1 })

struct rundir {
	char path[64]; /* empty: none. Sockets below it must fit into sun_path */
	int lock;      /* the folder, locked as long as it is open; -1 */
};
/* Makes it below /run, else $TMPDIR, else /tmp. What launchers that were killed left there is
 * removed first. -errno. */
int rundir_make(struct rundir *d, const struct identity *who);
/* Removes it with the sockets in it, which their owners may have left. */
/* Removes what a tool left in its folder, if it has one: its successor makes its own sockets. */
void rundir_clean(const struct rundir *d, enum deploy_tool tool);
void rundir_remove(struct rundir *d);

#endif
