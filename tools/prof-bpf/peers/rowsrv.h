/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for files: asks prof-deltas, over the rows route and its lane, and feeds what it answers
 * into the tables.
 *
 * An answer counts only for a request that is outstanding, from the pipe that got it. When the
 * extractor dies, the file that it says it was working on (lastword.h) is asked for once more,
 * alone; what is given up, and whose files are given up, quarantine.h says. All else that it had is
 * asked for again.
 */
#ifndef PROFPIPE_ROWSRV_H
#define PROFPIPE_ROWSRV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/base/span.h"
#include "tools/prof-bpf/peers/quarantine.h"

struct rowsrv;
struct tables;

struct rowsrv_config {
	const char *run_dir;
	uid_t peer; /* of prof-deltas */
	struct tables *tables;
	struct quarantine *quarantine; /* borrowed */
	/* The extractor died on a file, and this came of it (quarantine_blame). */
	void (*on_death)(void *ctx, struct str name, const struct quarantine_key *of,
			 enum lastword_end end, enum quarantine_verdict verdict);
	/* Rows of so many bytes are about to come: whoever divides the memory may make room. NULL:
	 * nobody does. */
	void (*rows_come)(void *ctx, uint64_t bytes);
	void *ctx;
};
int rowsrv_new(const struct rowsrv_config *c, struct rowsrv **ret);
void rowsrv_free(struct rowsrv *r);
/* Readable when rowsrv_run has something to do. Borrowed. */
int rowsrv_bus_fd(const struct rowsrv *r);
int rowsrv_lane_fd(const struct rowsrv *r);
bool rowsrv_connected(const struct rowsrv *r);
/* Nothing is asked for and nothing outstanding. */
bool rowsrv_idle(const struct rowsrv *r);
/* The rows of the file in `slot` are wanted. fd: taken, closed once sent. name: copied, for
 * messages only. 0, -ENOMEM (the file has none for now). */
int rowsrv_request(struct rowsrv *r, uint16_t slot, int fd, const struct quarantine_key *of,
		   struct str name);
/* Takes all answers, sends what can be sent, gives up on what has taken too long. 0, or -errno
 * where the route itself failed. */
int rowsrv_run(struct rowsrv *r, uint64_t now_ns);

/* Takes one of the files whose turn has come without a descriptor: the caller requests it again with
 * one, now or later. False: there is none. */
bool rowsrv_take_unopened(struct rowsrv *r, uint16_t *ret_slot);

struct rowsrv_figures {
	uint64_t asked, answered;
	uint64_t refused[8];  /* by enum rows_status; [0] what came with bad rows */
	uint64_t full;	      /* for want of room in the tables */
	uint64_t quarantined; /* files that were to have rows and are not parsed any more */
};
void rowsrv_figures(const struct rowsrv *r, struct rowsrv_figures *ret);

#endif
