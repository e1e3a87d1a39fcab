/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test proves that samples arrive: it runs all four tools on a child process that only
 * spins and makes system calls, and checks the profile.
 */
#ifndef PROFPIPE_DOCTOR_SELFTEST_H
#define PROFPIPE_DOCTOR_SELFTEST_H

#include <stdbool.h>
#include "tools/profpipe/doctor/folded_counts.h"

#define SELFTEST_HZ 199

struct selftest {
	struct folded_counts seen;
	double seconds;	   /* duration of sampling */
	char trouble[256]; /* the error of a failed run, escaped; else empty */
};
/* Samples for half a second. If that yields too little, as on a busy or slow host, samples once
 * more for ten seconds. Returns 0, or -errno if a process could not be started. */
int selftest_run(bool ignore_unsafe_kernel, struct selftest *ret);

#endif
