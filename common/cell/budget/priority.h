/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool's priority on a busy host: cpu time for tools that must answer within a second, and which
 * process the kernel kills when memory runs out.
 */
#ifndef COMMON_CELL_BUDGET_PRIORITY_H
#define COMMON_CELL_BUDGET_PRIORITY_H

/* Sets nice -15 for the calling thread only; threads and processes that it starts later have normal
 * priority. If the scheduler groups tasks by session (sched(7), autogroup), nice counts only within
 * the session. So the group also gets -15, if this process leads the session. Does nothing without
 * permission. Call it before rights are dropped and before threads start. */
void priority_raise(void);
/* Asks the kernel to kill this process and its children first when memory runs out. The kernel then
 * treats them as if they used this much more of the host's memory, in thousandths (oom_score_adj).
 * Never lowers the value, and does nothing without permission. Call it before ids change. */
void priority_give_way(int thousandths);

#endif
