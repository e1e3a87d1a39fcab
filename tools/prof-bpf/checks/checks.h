/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of what this host supports. A check tries the feature if it can; otherwise it reads what
 * the kernel reports. `profpipe doctor` prints the same checks that precede a run.
 */
#ifndef PROF_BPF_CHECKS_CHECKS_H
#define PROF_BPF_CHECKS_CHECKS_H

#include <stdbool.h>
#include "common/status/check.h"

enum checks_part {
	/* Checks whose failure can end a run. They are fast enough for each start. */
	CHECKS_START,
	/* All checks. */
	CHECKS_ALL,
};
struct checks_config {
	enum checks_part part;
	bool ignore_unsafe_kernel; /* a kernel that may lock up counts as degraded, not as fatal */
	bool by_root;		   /* root started it, even if its user has changed since */
	bool no_new_privs;	   /* of the process that started it; if set, sudo is no remedy */
	/* Results of probe_event before rights were dropped. */
	int clock, cycles;
};
/* Runs the checks with the current rights and passes each to `take`. Returns how many are fatal. */
unsigned checks_run(const struct checks_config *c, void (*take)(void *ctx, const struct check *c),
		    void *ctx);

#endif
