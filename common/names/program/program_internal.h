/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a program (program.h), for program.c and for workers.c, which sends requests to
 * workers. */
#ifndef COMMON_NAMES_PROGRAM_PROGRAM_INTERNAL_H
#define COMMON_NAMES_PROGRAM_PROGRAM_INTERNAL_H

#include "common/names/program/program.h"
#include "common/names/program/worker.h"

struct sources;

/* The descriptors of a program. */
enum program_part { PROGRAM_MAIN, PROGRAM_DEBUG, PROGRAM_SHARED, PROGRAM_PARTS };

struct program {
	struct sources *sources; /* owned; set if the files are parsed in this process */
	enum program_class class;
	int fds[PROGRAM_PARTS];	    /* worker: the number of the worker in which it is open */
	uint64_t dwarf_max, worker; /* worker: the number of the one in which it is open */
	unsigned kills;
	uint32_t slot;
	uint64_t owner;
	uint32_t uid;	    /* of its file */
	bool large;	    /* its file is */
	uint64_t worked_ns; /* of the workers, since the last program_worked_ns */
	bool slow;	    /* its lookups go to the patient worker */
	uint64_t grows_ns;  /* since when it waits for more heap; 0: it does not */
	uint64_t full_heap; /* the heap in which its symbols did not fit; 0: they did */
	bool dwarf_lost, too_large;
	bool was_filled; /* it did not fit beside other programs; the next attempt is alone */
	bool lost;	 /* it has no names at all */
	bool opened, unproven, cut, no_v8;
	uint32_t step;
	unsigned again; /* number of wants of the current lookup */
	size_t bytes;
	struct programwire_facts facts;
	bool untold; /* `telling`, with a descriptor or -1, still waits for the worker */
	enum programwire_kind telling;
	int telling_fd;
	uint64_t expected[PROGRAM_EXPECTED]; /* announced for the next lookup */
	uint32_t expected_count;
	uint8_t *ahead; /* answers to expected lookups (programwire_find); NULL: none */
	size_t ahead_len;
};

/* --- the workers of a class (workers.c) --- */

/*
 * Two workers read the files of each class of programs. The prompt one serves most programs. The
 * patient one serves those whose lookups take long, so that other programs need not wait for them.
 * A worker is started when it is first needed, and again after it has ended. The answer to a
 * request is kept until the next request.
 */

/* Gives the program a slot. Returns 0 or -EMFILE. */
int workers_add(struct program *p);
/* Closes the program in its worker, and its descriptors. */
void workers_close(struct program *p);
/* Opens p in its worker if it is not open there, and sends the request unless it is NULL. Tries
 * again in a new worker if that may help. Returns a verdict of sources.h, -ENOMEM, VERDICT_LOST or
 * VERDICT_LATER. */
int workers_ask(struct program *p, const struct programwire_ask *a);
/* Whether no request is sent for p now, because a file of the same user made a worker wait
 * (blockers.h). workers_ask then returns VERDICT_LOST. */
bool workers_rests(const struct program *p);
/* Like workers_ask, for a lookup. Returns SYMFILE_NONE if there is no name. */
int workers_look_up(struct program *p, uint64_t value, uint32_t flags);
/* Sends an answer to a want, with fd, which p owns from then on. If the worker is busy with another
 * program, workers_tell_again sends it. Returns whether the file was the right one. */
bool workers_tell(struct program *p, enum programwire_kind kind, int fd);
/* Sends what still waits for the worker. Returns whether nothing waits any more. */
bool workers_tell_again(struct program *p);
/* Assigns p to the patient worker, or back to the prompt one. */
void workers_move(struct program *p, bool slow);

/* Whether p was opened in its worker, which may have ended since. */
bool workers_is_open(const struct program *p);
/* Whether p is open in its worker, and the worker has not ended. */
bool workers_has(const struct program *p);
/* Whether p's worker is at work on a request, of any program. */
bool workers_is_busy(const struct program *p);
/* Whether p would have to wait because the patient worker of the class is busy. */
bool workers_is_taken(enum program_class class, const struct program *p);
/* Returns answers that came before their lookups (programwire_find). */
struct span workers_ahead(const struct program *p);
/* Returns the answer to the last request, and its names. */
struct programwire_answer *workers_answer(void);
struct names *workers_names(void);

#endif
