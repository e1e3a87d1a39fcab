/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof that samples arrive: a whole run, of all four tools, on a child that does nothing but
 * spin and call the kernel; and what of it is in the profile.
 */
#ifndef PROFPIPE_SELFTEST_H
#define PROFPIPE_SELFTEST_H

#include <stdbool.h>
#include "tools/profpipe/tally.h"

#define SELFTEST_HZ "199"
#define SELFTEST_SECONDS "1"

struct selftest {
	struct tally seen;
	char trouble[256]; /* what the run said where it failed, escaped; else empty */
};
/* Runs it: some two seconds, a minute at most. 0; -errno where not even the processes could be
 * made. */
int selftest_run(bool ignore_unsafe_kernel, struct selftest *ret);

#endif
