/* SPDX-License-Identifier: Apache-2.0 */
/* By hand: a stream from standard input becomes one file. */
#ifndef PROF_EXPORT_BY_HAND_H
#define PROF_EXPORT_BY_HAND_H

#include "tools/prof-export/job.h"

/* A part of main (exits.h). */
int by_hand_run(struct job *job, const struct options *o);

#endif
