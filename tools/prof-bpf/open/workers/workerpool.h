/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of workers (worker.h): processes that open files and read memory for prof-bpf, since
 * such work may never end. prof-bpf waits for no worker, and can give up each of them.
 *
 * There are three lanes. A worker of WORKERPOOL_SAFE works on local file systems. It hangs only
 * while somebody holds the lock of a file or folder, which its owner can do for ever. Workers of
 * the others may hang as a user wishes: on a foreign file system (mounts.h), or on pages of a
 * process.
 *
 * An owner who makes workers hang only harms itself. Only one worker at a time asks a foreign
 * device or a process, and only two work for an owner in these lanes. While one hangs, all other
 * requests for that device or process are refused at once. If two hang, all requests of that owner
 * in these lanes are; one is enough if half of the workers that may hang in a lane do. Owners in
 * one block of subordinate ids count as one. A worker
 * that is given up is killed. It counts as hanging until the kernel lets it end, and at least for
 * WORKERPOOL_PENALTY_NS. A worker that lacks a cpu, or that sends one part of its answer after the
 * other, does not hang, so it has WORKERPOOL_PATIENCE times as long. Such workers hold up nobody:
 * after WORKERPOOL_SLOW_NS, each takes a place of those that may hang, and another begins.
 *
 * Owners take turns with their requests, and requests for sampled files come first. Places in the
 * queue are charged to the owner (OWNER_QUEUE), and so are workers that may hang (OWNER_OPENERS).
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
/* Workers at once in the two other lanes together, not counting those that hang or are slow. */
#define WORKERPOOL_SLOW_MAX 4
/* How many workers one of these lanes may have, so that the other one need not wait. */
#define WORKERPOOL_OF_LANE 3
#define WORKERPOOL_OF_OWNER 2 /* workers of one owner in the slow lanes */
/* Limits of workers that hang, or are slow: in the safe lane, and in each other lane. Beyond that,
 * some more may begin for owners that make none hang. */
#define WORKERPOOL_SAFE_HANGING 40
#define WORKERPOOL_SLOW_HANGING 40
#define WORKERPOOL_SPARE 8
#define WORKERPOOL_SLOW_NS 100000000ull
#define WORKERPOOL_AHEAD 8    /* requests that are sent to a safe worker in advance */
#define WORKERPOOL_QUEUE 8192 /* waiting requests; an owner may have its fair share of these */
#define WORKERPOOL_PENALTY_NS 10000000000ull
#define WORKERPOOL_PATIENCE 8	       /* a worker that does not hang has this many deadlines */
#define WORKERPOOL_MORE_NS 20000000ull /* another worker is started if one is busy this long */
/* A worker is ended after this idle time, unless it is the only one. */
#define WORKERPOOL_IDLE_NS 5000000000ull

struct owner;
struct owners;

enum workerpool_lane { WORKERPOOL_SAFE, WORKERPOOL_FOREIGN, WORKERPOOL_MEMORY, WORKERPOOL_LANES };

struct workerpool_job;
struct workerpool_line;

/* The end of a job. status: 0; -ETIMEDOUT: it hangs; -EBUSY: workers already hang for its device,
 * process or owner; -EIO: workers died of it; -EPIPE: there will be no worker; -ECANCELED: it was
 * withdrawn. With status 0 there is an answer: bytes follow it, and the callee owns fds (-1 where
 * none came). */
struct workerpool_end {
	int status;
	const struct work_answer *answer;
	struct span bytes;
	int fds[2];
};

struct workerpool_job {
	/* Set by the submitter. The message is a struct work with bytes. */
	enum workerpool_lane lane;
	bool sampled;
	struct owner *owner; /* NULL: no owner */
	uint64_t devs
		[OPENING_GRANTS]; /* WORKERPOOL_FOREIGN: the devices that it asks. WORKERPOOL_SAFE:
				   * the first one */
	unsigned dev_count;
	uint32_t pid; /* WORKERPOOL_MEMORY */
	uint64_t deadline_ns;
	struct work *message;
	size_t size;
	int fd; /* sent with the message; -1: none; stays the submitter's */
	/* Called before the message is sent, which is the last moment to change it. If it returns
	 * false, the job ends with -ENOBUFS. May be NULL. */
	bool (*prepare)(struct workerpool_job *j);
	/* workerpool_run calls `done` once; the callee owns the job again. If an answer has several
	 * parts, `part` is called for all but the last. */
	void (*part)(struct workerpool_job *j, const struct workerpool_end *e);
	void (*done)(struct workerpool_job *j, const struct workerpool_end *e);
	/* Called by workerpool_free instead of `done`. */
	void (*drop)(struct workerpool_job *j);

	/* Private to the pool. */
	struct workerpool_line *line;
	unsigned deaths;
	int status;
	struct workerpool_job *prev, *next;
};

struct workerpool;

/* Starts the keeper (openkeeper.h). Call it from a process with one thread that has the rights to
 * open files. The caller owns *ret. Returns 0 or -errno. */
int workerpool_start(const char *proc, struct workerpool **ret);
/* Leaves workers that hang behind. Drops all jobs. Accepts NULL. */
void workerpool_free(struct workerpool *pool);
/* Sets the ledger in which owners of jobs are charged. NULL: forgets it, with all owners. */
void workerpool_charge(struct workerpool *pool, struct owners *owners);
/* Returns a descriptor that is readable (level) while workerpool_run has something to do.
 * Borrowed. */
int workerpool_fd(const struct workerpool *pool);
/* Queues a job. Returns 0; -ENOBUFS: the owner, or all together, have too many waiting jobs. */
int workerpool_submit(struct workerpool *pool, struct workerpool_job *j);
/* Withdraws a job. If it still waits, it ends with -ECANCELED in the next workerpool_run; otherwise
 * this has no effect. */
void workerpool_withdraw(struct workerpool *pool, struct workerpool_job *j);
/* Calls back for finished jobs, gives up those past their deadline, and starts waiting ones.
 * now_ns: CLOCK_MONOTONIC. Call it when workerpool_fd is readable, and a few times a second. */
void workerpool_run(struct workerpool *pool, uint64_t now_ns);
/* Whether the keeper has ended, so that no worker can be started any more. */
bool workerpool_lost(const struct workerpool *pool);
pid_t workerpool_keeper(const struct workerpool *pool);

struct workerpool_figures {
	unsigned workers;
	unsigned hanging; /* for tests */
	uint64_t given_up, refused;
};
void workerpool_figures(const struct workerpool *pool, struct workerpool_figures *ret);

#endif
