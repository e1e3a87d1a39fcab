/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of a stream. A program is opened when a frame needs it. It is closed
 *
 *  - if programs take more memory than the budget, or more than FILESTORE_OPEN are open: the least
 *    recently used one first;
 *  - if it was not used for FILESTORE_IDLE_NS, since an open file pins its mount.
 *
 * Programs that were used within FILESTORE_BUSY_NS may exceed the budget by half. Otherwise
 * prof-symd would repeatedly read the DWARF of several large programs that run new code all the
 * time. That takes three times the cpu time of everything else here.
 *
 * Files are requested through `ask`. By hand, it answers at once; in a deployment, the answer comes
 * over the bus. If none comes within FILESTORE_WAIT_NS, the file counts as missing, and is
 * requested again after FILESTORE_RETRY_NS. On a busy host, opening what came before takes time as
 * well, so each answer gives the next one as long, and time in which nobody takes answers does not
 * count (filestore_worked).
 */
#ifndef PROF_SYMD_FILES_FILESTORE_H
#define PROF_SYMD_FILES_FILESTORE_H

#include "common/names/program/program.h"
#include "common/wire/msg.h"

#define FILESTORE_WAIT_NS 2000000000ull	    /* timeout for one answer */
#define FILESTORE_WAIT_ALL_NS 8000000000ull /* for a program and its debug files together */
#define FILESTORE_TURN_NS 20000000ull /* wait before another try, if a program's worker was busy */
#define FILESTORE_IDLE_NS 30000000000ull
#define FILESTORE_REST_NS 20000000000ull /* DWARF that was not used for this long is freed */
#define FILESTORE_BUSY_NS 5000000000ull
#define FILESTORE_RETRY_NS 30000000000ull /* wait before another try, if an answer did not come */
#define FILESTORE_OPEN 120
/* Limit of open requests. An owner may have at most as many as are still free, so that one is left
 * for the next owner: sixteen, if no other owner has any. */
#define FILESTORE_IN_FLIGHT 32
#define FILESTORE_WANTED 1024 /* files requested in advance that wait for a free request */
#define FILESTORE_BUDGET (16ull << 20)
#define FILESTORE_DWARF_MAX (48ull << 20) /* limit of bytes for one program's DWARF */

enum filestore_state { FILESTORE_CLOSED, FILESTORE_ASKED, FILESTORE_READY, FILESTORE_FAILED };

/* How much memory a program has freed since its last use, in the terms of `packed` of
 * program_rest. */
enum filestore_rest { FILESTORE_WORKS, FILESTORE_RESTS, FILESTORE_RESTS_PACKED };

/* One file of the stream. The stream's definitions own it (definitions.h). Zero-initialise, then
 * set `file`. */
struct filestore_file {
	uint64_t file; /* id in the stream */
	enum filestore_state state;
	enum filestore_rest rests;
	struct program *program;	/* owned; may be set before all debug files have come */
	uint64_t request;		/* id of the current request; 0: none was sent */
	uint64_t place;			/* place where the last wanted file was found */
	uint64_t asked_ns, answered_ns; /* the first request; the last answer, or that request */
	uint64_t used_ns, failed_ns;
	uint64_t owner; /* the owner charged: at first the user who owns the file */
	uint64_t asker; /* the owner charged for the current request */
	bool of_root;	/* only the host's root could have written it */
	bool timed_out; /* it is requested again later */
	bool late;	/* an answer did not come in time */
	bool wanted;
	/* The DWARF needs too much memory, or libdw died on it. It is not given to libdw again. */
	bool dwarf_too_large, dwarf_lost;
	bool slow;	   /* its lookups are for the patient worker (program.h) */
	bool tried;	   /* a lookup has shown whether it is slow */
	bool died, killed; /* it has no names: its workers crashed, or were killed from outside */
	unsigned dwarf_kills;		    /* the highest program_dwarf_kills so far */
	size_t bytes;			    /* bytes that are charged */
	struct filestore_file *prev, *next; /* list of open programs, most recently used first */
};

/* A request for a file. If want is PROGRAM_WANTS_NOTHING, the program itself is requested. */
struct filestore_request {
	uint64_t id;
	struct filestore_file *file;
	enum program_want want;
	struct span build_id; /* borrowed during the call */
	const char *name;
	uint64_t place; /* the first place to look in; earlier places had wrong files */
};

struct filestore {
	uint64_t budget, dwarf_max;
	/* Sends a request. The answer must be passed to filestore_answer, during the call or later.
	 * Returns 0; -EAGAIN: it was not sent, and filestore_tick repeats it; another -errno: the
	 * request cannot be sent at all. */
	int (*ask)(void *ctx, const struct filestore_request *rq);
	void *ctx;
	/* Called for each program that was opened, before the first lookup in it. p is NULL if it
	 * could not be opened. May be NULL. */
	void (*opened_hook)(void *ctx, struct filestore_file *f, struct program *p);
	void *hook_ctx;
	/* Called once when a file loses its names (died or killed is set), and once when it loses
	 * its DWARF (dwarf_too_large or dwarf_lost is set). Before that, called once if a worker
	 * was killed and the file is tried again (dwarf_kills has changed). May be NULL. */
	void (*without_hook)(void *ctx, struct filestore_file *f);
	void *without_ctx;
	bool bare; /* names are not wanted, so no debug files are requested */
	struct filestore_file *newest, *oldest;
	struct filestore_file *asked[FILESTORE_IN_FLIGHT];
	struct filestore_file *wanted[FILESTORE_WANTED];
	unsigned wanted_count, open_count;
	uint64_t next_request;
	uint64_t now_ns; /* time of the last call that had one */
	uint64_t bytes;
	uint64_t opened, evicted, timed_out, dwarf_too_large; /* counts, since the start */
};

enum filestore_verdict { FILESTORE_WAIT = 1 };

/* budget: target of bytes for all programs; dwarf_max: limit of bytes for one program's DWARF. */
void filestore_init(struct filestore *s, uint64_t budget, uint64_t dwarf_max,
		    int (*ask)(void *, const struct filestore_request *), void *ctx);
/* Requests a file in advance. */
void filestore_want(struct filestore *s, struct filestore_file *f, uint64_t now_ns);
/* Gives the program of f, borrowed until the next call on s; NULL if it is not available. Returns
 * 0, FILESTORE_WAIT or -ENOMEM. */
int filestore_get(struct filestore *s, struct filestore_file *f, uint64_t now_ns,
		  struct program **ret);
/* Whether filestore_get can return without waiting for an answer, as far as is known. */
bool filestore_settled(const struct filestore_file *f);
/* Whether the file's program is open, and no request for it is open. */
bool filestore_is_open(const struct filestore_file *f);
/* Whether a lookup in f has to wait for others. */
bool filestore_must_wait(const struct filestore_file *f);
/* If it is not known whether f is slow, makes the patient worker find out. */
void filestore_try_patiently(struct filestore_file *f);
/* Records that a lookup in f took this much cpu time. If it took more than slow_ns, f is slow. */
void filestore_took(struct filestore_file *f, uint64_t worked_ns, uint64_t slow_ns);
/* Call it after a lookup in f's program returned VERDICT_AGAIN. 0: repeat the lookup now;
 * FILESTORE_WAIT: repeat it when filestore_get returns the program again. */
int filestore_complete(struct filestore *s, struct filestore_file *f, uint64_t now_ns);
/* Call it after lookups in f: charges the memory, and closes other programs if needed. */
void filestore_charge(struct filestore *s, struct filestore_file *f);
/* Records the place where the file for a request was found. Call it before filestore_answer. */
void filestore_place(struct filestore *s, uint64_t id, uint64_t place);
/* Takes an answer. fd is owned by s from then on; -1: the file is missing. The fd of an unknown id
 * is closed. */
void filestore_answer(struct filestore *s, uint64_t id, int fd, uint64_t now_ns);
/* The caller worked for this long, and took no answers meanwhile. So open requests have longer to
 * come. Call it before filestore_tick. */
void filestore_worked(struct filestore *s, uint64_t ns, uint64_t now_ns);
/* Closes idle programs, sends requests that could not be sent, and gives up overdue ones. */
void filestore_tick(struct filestore *s, uint64_t now_ns);
/* Closes all programs that can be opened again. Call it if an allocation failed. */
void filestore_relieve(struct filestore *s);
/* Returns when filestore_tick has something to do for a request; 0: there is none. */
uint64_t filestore_deadline(const struct filestore *s);
/* Closes f and forgets every request for it. */
void filestore_drop(struct filestore *s, struct filestore_file *f);

#endif
