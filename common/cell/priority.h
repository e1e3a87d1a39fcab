/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tool has before others, and after them, on a host with nothing to spare: the cpu where
 * somebody waits for it within a second; its life when memory runs out.
 */
#ifndef PROFPIPE_PRIORITY_H
#define PROFPIPE_PRIORITY_H

/* Nice -15, for the process and what it starts. Where the scheduler groups tasks by session
 * (sched(7), autogroup) that counts among the session's only, so the group gets the same, if the
 * session is this process's own. Where it may not be, all stays as it is. Before rights are
 * dropped, and before threads are started. */
void priority_raise(void);
/* The kernel that needs memory ends this process, and what it starts, rather than others: as if it
 * held so many thousandths of the host's memory more (oom_score_adj). Who asks for less than there
 * is, or may not, changes nothing. Before ids are changed. */
void priority_give_way(int thousandths);

#endif
