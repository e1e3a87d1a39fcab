/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommand `record`: one run, from the opened outputs to the summary. */
#ifndef PROFPIPE_RUN_RECORD_H
#define PROFPIPE_RUN_RECORD_H

#include "tools/profpipe/options/options.h"

/* A part of main (exits.h). */
int record_run(const struct options *o);

#endif
