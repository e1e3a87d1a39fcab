/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profpipe doctor: the checks of prof-bpf, made with the rights of a run, followed by a test run.
 * It prints one line for each check on standard output, or all of them as JSON.
 */
#ifndef PROFPIPE_DOCTOR_DOCTOR_H
#define PROFPIPE_DOCTOR_DOCTOR_H

#include "tools/profpipe/options/options.h"

/* A part of main (exits.h): EXITS_FAILED if a check is fatal. */
int doctor_run(const struct options *o);

#endif
