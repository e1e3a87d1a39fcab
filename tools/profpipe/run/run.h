/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: the state of the launcher while the tools run, and how it starts and stops them. The loop
 * is in record.c, the handling of ended tools in reaper.c, the summary in finish.c.
 */
#ifndef PROFPIPE_RUN_RUN_H
#define PROFPIPE_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/deploy.h"
#include "common/status/account.h"
#include "tools/profpipe/options/options.h"
#include "tools/profpipe/run/children/child.h"
#include "tools/profpipe/run/children/command.h"
#include "tools/profpipe/run/children/restarts.h"
#include "tools/profpipe/run/children/rundir.h"
#include "tools/profpipe/run/outputs/folder.h"
#include "tools/profpipe/run/outputs/outputs.h"
#include "tools/profpipe/run/rights/identity.h"
#include "tools/profpipe/run/summary/delivery.h"

struct daemon;

enum run_phase { RUN_STARTING, RUN_SAMPLING, RUN_FINISHING, RUN_OVER };

#define RUN_LEFT_BEHIND 16

struct run {
	const struct options *o;
	struct daemon *daemon; /* only of `profpipe run`; NULL: this is `record` */
	bool rests;	       /* prof-bpf is told to take no samples now */
	struct child tools[DEPLOY_USERS];
	struct child *metrics; /* prof-metrics, which the daemon starts; NULL: this is `record` */
	struct identity who;
	struct rundir dir;
	struct command command;
	struct outfile output, summary;
	bool summary_lost;    /* it could not be written */
	struct folder folder; /* used instead of `output` with --output-dir */
	int signals, journal;
	enum run_phase phase;
	/* Prof-bpf or prof-symd ended while it passed on the last samples: the stream has no end,
	 * and the user was told. */
	bool broken;
	/* The number of restarts of prof-export when prof-symd started, which identifies
	 * prof-symd's peer. */
	unsigned symd_for;
	bool tty, line_shown, failed, mute, held_said;
	bool asked, aborted; /* a signal asked to end the run; or to end it without its output */
	bool by_terminal;    /* the signal came from the terminal, so COMMAND also got it */
	int status;	     /* exit status if it is neither 0 nor 1 */
	/* Processes of prof-deltas that the kernel does not end, to be reaped; 0: unused. */
	pid_t left_behind[RUN_LEFT_BEHIND];
	struct restarts again[DEPLOY_USERS];
	bool replaces;	  /* prof-send was asked to end, since another one shall follow it */
	bool send_failed; /* prof-send keeps ending, and is started again only now and then */
	uint64_t said_ns[DEPLOY_USERS]; /* when the user was last told that this tool ended */
	double seconds;			/* 0: until stopped */
	uint64_t oom_kills;		/* count on the host, before the run */
	uint64_t start_ns, since_ns, sampling_ns, sampled_ns;
	uint64_t looked_ns, ticked_ns, measured_ns;
	/* Since when the output waits for a slow reader; 0: it does not. */
	uint64_t held_ns;
	/* In RUN_FINISHING: when the sum of prof-export's figures last changed, and that sum. */
	uint64_t progress_ns, progress;
	uint64_t away_ns;		/* since when no prof-bpf runs; 0: one runs */
	bool last;			/* no other prof-symd will follow */
	uint64_t command_asked_ns;	/* when COMMAND was asked to end; 0: it was not */
	struct delivery_sum made, sent; /* of ended prof-exports and prof-sends */
	/* Requests that earlier prof-sends got, for each of their endpoints; the requests that
	 * prof-export had passed on when the present one started; and its endpoints. */
	uint64_t handed, handed_before, send_endpoints;
	/* Samples of ended prof-bpfs, from their last status words. */
	uint64_t taken;
	uint64_t asleep_ns;    /* total time of suspends on this host until sampling began */
	uint64_t pss_peak;     /* of all tools together */
	uint64_t launcher_pss; /* profpipe's own */
};

uint64_t run_ms_since(uint64_t then_ns);
struct child *run_tool(struct run *r, enum deploy_tool t);
/* The number of tools in this run. DEPLOY_SEND is the last one. */
int run_tools(const struct run *r);
/* The descriptors of the output and of the journal for prof-export; -1: none. */
int run_output_fd(const struct run *r);
int run_journal_fd(const struct run *r);
/* The name of the output in messages. */
const char *run_output(const struct run *r);
/* The requests that all prof-sends got, for each of their endpoints. */
uint64_t run_handed(const struct run *r);
/* Erases the progress line; call it before any other output. */
void run_clear_line(struct run *r);
/* Logs an error, and marks the run as failed. */
__attribute__((format(printf, 2, 3))) void run_fail(struct run *r, const char *fmt, ...);
/* Shows a log line of a tool (child_show); ctx: the run. */
void run_show(void *ctx, const struct child *c, const char *line);
/* Returns 0, or -errno after logging it. */
int run_start_tool(struct run *r, enum deploy_tool t);
/* All tools are ready, and samples arrive. */
void run_begin(struct run *r);
/* Measures the memory of all tools. */
void run_measure(struct run *r);
/* Asks COMMAND to end, once, but only if the user ended the run by a signal or by -d. If sampling
 * ended for another reason, COMMAND continues. */
void run_ask_command(struct run *r);
/* Records that no prof-bpf runs from now on. */
void run_away(struct run *r);
/* Sends prof-export the facts that the stream lacks (struct deploy_word). */
void run_tell(struct run *r);
/* Ends sampling, unless it has ended already. The collected samples still go to the output. */
void run_finish(struct run *r);
bool run_targets_gone(struct run *r);

#endif
