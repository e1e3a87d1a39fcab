/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map reader reads the executable mappings of processes, in workers (workerpool.h). The kernel
 * locks a process's mappings while it reads them, and a process may keep that lock forever: e.g. by
 * mapping a file of FUSE whose server does not answer. The worker is then given up, as for memory
 * (reader.h).
 */
#ifndef PROF_BPF_OPEN_READERS_MAPREADER_H
#define PROF_BPF_OPEN_READERS_MAPREADER_H

#include <stdbool.h>
#include <stdint.h>

#define MAPREADER_DEADLINE_NS 500000000ull /* time for each process */

struct workerpool;
struct owner;
struct procfs_mapping;

struct mapreader_request {
	uint32_t pid;
	struct owner *payer; /* the owner charged for this; NULL: none */
	bool sampled;	     /* samples wait for it, so it comes before other requests */
	uint32_t most;	     /* limit of mappings; the others are left out */
	/* workerpool_run calls this with each mapping, in the order of addresses, and then `done`
	 * once. If that reports a failure, not all mappings may have come. */
	void (*mapping)(void *ctx, const struct procfs_mapping *m);
	/* status: 0; -ETIMEDOUT, -EBUSY: it hangs; -ENOENT, -ESRCH: there is no such process;
	 * -errno. cpu_ns: the worker's cpu time. */
	void (*done)(void *ctx, int status, uint64_t cpu_ns);
	/* Called instead of `done` by workerpool_free. */
	void (*drop)(void *ctx);
	void *ctx;
};

/* Returns 0; -ENOBUFS: its owner has too many open requests; or -ENOMEM. */
int mapreader_submit(struct workerpool *pool, const struct mapreader_request *q);

#endif
