/* SPDX-License-Identifier: Apache-2.0 */
/* The job of prof-export: one stream becomes outputs, and requests of OTLP. by_hand.c and
 * deployed.c have the two ways in which the stream comes. */
#ifndef PROF_EXPORT_JOB_H
#define PROF_EXPORT_JOB_H

#include "common/status/status.h"
#include "tools/prof-export/options.h"
#include "tools/prof-export/session/sending.h"
#include "tools/prof-export/session/session.h"
#include "tools/prof-export/session/turnover.h"

struct job {
	struct session session;
	struct sending sending;
	struct turnover turnover;
	struct status status;
};
#define JOB_INIT \
	{ \
		.turnover = { \
			.socket = -1, \
			.output = -1, \
			.journal = -1, \
			.next_output = -1, \
			.next_journal = -1 \
		} \
	}

/* Returns the remedy for an error of session_init. */
const char *job_remedy(int r);
/* Begins the session, whose output is fd. A part of main (exits.h). */
int job_begin(struct job *job, const struct options *o, int fd);
/* Brings job->status up to date. with_top: for the last time. */
void job_status(struct job *job, bool with_top);
/* Writes the output, and logs what it lacks. verdict: the last one of session_feed, or -errno.
 * what, output: their names. An exit status. */
int job_finish(struct job *job, const struct options *o, int verdict, const char *what,
	       const char *output);

#endif
