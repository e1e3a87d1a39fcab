/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crews: the workers that read the files of programs, two for each class. The prompt one serves
 * most programs. The patient one gets those whose lookups take long, so that nobody waits for them
 * (program.h). Requests go to the worker of the program, which is started when it is needed, and
 * again when it ended.
 *
 * The answer to a request is kept until the next request.
 */
#ifndef COMMON_NAMES_PROGRAM_CREW_H
#define COMMON_NAMES_PROGRAM_CREW_H

#include "common/names/program/program_internal.h"
#include "common/names/program/worker.h"

/* The worker crashed, or took too long, and the program has no names. */
enum crew_verdict { CREW_LOST = WORKER_LOST };

/* Gives the program a slot. 0, -EMFILE. */
int crew_add(struct program *p);
/* Closes the program in its worker, and its descriptors. */
void crew_close(struct program *p);
/* Opens p if it is not open, and sends the request unless it is NULL. Tries again in a new worker
 * if that may help. A verdict of sources.h; -ENOMEM; CREW_LOST; PROGRAM_LATER. */
int crew_ask(struct program *p, const struct programwire_ask *a);
/* The same for a lookup. SYMFILE_NONE: it has no name. */
int crew_look_up(struct program *p, uint64_t value, uint32_t flags);
/* Sends an answer to a want, with *fd, which is set to -1 if it was kept. Whether the file was the
 * right one. */
bool crew_tell(struct program *p, enum programwire_kind kind, int *fd);
/* Gives p to the patient worker, or takes it away. */
void crew_move(struct program *p, bool slow);

/* Whether p is open in its worker; the same, and the worker is there; whether that is at a request.
 */
bool crew_is_open(const struct program *p);
bool crew_has(const struct program *p);
bool crew_is_busy(const struct program *p);
/* Whether p would have to wait for the patient worker of the class. */
bool crew_is_taken(enum program_class class, const struct program *p);
/* Answers that came ahead of their lookups (programwire_find). */
struct span crew_ahead(const struct program *p);
/* The answer to the last request. */
struct programwire_answer *crew_answer(void);
struct names *crew_names(void);

#endif
