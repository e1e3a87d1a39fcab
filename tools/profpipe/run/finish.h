/* SPDX-License-Identifier: Apache-2.0 */
/* The conclusion of a run: its summary and output files, after all tools have ended. */
#ifndef PROFPIPE_RUN_FINISH_H
#define PROFPIPE_RUN_FINISH_H

#include "tools/profpipe/run/run.h"

/* Prints the summary, and writes it to the file of --summary. */
void finish_run(struct run *r);
/* Gives the output and the summary their final names, or keeps the old files. */
void finish_outputs(struct run *r);

#endif
