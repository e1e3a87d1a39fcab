/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommand `report`: converts a recording with prof-symd and prof-export. */
#ifndef PROFPIPE_REPORT_H
#define PROFPIPE_REPORT_H

#include "tools/profpipe/options/options.h"

/* A part of main (exits.h). */
int report_run(const struct options *o);

#endif
