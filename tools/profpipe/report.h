/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommand `report`: has prof-symd and prof-export write a recording in another format. */
#ifndef PROFPIPE_REPORT_H
#define PROFPIPE_REPORT_H

#include "tools/profpipe/options/options.h"

/* A part of main (exits.h). */
int report_run(const struct options *o);

#endif
