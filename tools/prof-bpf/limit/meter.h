/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meter: what memory each tool of the run has now, as the kernel counts it (proportional set
 * size). No tool is asked: one that was taken over would say what suits it.
 *
 * The tools are this process, and those of the same parent that have a tool's name and user, with
 * their children. Where the kernel does not tell (no right to, no list of children), nothing is
 * known of a tool.
 */
#ifndef PROFPIPE_METER_H
#define PROFPIPE_METER_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/deploy.h"

#define METER_PIDS 64 /* of a tool: with prof-export there may be as many as there are outputs */

struct meter {
	int proc;		     /* borrowed: an O_PATH descriptor of /proc */
	const struct deploy *deploy; /* borrowed: whose users the tools are */
	uint64_t searched_ns;	     /* when the tools were looked for last */
	struct meter_tool {
		uint32_t pid[METER_PIDS];
		unsigned pids;
	} tool[DEPLOY_TOOLS];
};

/* In bytes; 0: not known. now_ns: CLOCK_MONOTONIC. */
void meter_read(struct meter *m, uint64_t now_ns, uint64_t ret[static DEPLOY_TOOLS]);

#endif
