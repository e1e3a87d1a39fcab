/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The row server: requests rows of files from prof-deltas, over the rows route and its lane, and
 * stores the answers in the tables.
 *
 * An answer counts only for an outstanding request, and only from the pipe that got the request. If
 * the extractor dies, the file that it was working on (lastword.h) is requested once more, alone;
 * quarantine.h decides which files and users are given up. All its other requests are repeated.
 */
#ifndef PROF_BPF_PEERS_ROWSRV_H
#define PROF_BPF_PEERS_ROWSRV_H

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
	/* The extractor died on a file; verdict: from quarantine_blame. */
	void (*on_death)(void *ctx, struct str name, const struct quarantine_key *of,
			 enum lastword_end end, enum quarantine_verdict verdict);
	/* Rows of this size are about to arrive, so memory can be divided anew. NULL: not
	 * needed. */
	void (*rows_come)(void *ctx, uint64_t bytes);
	void *ctx;
};
int rowsrv_new(const struct rowsrv_config *c, struct rowsrv **ret);
void rowsrv_free(struct rowsrv *r);
/* Readable when rowsrv_run has something to do. Borrowed. */
int rowsrv_bus_fd(const struct rowsrv *r);
int rowsrv_lane_fd(const struct rowsrv *r);
bool rowsrv_connected(const struct rowsrv *r);
/* Whether nothing is requested or outstanding. */
bool rowsrv_idle(const struct rowsrv *r);
/* Requests the rows of the file in `slot`. fd: taken, closed once sent. name: copied, for messages
 * only. 0, -ENOMEM (the file has no rows for now). */
int rowsrv_request(struct rowsrv *r, uint16_t slot, int fd, const struct quarantine_key *of,
		   struct str name);
/* Takes all answers, sends what can be sent, and gives up on requests that take too long. 0, or
 * -errno if the route itself failed. */
int rowsrv_run(struct rowsrv *r, uint64_t now_ns);

/* Takes one of the files whose turn has come without a descriptor. The caller requests it again
 * with one, now or later. False: there is none. */
bool rowsrv_take_unopened(struct rowsrv *r, uint16_t *ret_slot);

struct rowsrv_figures {
	uint64_t asked, answered;
	uint64_t refused[8];  /* by enum rows_status; [0]: answers with bad rows */
	uint64_t full;	      /* no room in the tables */
	uint64_t quarantined; /* files that needed rows but are quarantined */
};
void rowsrv_figures(const struct rowsrv *r, struct rowsrv_figures *ret);

#endif
