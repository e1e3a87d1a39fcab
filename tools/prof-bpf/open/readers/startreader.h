/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what a process was started with (startup.h), in workers (workerpool.h): it lies in the
 * memory of the process, so the read may hang forever. While it hangs, nothing else is read of
 * that process; if two hang, of no process of their owner.
 */
#ifndef PROF_BPF_OPEN_READERS_STARTREADER_H
#define PROF_BPF_OPEN_READERS_STARTREADER_H

#include "tools/prof-bpf/open/workers/startup.h"

#define STARTREADER_DEADLINE_NS 250000000ull

struct workerpool;
struct owner;

struct startreader_result {
	int status;	    /* 0; -ETIMEDOUT, -EBUSY: it hangs; -errno: nothing was read */
	struct span values; /* as of startup_next; borrowed */
	/* The mode of the process's program, and whether it was the same one before and after. */
	uint32_t exe_mode;
	bool exe_same;
};

struct startreader_request {
	uint32_t pid;
	struct owner *payer;
	struct startup_wanted wanted; /* its names are copied */
	/* Called once, from workerpool_run: done, or from workerpool_free: drop. */
	void (*done)(void *ctx, const struct startreader_result *r);
	void (*drop)(void *ctx);
	void *ctx;
};
/* 0; -ENOBUFS: its owner waits for too much; -ENOMEM. */
int startreader_submit(struct workerpool *pool, const struct startreader_request *q);

#endif
