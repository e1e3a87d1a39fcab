/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cpu for tools that somebody waits for within a second, on a host with nothing to spare.
 */
#ifndef PROFPIPE_PRIORITY_H
#define PROFPIPE_PRIORITY_H

/* Nice -15, for the process and what it starts. Where the scheduler groups tasks by session
 * (sched(7), autogroup) that counts among the session's only, so the group gets the same, if the
 * session is this process's own. Where it may not be, all stays as it is. Before rights are
 * dropped, and before threads are started. */
void priority_raise(void);

#endif
