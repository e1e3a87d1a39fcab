/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof that samples arrive: a whole run, of all four tools, on a child that does nothing but
 * spin and call the kernel; and what of it is in the profile.
 */
#ifndef PROFPIPE_SELFTEST_H
#define PROFPIPE_SELFTEST_H

#include <stdbool.h>
#include "tools/profpipe/doctor/tally.h"

#define SELFTEST_HZ "199"

struct selftest {
	struct tally seen;
	unsigned seconds;  /* that the child was sampled for */
	char trouble[256]; /* what the run said where it failed, escaped; else empty */
};
/* Runs it: for a second, and where that shows too little, as on a host that is busy or slow, once
 * more for ten. 0; -errno where not even the processes could be made. */
int selftest_run(bool ignore_unsafe_kernel, struct selftest *ret);

#endif
