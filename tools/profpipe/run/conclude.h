/* SPDX-License-Identifier: Apache-2.0 */
/* What a run says of itself when all tools have gone. */
#ifndef PROFPIPE_CONCLUDE_H
#define PROFPIPE_CONCLUDE_H

#include "tools/profpipe/run/run.h"

/* The summary: printed, and written where it was asked for. */
void conclude_run(struct run *r);
/* The output and the summary get their names, or what was there stays. */
void conclude_outputs(struct run *r);

#endif
