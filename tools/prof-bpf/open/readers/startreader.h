/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the environment and command line that a process was started with (environment.h), in
 * workers (workerpool.h). They are in the memory of the process, so the read may hang forever.
 * While it hangs, nothing else of that process is read. If two hang, nothing of any process of
 * their owner is.
 */
#ifndef PROF_BPF_OPEN_READERS_STARTREADER_H
#define PROF_BPF_OPEN_READERS_STARTREADER_H

#include "tools/prof-bpf/open/workers/environment.h"

#define STARTREADER_DEADLINE_NS 250000000ull

struct workerpool;
struct owner;

struct startreader_result {
	int status;	    /* 0; -ETIMEDOUT, -EBUSY: it hangs; -errno: nothing was read */
	struct span values; /* for environment_next; borrowed */
	/* The mode of the process's program, and whether it was the same program before and
	 * after. */
	uint32_t exe_mode;
	bool exe_same;
};

struct startreader_request {
	uint32_t pid;
	struct owner *payer;
	struct environment_wanted wanted; /* its names are copied */
	/* Exactly one of these callbacks is called: done by workerpool_run, or drop by
	 * workerpool_free. */
	void (*done)(void *ctx, const struct startreader_result *r);
	void (*drop)(void *ctx);
	void *ctx;
};
/* Queues a request. Returns 0; -ENOBUFS: its owner has too many open requests; or -ENOMEM. */
int startreader_submit(struct workerpool *pool, const struct startreader_request *q);

#endif
