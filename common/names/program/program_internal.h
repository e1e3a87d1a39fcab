/* SPDX-License-Identifier: Apache-2.0 */
/* A program (program.h), for program.c, and for workers.c, which has it read by workers. */
#ifndef COMMON_NAMES_PROGRAM_PROGRAM_INTERNAL_H
#define COMMON_NAMES_PROGRAM_PROGRAM_INTERNAL_H

#include "common/names/program/program.h"
#include "common/names/program/worker.h"

struct sources;

/* Of its descriptors. */
enum program_part { PROGRAM_MAIN, PROGRAM_DEBUG, PROGRAM_SHARED, PROGRAM_PARTS };

struct program {
	struct sources *sources; /* owned; set if the files are parsed in this process */
	enum program_class class;
	int fds[PROGRAM_PARTS];	    /* -1: it has none */
	uint64_t dwarf_max, worker; /* worker: the number of the one in which it is open */
	unsigned kills;
	uint32_t slot;
	uint64_t owner;
	uint64_t worked_ns; /* of the workers, since program_worked_ns */
	bool slow;	    /* for the patient worker */
	uint64_t grows_ns;  /* since when it asks for more heap; 0: it does not */
	bool dwarf_lost, too_large;
	bool lost; /* it has no names at all */
	bool opened, unproven, cut;
	uint32_t step;
	unsigned again; /* number of wants of the present lookup */
	size_t bytes;
	struct programwire_facts facts;
	uint64_t expected[PROGRAM_EXPECTED]; /* for the next lookup */
	uint32_t expected_count;
	uint8_t *ahead; /* answers to expected lookups (programwire_find); NULL: none */
	size_t ahead_len;
};

/* --- the workers of a class (workers.c) --- */

/*
 * Two workers read the files of each class of programs. The prompt one serves most programs. The
 * patient one gets those whose lookups take long, so that nobody waits for them. Requests go to the
 * worker of the program, which is started when it is needed, and again when it ended. The answer to
 * a request is kept until the next request.
 */

/* The worker crashed, or took too long, and the program has no names. */
enum workers_verdict { WORKERS_LOST = WORKER_LOST };

/* Gives the program a slot. 0, -EMFILE. */
int workers_add(struct program *p);
/* Closes the program in its worker, and its descriptors. */
void workers_close(struct program *p);
/* Opens p if it is not open, and sends the request unless it is NULL. Tries again in a new worker
 * if that may help. A verdict of sources.h; -ENOMEM; WORKERS_LOST; PROGRAM_LATER. */
int workers_ask(struct program *p, const struct programwire_ask *a);
/* The same for a lookup. SYMFILE_NONE: it has no name. */
int workers_look_up(struct program *p, uint64_t value, uint32_t flags);
/* Sends an answer to a want, with *fd, which is set to -1 if it was kept. Whether the file was the
 * right one. */
bool workers_tell(struct program *p, enum programwire_kind kind, int *fd);
/* Gives p to the patient worker, or takes it away. */
void workers_move(struct program *p, bool slow);

/* Whether p is open in its worker, which may have ended since. */
bool workers_is_open(const struct program *p);
/* Whether p is open in its worker, and the worker has not ended. */
bool workers_has(const struct program *p);
/* Whether p's worker works on a request, of any program. */
bool workers_is_busy(const struct program *p);
/* Whether p would have to wait because the patient worker of the class is busy. */
bool workers_is_taken(enum program_class class, const struct program *p);
/* Answers that came before their lookups (programwire_find). */
struct span workers_ahead(const struct program *p);
/* The answer to the last request. */
struct programwire_answer *workers_answer(void);
struct names *workers_names(void);

#endif
