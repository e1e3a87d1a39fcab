/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helpers: work that may keep whoever does it waiting, done by workers (worker.h) in processes
 * of their own. prof-bpf never waits for them, and can give up each of them.
 *
 * There are three lanes. A worker of HELPERS_SAFE touches nothing that a user controls, so it
 * hangs at most by mistake. Those of the others may hang as a user wishes: on a foreign file system
 * (mounts.h), or on pages of a process.
 *
 * An owner who makes workers hang only harms itself. One worker at a time asks a foreign device or
 * a process, and two work for an owner in these lanes. While one hangs, all other requests for that
 * device or process are refused at once; if two hang, all of that owner in these lanes. A worker
 * that is given up is killed; it counts until the kernel lets it end, and at least for
 * HELPERS_PENALTY_NS. A worker that lacks a cpu does not hang, so it has HELPERS_PATIENCE times as
 * long.
 *
 * Requests are taken from the owners by turns, those for sampled files first. Places in the queue
 * are charged to the owner (OWNER_QUEUE), and so are workers that may hang (OWNER_OPENERS).
 */
#ifndef PROF_BPF_OPEN_HELPERS_H
#define PROF_BPF_OPEN_HELPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/base/span.h"
#include "tools/prof-bpf/open/work.h"

#define HELPERS_SAFE_MAX 4 /* workers at once */
#define HELPERS_SLOW_MAX 4 /* in the two other lanes together, those that hang not counted */
#define HELPERS_HANGING 64 /* workers that hang */
#define HELPERS_OF_OWNER 2 /* in the slow lanes */
#define HELPERS_AHEAD 8	   /* requests that a safe worker is sent ahead */
#define HELPERS_QUEUE 8192 /* waiting requests; an owner may have its fair share of these */
#define HELPERS_PENALTY_NS 10000000000ull
#define HELPERS_PATIENCE 8	      /* deadlines of a worker that waits for a cpu */
#define HELPERS_MORE_NS 20000000ull   /* another worker is started if one is busy this long */
#define HELPERS_IDLE_NS 5000000000ull /* and ended after this, except for one */

struct owner;
struct owners;

enum helpers_lane { HELPERS_SAFE, HELPERS_FOREIGN, HELPERS_MEMORY, HELPERS_LANES };

struct helpers_job;
struct helpers_line;

/* The end of a job. status: 0; -ETIMEDOUT: it hangs; -EBUSY: its device, process or owner hangs
 * workers already; -EIO: workers died of it; -EPIPE: no worker will come. Otherwise there was an
 * answer: bytes follow it, and fds (-1 where none came) are the callee's. */
struct helpers_end {
	int status;
	const struct work_answer *answer;
	struct span bytes;
	int fds[2];
};

struct helpers_job {
	/* Set by who submits it. The message is a struct work with bytes. */
	enum helpers_lane lane;
	bool sampled;
	struct owner *owner;	       /* NULL: nobody */
	uint64_t devs[OPENING_GRANTS]; /* HELPERS_FOREIGN: what it asks. HELPERS_SAFE: the first */
	unsigned dev_count;
	uint32_t pid; /* HELPERS_MEMORY */
	uint64_t deadline_ns;
	struct work *message;
	size_t size;
	int fd; /* sent along; -1: none; stays the submitter's */
	/* Called before it is sent: the last moment to change the message. False: ends the job with
	 * -ENOBUFS. May be NULL. */
	bool (*prepare)(struct helpers_job *j);
	/* Called once, from helpers_run. The job is the callee's again. A message of several parts
	 * calls `part` for all but the last. */
	void (*part)(struct helpers_job *j, const struct helpers_end *e);
	void (*done)(struct helpers_job *j, const struct helpers_end *e);
	/* Called instead by helpers_free. */
	void (*drop)(struct helpers_job *j);

	/* For the helpers alone. */
	struct helpers_line *line;
	unsigned deaths;
	int status;
	struct helpers_job *prev, *next;
};

struct helpers;

/* Starts the keeper (openkeeper.h), so call it from a process with one thread that has the rights
 * to open files. -errno. The caller owns *ret. */
int helpers_start(const char *proc, struct helpers **ret);
/* Leaves workers behind that hang. Drops all jobs. Takes NULL. */
void helpers_free(struct helpers *h);
/* The ledger that owners of jobs are charged in. NULL: forgets it, with all owners. */
void helpers_charge(struct helpers *h, struct owners *owners);
/* Readable (level) while helpers_run has something to do. Borrowed. */
int helpers_fd(const struct helpers *h);
/* 0; -ENOBUFS: the owner, or all, wait for too much. */
int helpers_submit(struct helpers *h, struct helpers_job *j);
/* Calls back for finished jobs, gives up on those past their deadline, and starts what waits.
 * now_ns: CLOCK_MONOTONIC. Call it when helpers_fd is readable, and a few times a second. */
void helpers_run(struct helpers *h, uint64_t now_ns);
/* Whether the keeper ended: no worker can be started any more. */
bool helpers_lost(const struct helpers *h);
pid_t helpers_keeper(const struct helpers *h);

struct helpers_figures {
	unsigned workers, hanging;
	uint64_t given_up, refused;
};
void helpers_figures(const struct helpers *h, struct helpers_figures *ret);

#endif
