/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of a stream, opened when a frame needs them and closed again: least recently used
 * first when they hold more memory than the budget or more than FILESTORE_OPEN are open, and each
 * that was not looked into for FILESTORE_IDLE_NS (an open file pins its mount).
 *
 * Beyond the budget, those looked into within FILESTORE_BUSY_NS are left alone up to half as much
 * again: where new code of several large programs runs all the time, to read their DWARF anew for
 * each of them in turn takes three times the cpu time of everything else here.
 *
 * Files are asked for through `ask`, by hand answered at once, in the deployment over the bus; an
 * answer that does not come within FILESTORE_WAIT_NS is done without.
 */
#ifndef PROFPIPE_FILESTORE_H
#define PROFPIPE_FILESTORE_H

#include "common/wire/msg.h"
#include "common/names/program/program.h"

#define FILESTORE_WAIT_NS 2000000000ull /* for a program and its debug files together */
#define FILESTORE_IDLE_NS 30000000000ull
#define FILESTORE_REST_NS 20000000000ull /* DWARF that was not asked for so long goes */
#define FILESTORE_BUSY_NS 5000000000ull
#define FILESTORE_RETRY_NS 30000000000ull /* after an answer that did not come */
#define FILESTORE_OPEN 64
#define FILESTORE_IN_FLIGHT 16
#define FILESTORE_WANTED 1024 /* files asked for ahead, that wait for their turn */
#define FILESTORE_BUDGET (16ull << 20)
#define FILESTORE_DWARF_MAX (48ull << 20) /* bytes of one program's DWARF */

enum filestore_state { FILESTORE_CLOSED, FILESTORE_ASKED, FILESTORE_READY, FILESTORE_FAILED };

/* One file of the stream. Owned by whoever keeps the stream's definitions; zero-initialised but for
 * `file`. */
struct filestore_file {
	uint64_t file; /* the stream's id */
	enum filestore_state state;
	struct program *program; /* owned; may be there before all debug files are */
	uint64_t request;	 /* the one under way, 0: none */
	uint64_t asked_ns, used_ns, failed_ns;
	bool timed_out;
	bool wanted;
	/* More than its memory, or libdw died on it: it is not given to it again. */
	bool dwarf_too_large, dwarf_lost;
	unsigned dwarf_kills;		    /* as program_dwarf_kills, at the most */
	size_t bytes;			    /* as charged */
	struct filestore_file *prev, *next; /* open ones, most recently used first */
};

/* What to ask for. want: PROGRAM_WANTS_NOTHING means the file itself. */
struct filestore_request {
	uint64_t id;
	struct filestore_file *file;
	enum program_want want;
	struct span build_id; /* borrowed during the call */
	const char *name;
};

struct filestore {
	uint64_t budget, dwarf_max;
	/* Sends a request, which filestore_answer will answer, during the call or later. 0,
	 * -EAGAIN: not now; another -errno: never. */
	int (*ask)(void *ctx, const struct filestore_request *rq);
	void *ctx;
	/* Called for a program that was opened, before anything else looks into it; NULL: not. */
	void (*opened_hook)(void *ctx, struct filestore_file *f, const struct program *p);
	void *hook_ctx;
	/* Called once for a file that goes without DWARF, as dwarf_too_large and dwarf_lost of it
	 * say, and before that once when it is read once more, of which dwarf_kills has changed;
	 * NULL: not. */
	void (*without_hook)(void *ctx, struct filestore_file *f);
	void *without_ctx;
	struct filestore_file *newest, *oldest;
	struct filestore_file *asked[FILESTORE_IN_FLIGHT];
	struct filestore_file *wanted[FILESTORE_WANTED];
	unsigned wanted_count, open_count;
	uint64_t next_request;
	uint64_t now_ns; /* of the last call that said it */
	uint64_t bytes;
	uint64_t opened, evicted, timed_out, dwarf_too_large, dwarf_lost; /* since the start */
};

enum filestore_verdict { FILESTORE_WAIT = 1 };

/* budget: bytes, aimed at; dwarf_max: of one program's DWARF. */
void filestore_init(struct filestore *s, uint64_t budget, uint64_t dwarf_max,
		    int (*ask)(void *, const struct filestore_request *), void *ctx);
/* Asks ahead for a file that will be needed. */
void filestore_want(struct filestore *s, struct filestore_file *f, uint64_t now_ns);
/* The program of f, borrowed until the next call on s; NULL when it cannot be had. 0,
 * FILESTORE_WAIT, -ENOMEM. */
int filestore_get(struct filestore *s, struct filestore_file *f, uint64_t now_ns,
		  struct program **ret);
/* Call where a lookup in f's program said PROGRAM_AGAIN. 0: look again now; FILESTORE_WAIT: after
 * the next filestore_get that has it. */
int filestore_complete(struct filestore *s, struct filestore_file *f, uint64_t now_ns);
/* Call after lookups in f: memory is charged, and others closed for it. */
void filestore_charge(struct filestore *s, struct filestore_file *f);
/* An answer: fd is taken; -1: there is none. Unknown ids are closed. */
void filestore_answer(struct filestore *s, uint64_t id, int fd, uint64_t now_ns);
/* Closes what is idle, gives up what is overdue. */
void filestore_tick(struct filestore *s, uint64_t now_ns);
/* There is no memory: closes all that can be opened again. */
void filestore_relieve(struct filestore *s);
/* When the file that is waited for is given up, 0 when nothing is asked. */
uint64_t filestore_deadline(const struct filestore *s);
/* Closes f and forgets every request for it. */
void filestore_drop(struct filestore *s, struct filestore_file *f);

#endif
