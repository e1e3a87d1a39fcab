/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turnover: writes one output after another without interrupting the stream. The launcher opens the
 * files. It sends the descriptors of the next output and its journal over a socket, and asks
 * prof-symd to begin a new epoch. With the first bytes of an epoch, the session switches to the
 * next output. So each output has all definitions that it needs, and memory starts from zero.
 */
#ifndef PROF_EXPORT_SESSION_TURNOVER_H
#define PROF_EXPORT_SESSION_TURNOVER_H

#include "common/cell/deploy.h"
#include "tools/prof-export/session/journal.h"

struct turnover {
	int socket;	     /* the launcher's, borrowed; -1: there is only one output */
	int output, journal; /* owned: the output that is written now */
	uint64_t file;	     /* its number, which the launcher chose */
	uint64_t next_file;
	int next_output, next_journal; /* owned; -1: no next output yet */
	struct status sum;	       /* sum of the figures of former outputs */
};

/* Takes the launcher's messages: the next output, and at first the sum of earlier outputs. */
void turnover_look(struct turnover *t);
/* Whether a next output is open and these bytes begin an epoch. */
bool turnover_due(const struct turnover *t, struct session *s, struct span bytes);
/* Completes the output, switches the session and the journal to the next one, and tells the
 * launcher. Returns 0, or an error of the completed output; the next one has begun in any case. */
int turnover_run(struct turnover *t, struct session *s, struct journal *j);
/* Adds the figures of former outputs to those of the present one. */
void turnover_status(const struct turnover *t, struct status *st);

#endif
