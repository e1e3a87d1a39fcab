/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles tools that ended: which tool is started again, and when (restarts.h), what the user is
 * told, and which end ends the run.
 */
#ifndef PROFPIPE_RUN_REAPER_H
#define PROFPIPE_RUN_REAPER_H

#include "tools/profpipe/run/run.h"

/* The time until a service tries again to start a prof-send that keeps ending. */
#define REAPER_SEND_AGAIN_NS 60000000000ull

/* Reaps the tools that have ended, and acts on their ends. */
void reaper_reap(struct run *r);
/* Kills a tool that waits in the kernel, and acts as if it had ended, which may take for ever.
 * Returns false, and does nothing, if RUN_LEFT_BEHIND of them have not ended. */
bool reaper_leave_behind(struct run *r, enum deploy_tool t);

#endif
