/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job: all that prof-send holds while it runs. Its parts are opened with the caller's rights,
 * and used behind the confinement.
 */
#ifndef PROF_SEND_JOB_H
#define PROF_SEND_JOB_H

#include "tools/prof-send/confine.h"
#include "tools/prof-send/options.h"
#include "tools/prof-send/transfer/sender.h"

struct job {
	const struct options *options;
	struct spool spool;
	struct lender lender;
	struct lender_file files[LENDER_FILES];
	size_t file_count;
	struct transfer transfers[OPTIONS_ENDPOINTS];
	size_t transfer_count;
	struct sender sender;
	struct confine confine;
};

/* Parts of main (exits.h), in this order. */
/* Opens the spool and the files of the options. memory_max: bytes of requests in memory, for all
 * endpoints. */
int job_open(struct job *j, const struct options *o, uint64_t memory_max);
/* Takes over what waits in the spool. Behind the change of user. */
int job_begin(struct job *j);

/* Ends a wait before its time. Returns true to stop. */
typedef bool job_stop(void *ctx);
/* Delivers what waits, for ms at most. anew: this time begins again with each answer. */
void job_drain(struct job *j, uint64_t ms, bool anew, job_stop *stop, void *ctx);
/* How often a receiver took or refused something. */
uint64_t job_answers(const struct job *j);
/* Ends all transfers and counts what is left. */
void job_end(struct job *j);
/* Prints a line for each endpoint, to standard output. False: some was not delivered. */
bool job_report(const struct job *j);
/* The same as warnings, of endpoints to which some was not delivered. */
bool job_warn(const struct job *j);
void job_done(struct job *j);

#endif
