/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host allows: the checks of prof-bpf, made with the rights that it would have in a run,
 * and then a run, for the proof. One line each on standard output, or all as JSON.
 */
#ifndef PROFPIPE_DOCTOR_H
#define PROFPIPE_DOCTOR_H

#include "tools/profpipe/options.h"

/* The exit status: 1 when something is fatal. */
int doctor_run(const struct options *o);

#endif
