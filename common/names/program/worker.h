/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers (fileworker.h) of this process, as seen by the process that sends them requests. The
 * keeper (filekeeper.h) starts them; requests go over a socket.
 *
 * A worker's time is measured as cpu time, because on a busy machine much more wall time passes.
 * Each answer reports how much it took. But a worker parses hostile files, so prof-symd trusts only
 * the keeper, which asks the kernel: during every long request, and sometimes otherwise. A worker
 * that reported too little is charged with wall time instead. So is one that waits in the kernel,
 * since its caller waits with it: a user can hold a lock of their own file for ever.
 */
#ifndef COMMON_NAMES_PROGRAM_WORKER_H
#define COMMON_NAMES_PROGRAM_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/names/program/filekeeper.h"
#include "common/names/program/programwire.h"
#include "common/names/verdict.h"

/* Zero-initialise, and set `kind`, and `socket` to -1. */
struct worker {
	enum filekeeper_kind kind;
	int socket;	    /* -1: none */
	bool hung_up;	    /* the last request failed because the worker had ended */
	bool killed;	    /* the keeper reported that the previous one had been killed */
	bool busy;	    /* a request is under way */
	uint64_t number;    /* number of the current worker; no other worker has the same */
	uint64_t worked_ns; /* cpu time of all its requests */
	/* About the current request. A look reads the worker's clock. */
	uint64_t begun_ns;	  /* when it began */
	uint64_t looked_ns;	  /* time of the last look */
	uint64_t moved_ns;	  /* time of the last look that showed progress */
	unsigned still;		  /* punctual looks in sequence that showed no cpu time at all */
	uint64_t base_ns, cpu_ns; /* cpu time when the request began, and at the last look */
	uint64_t request_ns;	  /* cpu time that the request took so far */
	/* Of the requests since the last look: cpu time as reported by the worker, and wall
	 * time. */
	uint64_t said_ns, passed_ns;
	bool lies;
	bool blocked; /* the last request took no cpu time: the worker waits for a file */
};

/* From this time of CLOCK_MONOTONIC on no call waits for a worker; 0: no limit. */
void worker_until(uint64_t until_ns);

/* Kills the worker, if there is one, and starts a new one. heap: bytes that it may use. Returns 0;
 * -EAGAIN: the keeper cannot start one now; another -errno: the keeper is gone or hangs. */
int worker_start(struct worker *w, uint64_t heap);
/* Closes the socket. A worker without a request then ends. */
void worker_drop(struct worker *w);
/* Whether the worker ended while it had no request. */
bool worker_is_gone(const struct worker *w);

/* Sends a request. All but PROGRAMWIRE_CLOSE have an answer. Returns 0 or -errno. */
int worker_send(struct worker *w, const struct programwire_ask *a, const int *fds, size_t count);
/* Waits for the answer until the request took slice_ns of cpu time, or for wait_ns; either may be
 * UINT64_MAX. limit_s: seconds of cpu time after which the worker is lost. Returns 0,
 * VERDICT_LATER or, then call worker_drop, VERDICT_LOST. */
int worker_wait(struct worker *w, uint64_t slice_ns, uint64_t wait_ns, unsigned limit_s,
		struct programwire_answer *ret, struct names *ret_names);

#endif
