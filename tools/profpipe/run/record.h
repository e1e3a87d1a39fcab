/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands `record` and `run`: one run, from the opened outputs to the summary. */
#ifndef PROFPIPE_RUN_RECORD_H
#define PROFPIPE_RUN_RECORD_H

#include "tools/profpipe/options/options.h"
#include "tools/profpipe/options/service.h"

/* A part of main (exits.h). */
int record_run(const struct options *o);
/* The same for `run`, which runs until it is stopped. */
int record_always(const struct service *s);

#endif
