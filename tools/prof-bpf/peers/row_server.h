/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The row server: requests rows of files from prof-deltas, over the rows route and its lane, and
 * stores the answers in the tables.
 *
 * An answer counts only for an outstanding request, and only from the pipe that got the request. If
 * the extractor dies, the file that it was working on (lastword.h) is requested once more, alone;
 * quarantine.h decides which files and users are given up. All its other requests are repeated.
 *
 * Few requests are outstanding at a time, so that the queue (rowqueue.h) decides which one is next.
 * The cpu time that a file takes is charged to the owner of the request. If a file takes longer
 * than a slice while somebody waits who has spent less, the extractor puts it aside. It is tried
 * again when nobody else waits, each time for twice as long.
 */
#ifndef PROF_BPF_PEERS_ROW_SERVER_H
#define PROF_BPF_PEERS_ROW_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/base/bytes/str.h"
#include "tools/prof-bpf/peers/quarantine.h"

#define ROW_SERVER_ROUND_NS 500000000ull /* cpu time that is divided among all who wait */
#define ROW_SERVER_SLICE_NS 50000000ull	 /* the shortest slice, */
#define ROW_SERVER_SLICES_MAX 6		 /* which is doubled at most this often */
/* An owner who has spent more gets only the shortest slice while others wait. */
#define ROW_SERVER_SPENDER_NS 4000000000ull
/* on_aside is called when files of an owner were put aside this often. */
#define ROW_SERVER_STOPS_TOLD 8

struct owner;
struct owners;
struct row_server;
struct tables;

struct row_server_config {
	const char *run_dir;
	uid_t peer; /* uid of prof-deltas */
	struct tables *tables;
	struct quarantine *quarantine; /* borrowed */
	/* The extractor died on a file. verdict is the result of quarantine_blame. */
	void (*on_death)(void *ctx, struct str name, const struct quarantine_key *of,
			 enum lastword_end end, enum quarantine_verdict verdict);
	/* Files of this owner were put aside repeatedly. Called once; may be NULL. */
	void (*on_aside)(void *ctx, const struct owner *owner);
	/* Rows of this size are about to arrive, so that memory can be divided again. May be
	 * NULL. */
	void (*rows_come)(void *ctx, uint64_t bytes);
	void *ctx;
};
int row_server_new(const struct row_server_config *c, struct row_server **ret);
void row_server_free(struct row_server *r);
/* Return descriptors that are readable when row_server_run has something to do. Borrowed. */
int row_server_bus_fd(const struct row_server *r);
int row_server_lane_fd(const struct row_server *r);
bool row_server_connected(const struct row_server *r);
/* Whether no request is waiting or outstanding. */
bool row_server_idle(const struct row_server *r);
/* Sets the ledger, which is borrowed. Before this call, owners are NULL. */
void row_server_charge(struct row_server *r, struct owners *owners);
/* Requests the rows of the file in `slot`. fd is owned by r from then on, and closed once sent.
 * name is copied, and used only for messages. owner: who is charged; NULL: no owner. Returns 0 or
 * -ENOMEM (the file has no rows for now). */
int row_server_request(struct row_server *r, uint16_t slot, int fd, const struct quarantine_key *of,
		       struct str name, struct owner *owner);
/* Records that a process of this owner has a sample in the file. If the owner has spent less than
 * the one who is charged for the file, this owner is charged from now on. */
void row_server_wanted(struct row_server *r, uint16_t slot, struct owner *owner, uint64_t now_ns);
/* Sets how long the extractor sleeps after each tick of work (lastword.h), for the owner who spent
 * most or more than its share of the cpu limit. limit_ns: the cpu time of all tools in ten seconds.
 * Call it a few times a second. */
void row_server_rest(struct row_server *r, uint64_t ms, uint64_t limit_ns);
/* The pid of the extractor, if it has a request; else 0. */
uint32_t row_server_pid(const struct row_server *r);
/* The extractor waits in the kernel for the file that it works on. Drops it, so that the next one
 * may connect, and lets the files of the same user rest (blockers.h). */
void row_server_blocked(struct row_server *r, uint64_t now_ns);
/* Takes all answers, sends what can be sent, and restarts an extractor that neither answers nor
 * works. Returns 0, or -errno if the route itself failed. */
int row_server_run(struct row_server *r, uint64_t now_ns);

/* Takes one of the files whose turn has come but which have no descriptor. The caller requests it
 * again with one, now or later. Returns false if there is none. */
bool row_server_take_unopened(struct row_server *r, uint16_t *ret_slot);

struct row_server_figures {
	uint64_t asked, answered;
	uint64_t refused[8];  /* by enum msg_rows_status; [0]: answers with invalid rows */
	uint64_t full;	      /* files whose rows did not fit the tables */
	uint64_t quarantined; /* files that needed rows but are quarantined */
	uint64_t aside;	      /* how often a file was put aside */
	uint64_t cpu_ns;      /* cpu time of the extractor on all files, as it reports it */
};
void row_server_figures(const struct row_server *r, struct row_server_figures *ret);

#endif
