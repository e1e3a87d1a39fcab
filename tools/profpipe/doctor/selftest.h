/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test proves that samples arrive: it runs all four tools on a child that only spins and
 * calls the kernel, and looks at the profile.
 */
#ifndef PROFPIPE_DOCTOR_SELFTEST_H
#define PROFPIPE_DOCTOR_SELFTEST_H

#include <stdbool.h>
#include "tools/profpipe/doctor/tally.h"

#define SELFTEST_HZ 199

struct selftest {
	struct tally seen;
	double seconds;	   /* of sampling */
	char trouble[256]; /* the error of a failed run, escaped; else empty */
};
/* Runs for half a second. If that shows too little, as on a busy or slow host, runs once more for
 * ten seconds. 0; -errno if the processes could not be made. */
int selftest_run(bool ignore_unsafe_kernel, struct selftest *ret);

#endif
