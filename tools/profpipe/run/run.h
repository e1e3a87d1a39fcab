/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: what the launcher knows while the tools stand, what it starts and stops of them, and what
 * it says. The loop is in record.c, what the end of a tool means in ended.c, the summary in
 * conclude.c.
 */
#ifndef PROFPIPE_LAUNCHER_RUN_H
#define PROFPIPE_LAUNCHER_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include "common/status/account.h"
#include "common/cell/deploy.h"
#include "tools/profpipe/run/children.h"
#include "tools/profpipe/run/command.h"
#include "tools/profpipe/run/identity.h"
#include "tools/profpipe/options.h"
#include "tools/profpipe/run/outputs.h"
#include "tools/profpipe/run/restarts.h"
#include "tools/profpipe/run/rundir.h"

enum phase { STARTING, SAMPLING, FINISHING, OVER };

struct run {
	const struct options *o;
	struct child tools[DEPLOY_TOOLS];
	struct identity who;
	struct rundir dir;
	struct command command;
	struct output output, summary;
	int signals, journal;
	enum phase phase;
	bool broken; /* prof-bpf or prof-symd ended while the last samples went through it: the
			stream has no end, and that was said */
	unsigned symd_for; /* which prof-export, by its restarts, was there when prof-symd began */
	bool tty, line_shown, failed, mute, held_said;
	bool asked, by_terminal,
		aborted; /* a signal came; from the terminal, which reaches COMMAND too */
	int status;	 /* exit status when not 0 or 1 */
	struct restarts again[DEPLOY_TOOLS];
	uint64_t said_ns[DEPLOY_TOOLS]; /* when its last end was told */
	double seconds;			/* 0: until stopped */
	uint64_t oom_kills;		/* of the host, before the run */
	uint64_t start_ns, since_ns, sampling_ns, sampled_ns;
	uint64_t looked_ns, ticked_ns, measured_ns;
	uint64_t held_ns;		/* since when its reader is waited for; 0: it is not */
	uint64_t progress_ns, progress; /* of prof-export while finishing: when its figures moved,
					   and a sum of them */
	uint64_t away_ns;		/* since when prof-bpf is seen to be away; 0: it is not */
	bool last;			/* prof-export is to wait for no further prof-symd */
	uint64_t command_asked_ns;	/* when COMMAND was asked to end; 0: it was not */
	uint64_t taken;			/* by former lives of prof-bpf, as they said last */
	uint64_t asleep_ns; /* what the host had slept since its boot when sampling began */
	uint64_t pss_peak;  /* of all together */
};

uint64_t run_ms_since(uint64_t then_ns);
struct child *run_tool(struct run *r, enum deploy_tool t);
/* The line of progress goes, before anything else is written. */
void run_clear_line(struct run *r);
/* An error, and the run has failed. */
__attribute__((format(printf, 2, 3))) void run_fail(struct run *r, const char *fmt, ...);
/* A line of a tool's (child_show); ctx: the run. */
void run_show(void *ctx, const struct child *c, const char *line);
/* 0, or -errno, said. */
int run_start_tool(struct run *r, enum deploy_tool t);
/* All stand, and samples flow. */
void run_begin(struct run *r);
/* What the tools take of memory. */
void run_measure(struct run *r);
/* Asks COMMAND to end, once, if whoever started the run has told so: by a signal, or by -d, whose
 * time is over. That sampling ended for another reason is nothing to COMMAND. */
void run_ask_command(struct run *r);
/* prof-bpf is away from now on. */
void run_away(struct run *r);
/* Tells prof-export what it does not have from the stream (struct deploy_word). */
void run_tell(struct run *r);
/* Sampling ends, if it has not; what was collected goes on to the output. */
void run_finish(struct run *r);
bool run_targets_gone(struct run *r);

#endif
