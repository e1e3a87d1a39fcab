/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the helpers (helpers.h), from the bottom to the top:
 *
 * - helpers_claims.c: which owners and devices occupy workers, and which jobs must wait for that
 * - helpers_queue.c: the jobs that wait, and whose turn it is
 * - helpers.c: the workers, and the whole
 */
#ifndef PROF_BPF_OPEN_HELPERS_INTERNAL_H
#define PROF_BPF_OPEN_HELPERS_INTERNAL_H

#include <uthash.h>
#include "tools/prof-bpf/open/helpers.h"
#include "tools/prof-bpf/owners/owners.h"

#define HELPERS_WORKERS (HELPERS_SAFE_MAX + HELPERS_SLOW_MAX + HELPERS_HANGING)
#define HELPERS_PENALTIES 128

/* The jobs of one owner that wait in one lane. */
struct helpers_line {
	struct owner *owner;
	struct helpers_job *jobs;
	struct helpers_line *prev, *next;
	UT_hash_handle hh; /* by owner */
};

struct helpers_waiting {
	/* The lines by turns, for sampled files and for others. */
	struct helpers_line *lines[2], *by_owner[2];
};

/* Whom and what a job keeps, while it is being done or hangs. */
struct helpers_claim {
	enum helpers_lane lane;
	struct owner *owner; /* a reference, if there is a ledger */
	uint64_t devs[OPENING_GRANTS];
	unsigned dev_count;
	uint32_t pid;
};

/* Counts like a worker that hangs. */
struct helpers_penalty {
	struct helpers_claim claim;
	uint64_t until_ns;
};

struct helpers_worker {
	int fd; /* -1: this place is free */
	pid_t pid;
	bool slow;
	bool hung;
	bool closing;		  /* it has answered a slow job, but not closed its file */
	bool charged;		  /* OWNER_OPENERS */
	bool penalized;		  /* it hangs, and its penalty lasts */
	struct helpers_job *jobs; /* in the order of sending */
	unsigned count;
	uint64_t since_ns; /* when it began with the first */
	uint64_t deadline_ns;
	struct helpers_claim claim; /* valid while it is busy or hung */
};

struct helpers {
	int epoll, keeper_fd, event_fd;
	int proc; /* /proc, O_PATH */
	pid_t keeper;
	struct owners *owners;
	struct helpers_waiting lanes[HELPERS_LANES];
	unsigned waiting;
	struct helpers_job *ended; /* to be called back without an answer */
	struct helpers_worker workers[HELPERS_WORKERS];
	struct helpers_penalty penalties[HELPERS_PENALTIES];
	unsigned next_penalty;
	bool starting, starting_slow;
	uint64_t retry_ns, now_ns;
	struct helpers_figures figures;
	struct {
		struct work_answer head;
		uint8_t bytes[WORK_BYTES];
	} in;
};

/* --- helpers_claims.c --- */

/* Charges an owner for one more, if there is a ledger. */
void claims_charge(struct helpers *h, struct owner *w, enum owner_resource t);
void claims_release(struct helpers *h, struct owner *w, enum owner_resource t);
/* The worker keeps whom and what the job asks, and gives it free again. */
void claims_take(struct helpers *h, struct helpers_worker *w, const struct helpers_job *j);
void claims_drop(struct helpers *h, struct helpers_worker *w);
/* What hung counts like a worker for some time, and is forgiven. */
void claims_penalize(struct helpers *h, const struct helpers_claim *claim);
void claims_forgive(struct helpers *h, struct helpers_penalty *p);
bool claims_is_busy(const struct helpers_worker *w);

enum claims_may { CLAIMS_MAY_BEGIN, CLAIMS_MAY_WAIT, CLAIMS_MAY_NEVER };
/* Whether a job may be given to a worker now, for all that others do and that hangs. */
enum claims_may claims_may_begin(const struct helpers *h, const struct helpers_job *j);

/* --- helpers_queue.c --- */

/* front: it was taken out, and goes back. 0, -ENOMEM. */
int queue_put(struct helpers *h, struct helpers_job *j, bool front);
void queue_remove(struct helpers *h, struct helpers_job *j);
/* Takes a job from the queue: of the owners by turns, those for sampled files first. */
struct helpers_job *queue_take(struct helpers *h, enum helpers_lane lane);
bool queue_is_empty(const struct helpers *h, enum helpers_lane lane);
/* Ends a job without an answer, from the next helpers_run on. */
void queue_end(struct helpers *h, struct helpers_job *j, int status);
/* Ends all that wait. */
void queue_end_all(struct helpers *h, int status);

#endif
