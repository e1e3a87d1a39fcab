/* SPDX-License-Identifier: Apache-2.0 */
/* prof-send in a deployment: requests come from prof-export, over the bus. */
#ifndef PROF_SEND_DEPLOYED_H
#define PROF_SEND_DEPLOYED_H

#include "tools/prof-send/options.h"

/* A part of main (exits.h). */
int deployed_run(const struct options *o);

#endif
