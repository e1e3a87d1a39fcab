/* SPDX-License-Identifier: Apache-2.0 */
/* prof-send by hand: requests come on standard input. */
#ifndef PROF_SEND_BY_HAND_H
#define PROF_SEND_BY_HAND_H

#include "tools/prof-send/options.h"

/* A part of main (exits.h). */
int by_hand_run(const struct options *o);

#endif
