/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the connections between tools: a run's folder, with TestSuite(…, .init =
 * make_run_dir, .fini = remove_run_dir). */
#ifndef TESTS_UNIT_RUN_DIR_H
#define TESTS_UNIT_RUN_DIR_H

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "common/wire/bus/bus.h"

static char run_dir[64];

static inline void make_run_dir(void)
{
	char path[80];

	strcpy(run_dir, "/tmp/profpipe-run-XXXXXX");
	cr_assert_not_null(mkdtemp(run_dir));
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", run_dir, i ? "bpf" : "export");
		cr_assert_eq(mkdir(path, 0710), 0);
	}
}

static inline void remove_run_dir(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", run_dir);
	cr_assert_eq(system(command), 0);
}

/* The next event or message on a bus, within ten seconds. */
static inline int await(struct bus *b, struct buf *into)
{
	for (int i = 0; i < 1000; i++) {
		struct pollfd p = { .fd = bus_fd(b), .events = POLLIN };

		/* Receives only when the descriptor is readable. One that stays unreadable is a
		 * failure. */
		if (poll(&p, 1, 10) != 1)
			continue;
		const int r = bus_recv(b, into);

		if (r != BUS_EMPTY)
			return r;
	}
	return BUS_EMPTY;
}

#endif
