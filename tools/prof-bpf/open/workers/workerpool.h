/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of workers (worker.h): processes that open files and read memory for prof-bpf, since
 * such work may never end. prof-bpf waits for no worker, and can give up each of them.
 *
 * There are three lanes. A worker of WORKERPOOL_SAFE touches nothing that a user controls, so it
 * hangs at most by mistake. Those of the others may hang as a user wishes: on a foreign file system
 * (mounts.h), or on pages of a process.
 *
 * An owner who makes workers hang only harms itself. One worker at a time asks a foreign device or
 * a process, and two work for an owner in these lanes. While one hangs, all other requests for that
 * device or process are refused at once; if two hang, all of that owner in these lanes. One is
 * enough if half of the workers that may hang in a lane do. A worker that is given up is killed. It
 * counts until the kernel lets it end, and at least for WORKERPOOL_PENALTY_NS. A worker that lacks
 * a cpu does not hang, so it has WORKERPOOL_PATIENCE times as long.
 *
 * Requests are taken from the owners by turns, those for sampled files first. Places in the queue
 * are charged to the owner (OWNER_QUEUE), and so are workers that may hang (OWNER_OPENERS).
 */
#ifndef PROF_BPF_OPEN_WORKERS_WORKERPOOL_H
#define PROF_BPF_OPEN_WORKERS_WORKERPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/base/bytes/span.h"
#include "tools/prof-bpf/open/workers/work.h"

#define WORKERPOOL_SAFE_MAX 4 /* workers at once */
#define WORKERPOOL_SLOW_MAX 4 /* in the two other lanes together, those that hang not counted */
#define WORKERPOOL_OF_LANE 3  /* of these, so that no lane keeps the other one waiting */
#define WORKERPOOL_OF_OWNER 2 /* in the slow lanes */
/* Workers that hang: of the safe lane, and of each other one. */
#define WORKERPOOL_SAFE_HANGING 16
#define WORKERPOOL_SLOW_HANGING 40
#define WORKERPOOL_AHEAD 8    /* requests that a safe worker is sent ahead */
#define WORKERPOOL_QUEUE 8192 /* waiting requests; an owner may have its fair share of these */
#define WORKERPOOL_PENALTY_NS 10000000000ull
#define WORKERPOOL_PATIENCE 8		 /* deadlines of a worker that waits for a cpu */
#define WORKERPOOL_MORE_NS 20000000ull	 /* another worker is started if one is busy this long */
#define WORKERPOOL_IDLE_NS 5000000000ull /* and ended after this, except for one */

struct owner;
struct owners;

enum workerpool_lane { WORKERPOOL_SAFE, WORKERPOOL_FOREIGN, WORKERPOOL_MEMORY, WORKERPOOL_LANES };

struct workerpool_job;
struct workerpool_line;

/* The end of a job. status: 0; -ETIMEDOUT: it hangs; -EBUSY: its device, process or owner hangs
 * workers already; -EIO: workers died of it; -EPIPE: no worker will come; -ECANCELED: it was
 * withdrawn. Otherwise there was an answer: bytes follow it, and fds (-1 where none came) are the
 * callee's. */
struct workerpool_end {
	int status;
	const struct work_answer *answer;
	struct span bytes;
	int fds[2];
};

struct workerpool_job {
	/* Set by who submits it. The message is a struct work with bytes. */
	enum workerpool_lane lane;
	bool sampled;
	struct owner *owner; /* NULL: nobody */
	uint64_t devs
		[OPENING_GRANTS]; /* WORKERPOOL_FOREIGN: what it asks. WORKERPOOL_SAFE: the first */
	unsigned dev_count;
	uint32_t pid; /* WORKERPOOL_MEMORY */
	uint64_t deadline_ns;
	struct work *message;
	size_t size;
	int fd; /* sent along; -1: none; stays the submitter's */
	/* Called before it is sent: the last moment to change the message. False: ends the job with
	 * -ENOBUFS. May be NULL. */
	bool (*prepare)(struct workerpool_job *j);
	/* workerpool_run calls it once. The job is the callee's again. A message of several parts
	 * calls `part` for all but the last. */
	void (*part)(struct workerpool_job *j, const struct workerpool_end *e);
	void (*done)(struct workerpool_job *j, const struct workerpool_end *e);
	/* Called instead by workerpool_free. */
	void (*drop)(struct workerpool_job *j);

	/* For the pool alone. */
	struct workerpool_line *line;
	unsigned deaths;
	int status;
	struct workerpool_job *prev, *next;
};

struct workerpool;

/* Starts the keeper (openkeeper.h), so call it from a process with one thread that has the rights
 * to open files. -errno. The caller owns *ret. */
int workerpool_start(const char *proc, struct workerpool **ret);
/* Leaves workers behind that hang. Drops all jobs. Takes NULL. */
void workerpool_free(struct workerpool *pool);
/* The ledger that owners of jobs are charged in. NULL: forgets it, with all owners. */
void workerpool_charge(struct workerpool *pool, struct owners *owners);
/* Readable (level) while workerpool_run has something to do. Borrowed. */
int workerpool_fd(const struct workerpool *pool);
/* 0; -ENOBUFS: the owner, or all, wait for too much. */
int workerpool_submit(struct workerpool *pool, struct workerpool_job *j);
/* The job is not wanted any more. If it still waits, it ends with -ECANCELED in the next
 * workerpool_run; if not, as if nothing was said. */
void workerpool_withdraw(struct workerpool *pool, struct workerpool_job *j);
/* Calls back for finished jobs, gives up on those past their deadline, and starts what waits.
 * now_ns: CLOCK_MONOTONIC. Call it when workerpool_fd is readable, and a few times a second. */
void workerpool_run(struct workerpool *pool, uint64_t now_ns);
/* Whether the keeper ended: no worker can be started any more. */
bool workerpool_lost(const struct workerpool *pool);
pid_t workerpool_keeper(const struct workerpool *pool);

struct workerpool_figures {
	unsigned workers;
	unsigned hanging; /* for tests */
	uint64_t given_up, refused;
};
void workerpool_figures(const struct workerpool *pool, struct workerpool_figures *ret);

#endif
