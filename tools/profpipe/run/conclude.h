/* SPDX-License-Identifier: Apache-2.0 */
/* The conclusion: the last words and files of a run, when all tools have gone. */
#ifndef PROFPIPE_RUN_CONCLUDE_H
#define PROFPIPE_RUN_CONCLUDE_H

#include "tools/profpipe/run/run.h"

/* Prints the summary, and writes it to the file of --summary. */
void conclude_run(struct run *r);
/* Gives the output and the summary their names, or leaves the old files there. */
void conclude_outputs(struct run *r);

#endif
