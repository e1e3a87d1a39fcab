/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the pool (workerpool.h). Each part uses only those above it:
 *
 * - workerpool_claims.c: which owners and devices occupy workers, and which jobs must wait for that
 * - workerpool_queue.c: the jobs that wait, and whose turn it is
 * - workerpool.c: the workers, and the public functions
 */
#ifndef PROF_BPF_OPEN_WORKERS_WORKERPOOL_INTERNAL_H
#define PROF_BPF_OPEN_WORKERS_WORKERPOOL_INTERNAL_H

#include "common/base/tables/hashtable.h"
#include "tools/prof-bpf/open/workers/workerpool.h"
#include "tools/prof-bpf/owners/owners.h"

#define WORKERPOOL_WORKERS \
	(WORKERPOOL_SAFE_MAX + WORKERPOOL_SLOW_MAX + WORKERPOOL_SAFE_HANGING + \
	 2 * WORKERPOOL_SLOW_HANGING + WORKERPOOL_LANES * WORKERPOOL_SPARE)
#define WORKERPOOL_PENALTIES 128

/* The jobs of one owner that wait in one lane. */
struct workerpool_line {
	struct owner *owner;
	struct workerpool_job *jobs;
	struct workerpool_line *prev, *next;
	UT_hash_handle hh; /* key: owner */
};

struct workerpool_waiting {
	/* The lines in the order of their turns: for sampled files, and for others. */
	struct workerpool_line *lines[2], *by_owner[2];
};

/* The owner, the devices and the process that a job occupies, while a worker runs it or hangs. */
struct workerpool_claim {
	enum workerpool_lane lane;
	struct owner *owner; /* a reference, if there is a ledger */
	uint64_t devs[OPENING_GRANTS];
	unsigned dev_count;
	uint32_t pid;
};

/* A penalty counts like a worker that hangs. */
struct workerpool_penalty {
	struct workerpool_claim claim;
	uint64_t until_ns;
};

struct workerpool_worker {
	int fd; /* -1: this element is free */
	pid_t pid;
	bool slow;
	bool hung;
	bool closing;		     /* it has answered a slow job, but has not closed its file
				      * yet */
	bool charged;		     /* charged as OWNER_OPENERS */
	bool penalized;		     /* it hangs, and its penalty is still running */
	struct workerpool_job *jobs; /* in the order of sending */
	unsigned count;
	uint64_t since_ns; /* when it began the first job */
	uint64_t part_ns;  /* when it last sent a part of its answer to that; 0: not yet */
	uint64_t deadline_ns;
	struct workerpool_claim claim; /* valid while it is busy or hung */
};

struct workerpool {
	int epoll, keeper_fd, event_fd;
	int proc; /* /proc, O_PATH */
	pid_t keeper;
	struct owners *owners;
	struct workerpool_waiting lanes[WORKERPOOL_LANES];
	unsigned waiting;
	struct workerpool_job *ended; /* jobs to call back without an answer */
	struct workerpool_worker workers[WORKERPOOL_WORKERS];
	struct workerpool_penalty penalties[WORKERPOOL_PENALTIES];
	unsigned next_penalty;
	bool starting, starting_slow;
	uint64_t retry_ns, now_ns;
	struct workerpool_figures figures;
	struct {
		struct work_answer head;
		uint8_t bytes[WORK_BYTES];
	} in;
};

/* --- workerpool_claims.c --- */

/* Charges an owner for one more, if there is a ledger. _release takes that back. */
void workerpool_claims_charge(struct workerpool *pool, struct owner *w, enum owner_resource t);
void workerpool_claims_release(struct workerpool *pool, struct owner *w, enum owner_resource t);
/* Claims for the worker the owner and the things that the job asks. _drop releases them. */
void workerpool_claims_take(struct workerpool *pool, struct workerpool_worker *w,
			    const struct workerpool_job *j);
void workerpool_claims_drop(struct workerpool *pool, struct workerpool_worker *w);
/* Counts a job that hung like a worker for some time. _forgive ends that. */
void workerpool_claims_penalize(struct workerpool *pool, const struct workerpool_claim *claim);
void workerpool_claims_forgive(struct workerpool *pool, struct workerpool_penalty *p);
bool workerpool_claims_is_busy(const struct workerpool_worker *w);
/* Whether a worker of the slow lanes has worked so long that it no longer takes a place of those
 * who work, but one of those who may hang. */
bool workerpool_claims_is_slow(const struct workerpool *pool, const struct workerpool_worker *w);

enum workerpool_claims_may {
	WORKERPOOL_CLAIMS_MAY_BEGIN,
	WORKERPOOL_CLAIMS_MAY_WAIT,
	WORKERPOOL_CLAIMS_MAY_NEVER
};
/* Whether a job may be given to a worker now, considering what other workers do and what hangs. */
enum workerpool_claims_may workerpool_claims_may_begin(const struct workerpool *pool,
						       const struct workerpool_job *j);

/* --- workerpool_queue.c --- */

/* Queues a job. front: it was taken out, and goes back to the front. Returns 0 or -ENOMEM. */
int workerpool_queue_put(struct workerpool *pool, struct workerpool_job *j, bool front);
void workerpool_queue_remove(struct workerpool *pool, struct workerpool_job *j);
/* Takes a job from the queue. Owners take turns, and jobs for sampled files come first. */
struct workerpool_job *workerpool_queue_take(struct workerpool *pool, enum workerpool_lane lane);
bool workerpool_queue_is_empty(const struct workerpool *pool, enum workerpool_lane lane);
/* Ends a job without an answer, in the next workerpool_run. */
void workerpool_queue_end(struct workerpool *pool, struct workerpool_job *j, int status);
/* Ends all waiting jobs. */
void workerpool_queue_end_all(struct workerpool *pool, int status);

#endif
