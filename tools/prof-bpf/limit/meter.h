/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meter: how much memory each tool of the run has now, and how much cpu time it has used.
 * Memory is what the kernel counts as the proportional set size. The meter does not ask the tools,
 * since one that was taken over could lie.
 *
 * The tools are this process, and the processes of the same parent with a tool's name and user,
 * with their children. If the kernel does not show it (missing rights, no list of children), the
 * tool's memory is unknown.
 *
 * To compute a proportional set size, the kernel visits every page of the process. So the meter
 * reads it every 30 seconds, or when the resident set size has changed by an eighth and 256 KiB. In
 * between, the change of the resident set size is added.
 */
#ifndef PROF_BPF_LIMIT_METER_H
#define PROF_BPF_LIMIT_METER_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/deploy.h"

#define METER_PIDS 176 /* processes of a tool, including its workers */
/* The tools: those with users in deploy.h, and prof-metrics. */
#define METER_METRICS DEPLOY_USERS
#define METER_TOOLS (DEPLOY_USERS + 1)

#define METER_READS 32 /* processes whose memory is cached */

/* A process and its memory when it was last read. */
struct meter_read {
	uint32_t pid;	     /* 0: none, and the rest is not valid */
	int statm, children; /* owned; -1: cannot be read */
	uint64_t used_ns;    /* time of the last look */
	uint64_t read_ns;    /* when pss was read; 0: not yet */
	uint64_t pss, resident;
};

struct meter {
	int proc;		     /* borrowed: an O_PATH descriptor of /proc */
	const struct deploy *deploy; /* borrowed: the users of the tools */
	uint64_t searched_ns;	     /* time of the last search for the tools */
	struct meter_tool {
		uint32_t pid[METER_PIDS];
		unsigned pids;
	} tool[METER_TOOLS], family[METER_TOOLS]; /* tool: without children; family: with
						   * children */
	uint64_t listed_ns;			  /* time of the last list of children */
	uint64_t cpu_ns[METER_TOOLS][METER_PIDS]; /* of the processes of a family */
	uint64_t spent_ns[METER_TOOLS];		  /* total of all processes that were ever listed */
	struct meter_read reads[METER_READS];
};

/* Reads cpu time per tool, in ns since the start of its processes; 0: unknown. It does not fall
 * when a process ends. A child is counted at the latest from the third second of its life on. */
void meter_cpu(struct meter *m, uint64_t now_ns, uint64_t ret[static METER_TOOLS]);
/* Reads bytes per tool; 0: unknown. now_ns: CLOCK_MONOTONIC. */
void meter_read(struct meter *m, uint64_t now_ns, uint64_t ret[static METER_TOOLS]);

#endif
