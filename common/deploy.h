/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the launcher tells a tool its place: options that every tool takes alike. Without --run-dir a
 * tool runs by hand, as its caller, on files and pipes.
 *
 *   --run-dir DIR            the run's folder: DIR/bpf and DIR/export are owned by those tools,
 * mode 0710, group = the run's
 *   --ids GID:B:D:S:E        the run's group and the uids of prof-bpf, prof-deltas, prof-symd,
 * prof-export, or their names; a tool enters its own
 *   --limit SIZE             the ceiling of the whole run's memory, of which a tool takes its share
 * (budget.h); by hand there is none when it is not given
 *   --status-fd N            write struct status here
 *   --life-fd N              a pipe from the launcher: the byte 'S' asks prof-bpf to stop sampling
 * and finish; prof-export is told struct deploy_word; end of file means exit now
 */
#ifndef PROFPIPE_DEPLOY_H
#define PROFPIPE_DEPLOY_H

#include <getopt.h>
#include <stdbool.h>
#include <sys/types.h>
#include "common/budget.h"
#include "common/sandbox.h"
#include "common/status.h"

/* Exit status of a tool that lost its peer, or waited for one in vain: whoever started it is to do
 * so again (EX_TEMPFAIL). */
#define DEPLOY_AGAIN 75

enum deploy_tool { DEPLOY_BPF, DEPLOY_DELTAS, DEPLOY_SYMD, DEPLOY_EXPORT, DEPLOY_TOOLS };
static_assert((int)DEPLOY_TOOLS == STATUS_TOOLS, "status words count restarts of each tool");

/* What the launcher tells prof-export, each time all of it, whenever any of it is new: what the
 * stream does not say, since it is about who makes it. */
struct deploy_word {
	uint64_t last;	/* 1: no further prof-symd is to be waited for */
	uint64_t taken; /* samples that all lives of prof-bpf said they took, as far as was heard */
	uint64_t until_ns; /* CLOCK_MONOTONIC: sampling was over then, and prof-bpf away; 0: it was
			      not */
	uint64_t restarts[DEPLOY_TOOLS];
};

struct deploy {
	const char *run_dir; /* NULL: by hand */
	bool ids_given;
	gid_t gid;
	uid_t uid[DEPLOY_TOOLS]; /* our own uid for all when not given */
	int status_fd, life_fd;	 /* -1 when not given */
	uint64_t limit;		 /* bytes; 0 when not given */
	/* Called by deploy_enter in the tool's identity, while it may still start a process; NULL:
	 * nothing is. What it returns but 0 is deploy_enter's, and has been logged. */
	int (*confined)(void *ctx);
	void *confined_ctx;
};

/* The options above, for a tool's long option table; their `val`s lie from 1000 on. */
#define DEPLOY_OPTIONS \
	{ "run-dir", required_argument, NULL, 1000 }, { "ids", required_argument, NULL, 1001 }, \
		{ "status-fd", required_argument, NULL, 1002 }, \
		{ "life-fd", required_argument, NULL, 1003 }, \
	{ \
		"limit", required_argument, NULL, 1004 \
	}

void deploy_init(struct deploy *d);
/* Takes one of the options above. 0, or -EINVAL (the message was logged). */
int deploy_option(struct deploy *d, int val, const char *arg);
/* The shares of the limit: of the default one where none was given, which a tool by hand that has
 * none to keep does not ask for. */
void deploy_budget(const struct deploy *d, struct budget *ret);
/* Enters the identity of `tool` (sandbox.h; ids and change_ids of *s are filled in here) as far as
 * --ids asks for it, and its cell (cell.h), and checks that the given descriptors are open. They
 * are made O_CLOEXEC, the status pipe O_NONBLOCK, and SIGPIPE is ignored where there is one. 0, or
 * -errno, logged. */
int deploy_enter(const struct deploy *d, enum deploy_tool tool, struct sandbox *s);
/* The sockets are there, and nothing of a peer was read: from here on a tool without rights (all
 * but prof-bpf) can open nothing, by any thread of its (cell.h). 0, or -errno, logged. */
int deploy_seal(enum deploy_tool tool);
/* Writes st with the phase, filling in magic and phase. A RUNNING report is dropped when the pipe
 * is full, others wait up to a second; nothing when there is no status pipe, or the launcher is
 * gone. */
void deploy_status(const struct deploy *d, struct status *st, enum status_phase phase);

#endif
