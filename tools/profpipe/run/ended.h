/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools that ended: which is started again, and when (restarts.h), what is said of it, and which
 * end is the run's.
 */
#ifndef PROFPIPE_ENDED_H
#define PROFPIPE_ENDED_H

#include "tools/profpipe/run/run.h"

/* Looks for those that have ended, and does what is to be done. */
void ended_reap(struct run *r);

#endif
