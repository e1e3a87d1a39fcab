/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: the state of the launcher while the tools run, and how it starts and stops them. The loop
 * is in record.c, the handling of ended tools in reaper.c, the summary in conclude.c.
 */
#ifndef PROFPIPE_RUN_RUN_H
#define PROFPIPE_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/deploy.h"
#include "common/status/account.h"
#include "tools/profpipe/options/options.h"
#include "tools/profpipe/run/children.h"
#include "tools/profpipe/run/command.h"
#include "tools/profpipe/run/delivery.h"
#include "tools/profpipe/run/folder.h"
#include "tools/profpipe/run/identity.h"
#include "tools/profpipe/run/outputs.h"
#include "tools/profpipe/run/restarts.h"
#include "tools/profpipe/run/rundir.h"

struct always;

enum run_phase { RUN_STARTING, RUN_SAMPLING, RUN_FINISHING, RUN_OVER };

struct run {
	const struct options *o;
	struct always *always; /* of `profpipe run`; NULL: this is `record` */
	bool rests;	       /* prof-bpf is to take no samples now */
	struct child tools[DEPLOY_USERS];
	struct identity who;
	struct rundir dir;
	struct command command;
	struct outfile output, summary;
	struct folder folder; /* instead of `output` */
	int signals, journal;
	enum run_phase phase;
	bool broken; /* prof-bpf or prof-symd ended while it passed on the last samples: the stream
			has no end, and the user was told */
	unsigned symd_for; /* restarts of prof-export when prof-symd started: its peer then */
	bool tty, line_shown, failed, mute, held_said;
	bool asked, aborted; /* a signal asked the run to end; to end without its output */
	bool by_terminal;    /* the signal came from the terminal, so COMMAND got it too */
	int status;	     /* exit status when not 0 or 1 */
	struct restarts again[DEPLOY_USERS];
	uint64_t said_ns[DEPLOY_USERS]; /* when the user was last told of its end */
	double seconds;			/* 0: until stopped */
	uint64_t oom_kills;		/* of the host, before the run */
	uint64_t start_ns, since_ns, sampling_ns, sampled_ns;
	uint64_t looked_ns, ticked_ns, measured_ns;
	uint64_t held_ns;		/* since when the output waits for its reader; 0: not */
	uint64_t progress_ns, progress; /* while finishing: when the sum of prof-export's figures
					   last changed, and the sum */
	uint64_t away_ns;		/* since when prof-bpf does not run; 0: it runs */
	bool last;			/* prof-export must not wait for another prof-symd */
	uint64_t command_asked_ns;	/* when COMMAND was asked to end; 0: not yet */
	struct delivery_sum made, sent; /* of former prof-exports and prof-sends */
	uint64_t taken;			/* samples of former prof-bpfs, by their last words */
	uint64_t asleep_ns;    /* how long the host had been suspended when sampling began */
	uint64_t pss_peak;     /* of all tools together */
	uint64_t launcher_pss; /* profpipe's own */
};

uint64_t run_ms_since(uint64_t then_ns);
struct child *run_tool(struct run *r, enum deploy_tool t);
/* How many tools this run has: DEPLOY_SEND is the last one. */
int run_tools(const struct run *r);
/* The descriptors of the output and of the journal for prof-export; -1: there is none. */
int run_output_fd(const struct run *r);
int run_journal_fd(const struct run *r);
/* The name of the output in messages. */
const char *run_output(const struct run *r);
/* Removes the progress line, before any other output. */
void run_clear_line(struct run *r);
/* Logs an error, and marks the run as failed. */
__attribute__((format(printf, 2, 3))) void run_fail(struct run *r, const char *fmt, ...);
/* Shows a log line of a tool (child_show); ctx: the run. */
void run_show(void *ctx, const struct child *c, const char *line);
/* 0, or -errno, logged. */
int run_start_tool(struct run *r, enum deploy_tool t);
/* All tools are ready, and samples come. */
void run_begin(struct run *r);
/* Measures the memory of the tools. */
void run_measure(struct run *r);
/* Asks COMMAND to end, once, but only if the user ended the run, by a signal or by -d. If sampling
 * ended for another reason, COMMAND runs on. */
void run_ask_command(struct run *r);
/* Notes that prof-bpf does not run from now on. */
void run_away(struct run *r);
/* Tells prof-export the facts that the stream lacks (struct deploy_word). */
void run_tell(struct run *r);
/* Ends sampling, unless it has ended. The collected samples still go to the output. */
void run_finish(struct run *r);
bool run_targets_gone(struct run *r);

#endif
