/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor: the process that opens the output if there is no launcher. It owns the folder of
 * profiles (profiles.h) and reads no byte of the stream. A second process of this program writes
 * the file and has no access to the folder.
 */
#ifndef PROF_EXPORT_STORE_SUPERVISOR_H
#define PROF_EXPORT_STORE_SUPERVISOR_H

#include "tools/prof-export/options.h"

/* Runs a writer until it ends. A part of main (exits.h). */
int supervisor_run(const struct options *o, int argc, char **argv);

#endif
