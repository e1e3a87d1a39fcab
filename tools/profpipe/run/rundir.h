/* SPDX-License-Identifier: Apache-2.0 */
/* The run's folder, which holds the tools' sockets. Each socket is in a folder of the tool that
 * listens; the run's group can pass through it. */
#ifndef PROFPIPE_RUNDIR_H
#define PROFPIPE_RUNDIR_H

#include "tools/profpipe/run/identity.h"

#define RUNDIR_NONE ((struct rundir){ .lock = -1 })

struct rundir {
	char path[64]; /* empty: none. Sockets below it must fit into sun_path */
	int lock;      /* the folder, locked as long as it is open; -1 */
};
/* Makes it below /run, else $TMPDIR, else /tmp. First removes what killed launchers left there. 0,
 * -errno. */
int rundir_make(struct rundir *d, const struct identity *who);
/* Removes what a tool left in its folder, if it has one: its successor makes its own sockets. */
void rundir_clean(const struct rundir *d, enum deploy_tool tool);
/* Removes the folder and the sockets that tools left in it. */
void rundir_remove(struct rundir *d);

#endif
