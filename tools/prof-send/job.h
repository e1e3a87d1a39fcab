/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job: everything that prof-send holds while it runs. Its parts are opened with the caller's
 * rights and used after prof-send has confined itself.
 */
#ifndef PROF_SEND_JOB_H
#define PROF_SEND_JOB_H

#include "tools/prof-send/confine.h"
#include "tools/prof-send/options.h"
#include "tools/prof-send/queue/leftovers.h"
#include "tools/prof-send/transfer/sender.h"

struct job {
	const struct options *options;
	struct spool spool;
	struct leftovers leftovers;
	struct lender lender;
	struct lender_file files[LENDER_FILES];
	size_t file_count;
	struct transfer transfers[OPTIONS_ENDPOINTS];
	size_t transfer_count;
	struct sender sender;
	struct confine confine;
};

/* For --check: checks the files that the options name, and logs every error. Opens no connection,
 * and changes no file. EXITS_DONE or EXITS_USAGE. */
int job_check(const struct options *o);

/* Parts of main (exits.h), in this order. */
/* Opens the spool and the files of the options. memory_max: limit in bytes of the requests in
 * memory, for all endpoints together. */
int job_open(struct job *j, const struct options *o, uint64_t memory_max);
/* Takes over the requests in the spool. Call it after the change of user. */
int job_begin(struct job *j);

/* Adds the request to every queue. */
void job_put(struct job *j, struct request *r);
/* Called during a wait. Returns true to end it. */
typedef bool job_stop(void *ctx);
/* Delivers waiting requests for at most this many ms. anew: the time starts again with each
 * answer. */
void job_drain(struct job *j, uint64_t ms, bool anew, job_stop *stop, void *ctx);
/* The number of requests that receivers took or refused. */
uint64_t job_answers(const struct job *j);
/* Ends all transfers and counts the remaining requests. */
void job_end(struct job *j);
/* Prints a line for each endpoint on standard output. Returns false if a request was not
 * delivered. */
bool job_report(const struct job *j);
/* Logs the same lines as warnings, for endpoints that did not get every request. */
bool job_warn(const struct job *j);
void job_done(struct job *j);

#endif
