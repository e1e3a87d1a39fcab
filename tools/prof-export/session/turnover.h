/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turnover: one output after another, without a pause of the stream. The launcher opens the files.
 * It sends the descriptors of the next output and of its journal over a socket, and has prof-symd
 * begin a new epoch. With the first bytes of an epoch, the session turns to the next output. So
 * each output has the definitions that it needs, and all memory begins anew.
 */
#ifndef PROF_EXPORT_SESSION_TURNOVER_H
#define PROF_EXPORT_SESSION_TURNOVER_H

#include "common/cell/deploy.h"
#include "tools/prof-export/session/journal.h"

struct turnover {
	int socket;	     /* the launcher's, borrowed; -1: there is one output only */
	int output, journal; /* owned: what is written */
	uint64_t file;	     /* its number, which the launcher chose */
	uint64_t next_file;
	int next_output, next_journal; /* owned; -1: no output waits */
	struct status sum;	       /* of former outputs */
};

/* Takes the launcher's words: the next output, and at first the sum of those before us. */
void turnover_look(struct turnover *t);
/* Whether one waits, and these bytes begin an epoch. */
bool turnover_due(const struct turnover *t, struct session *s, struct span bytes);
/* Ends the output, turns the session and the journal to the next one, and tells the launcher. 0; an
 * error of the output that ended; the next one has begun in any case. */
int turnover_run(struct turnover *t, struct session *s, struct journal *j);
/* Adds former outputs to the figures of the present one. */
void turnover_status(const struct turnover *t, struct status *st);

#endif
