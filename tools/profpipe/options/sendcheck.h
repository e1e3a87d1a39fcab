/* SPDX-License-Identifier: Apache-2.0 */
/* Checks options that only prof-send understands, by running `prof-send … --check`. */
#ifndef PROFPIPE_OPTIONS_SENDCHECK_H
#define PROFPIPE_OPTIONS_SENDCHECK_H

#include <stddef.h>
#include "tools/profpipe/options/otlp.h"

#define SENDCHECK_TEXT 16384
enum sendcheck_verdict { SENDCHECK_REFUSED = 1 };
/* Waits at most some seconds. Returns 0; SENDCHECK_REFUSED, with a line for each error, with reason
 * and remedy, as "--otlp: x: …"; or -errno if prof-send cannot be run. */
int sendcheck_run(const struct otlp_words *o, char ret[static SENDCHECK_TEXT]);

#endif
