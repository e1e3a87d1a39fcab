/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without a launcher: who has the folder of the profiles (profiles.h) and reads no byte of the
 * stream. It opens a file and has this program write it, in a process that has no more of the
 * folder than that.
 */
#ifndef PROFPIPE_EXPORT_KEEPING_H
#define PROFPIPE_EXPORT_KEEPING_H

#include "tools/prof-export/options.h"

/* Until the writer has ended. An exit status. */
int keeping_run(const struct options *o, int argc, char **argv);

#endif
