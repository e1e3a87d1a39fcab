/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host allows, check by check: tried out where it can be tried, else read from where the
 * kernel says it. The same list is printed by `profpipe doctor` and guards the start.
 */
#ifndef PROFPIPE_CHECKS_H
#define PROFPIPE_CHECKS_H

#include <stdbool.h>
#include "common/status/check.h"

enum checks_part {
	/* What can end a run: cheap enough for each start. */
	CHECKS_START,
	/* All of them. */
	CHECKS_ALL,
};
struct checks_config {
	enum checks_part part;
	bool ignore_unsafe_kernel; /* one that may lock up is degraded, not fatal */
	bool by_root;		   /* root started it, whoever it is by now */
	bool no_new_privs;	   /* its starter's: sudo is not for it */
	/* What probe_event said before rights were dropped. */
	int clock, cycles;
};
/* With the rights of the moment. Hands each to `take` in turn. How many are fatal. */
unsigned checks_run(const struct checks_config *c, void (*take)(void *ctx, const struct check *c),
		    void *ctx);

#endif
