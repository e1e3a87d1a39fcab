/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFPIPE_RECORD_H
#define PROFPIPE_RECORD_H

#include "tools/profpipe/options.h"

/* The two subcommands, from parsed options to the exit status. */
int record_run(const struct options *o);
int report_run(const struct options *o);

#endif
