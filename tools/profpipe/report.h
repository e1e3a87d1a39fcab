/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFPIPE_REPORT_H
#define PROFPIPE_REPORT_H

#include "tools/profpipe/options/options.h"

/* The subcommand `report`: writes a recording in another format. A part of main (exits.h). */
int report_run(const struct options *o);

#endif
