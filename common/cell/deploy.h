/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool's place in a run: the options that prof-bpf, prof-deltas, prof-symd, prof-export and
 * prof-send share. The launcher or a service manager passes them. Without --run-dir a tool runs by
 * hand: as its caller, on files and pipes.
 *
 *   --run-dir DIR        the run's folder. DIR/bpf and DIR/export belong to those tools, with mode
 *                        0710 and the run's group
 *   --ids GID:B:D:S:E[:N]
 *                        the run's group, and the users of prof-bpf, prof-deltas, prof-symd,
 *                        prof-export and prof-send, as numbers; a tool becomes its own
 *                        user. The last is only for runs with prof-send
 *   --memory-limit SIZE  the limit of the whole run's memory, of which a tool takes its share
 *                        (budget.h). By hand only prof-bpf takes one: it is a whole run then
 *   --with-send, --with-metrics
 *                        the run has these tools, which have a share of that limit as well
 *   --status-fd N        write struct status here
 *   --life-fd N          a pipe from the launcher. prof-bpf gets bytes of enum deploy_order;
 *                        prof-export gets struct deploy_word; end of file means exit now
 */
#ifndef COMMON_CELL_DEPLOY_H
#define COMMON_CELL_DEPLOY_H

#include <stdbool.h>
#include <sys/types.h>
#include "common/base/cmdline.h"
#include "common/cell/budget.h"
#include "common/cell/sandbox.h"
#include "common/status/status.h"

/* The launcher takes the ids of a run from one of these ranges, in which no other user is. */
#define DEPLOY_IDS_BASE 2000000000u
#define DEPLOY_IDS_STEP 16u
#define DEPLOY_IDS_RANGES 64u
#define DEPLOY_IDS_LAST (DEPLOY_IDS_BASE + DEPLOY_IDS_RANGES * DEPLOY_IDS_STEP - 1u)

/* The id of prof-dump's half without rights: behind all ranges, since a dump takes none. */
#define DEPLOY_IDS_DUMP (DEPLOY_IDS_LAST + 1u)

/* The id of prof-metrics in such a range: the last one, which no other tool has. */
#define DEPLOY_IDS_METRICS (DEPLOY_IDS_STEP - 1u)

enum deploy_tool {
	DEPLOY_BPF,
	DEPLOY_DELTAS,
	DEPLOY_SYMD,
	DEPLOY_EXPORT,
	DEPLOY_TOOLS, /* of every run */
	DEPLOY_SEND = DEPLOY_TOOLS,
	DEPLOY_USERS
};
static_assert((int)DEPLOY_TOOLS == STATUS_TOOLS, "status words count restarts of each tool");

/* The launcher's orders to prof-bpf, a byte each; the last one to prof-symd. */
enum deploy_order {
	DEPLOY_STOP = 'S',  /* stop sampling, and finish */
	DEPLOY_PAUSE = 'P', /* take no samples until DEPLOY_RESUME */
	DEPLOY_RESUME = 'R',
	DEPLOY_EPOCH = 'E',	/* begin a new epoch */
	DEPLOY_CPU_LIMIT = 128, /* from here on: the new --cpu-limit; 0: none */
	DEPLOY_CPU_LIMIT_LAST = DEPLOY_CPU_LIMIT + 100
};

/* The launcher's word to prof-export: facts about the stream's senders, which the stream lacks.
 * It sends the whole word whenever any of it changes. */
struct deploy_word {
	uint64_t last;	   /* 1: do not wait for another prof-symd */
	uint64_t taken;	   /* samples that all lives of prof-bpf reported */
	uint64_t until_ns; /* CLOCK_MONOTONIC of the end of sampling, if prof-bpf did not run then;
			      else 0 */
	uint64_t restarts[DEPLOY_TOOLS];
};

/* The words of --next-fd. The launcher sends prof-export the descriptors of the next output and of
 * its journal, or none: then the word is of the present output. prof-export sends a word when it
 * has turned to the next output. */
struct deploy_next {
	uint64_t file;	   /* the number of that output */
	uint64_t failed;   /* 1: the output before it could not be written */
	struct status sum; /* the figures of all outputs before it */
};

struct deploy {
	const char *run_dir; /* NULL: by hand */
	bool ids_given;
	gid_t gid;
	bool send_given;	 /* the ids have prof-send's */
	uid_t uid[DEPLOY_USERS]; /* our own uid for all when not given */
	int status_fd, life_fd;	 /* -1 when not given */
	uint64_t limit;		 /* bytes; 0 when not given */
	unsigned extra;		 /* tools that share it (BUDGET_SEND, BUDGET_METRICS) */
	/* Called by deploy_enter in the tool's identity, while it may still start a process. May
	 * be NULL. deploy_enter returns its result if that is not 0; it has logged the reason. */
	int (*confined)(void *ctx);
	void *confined_ctx;
};

/* The options above, for a tool's long options. */
enum {
	DEPLOY_RUN_DIR = 1000,
	DEPLOY_IDS,
	DEPLOY_STATUS_FD,
	DEPLOY_LIFE_FD,
	DEPLOY_MEMORY_LIMIT,
	DEPLOY_WITH_SEND,
	DEPLOY_WITH_METRICS
};
#define DEPLOY_OPTIONS \
	{ "run-dir", required_argument, NULL, DEPLOY_RUN_DIR }, \
		{ "ids", required_argument, NULL, DEPLOY_IDS }, \
		{ "status-fd", required_argument, NULL, DEPLOY_STATUS_FD }, \
		{ "life-fd", required_argument, NULL, DEPLOY_LIFE_FD }, \
		{ "with-send", no_argument, NULL, DEPLOY_WITH_SEND }, \
		{ "with-metrics", no_argument, NULL, DEPLOY_WITH_METRICS }, \
	{ \
		"memory-limit", required_argument, NULL, DEPLOY_MEMORY_LIMIT \
	}

void deploy_init(struct deploy *d);
const char *deploy_tool_name(enum deploy_tool tool);
/* Takes the current option of *c; val: its value in DEPLOY_OPTIONS. EXITS_GO_ON, or EXITS_USAGE,
 * logged. */
int deploy_option(struct deploy *d, const struct cmdline *c, int val);
/* Call it after the last option. EXITS_GO_ON, or EXITS_USAGE, logged: an option would have no
 * effect without --run-dir. */
int deploy_check_options(const struct deploy *d, enum deploy_tool tool);
/* Divides the limit, or BUDGET_DEFAULT if none was given. A tool by hand without a limit does not
 * call it. */
void deploy_budget(const struct deploy *d, struct budget *ret);
/* Checks that a descriptor of this option is open, and makes it O_CLOEXEC; nothing for -1. 0, or
 * -errno, logged. */
int deploy_check_fd(const char *option, int fd);
/* Enters the identity of `tool` (sandbox.h), whose ids and change_ids in *s it fills in, and the
 * tool's cell (cell.h), which prof-bpf and prof-send do not have. Checks the folder and the given
 * descriptors, makes the status pipe O_NONBLOCK, and ignores SIGPIPE if there is such a pipe. 0, or
 * -errno, logged. */
int deploy_enter(const struct deploy *d, enum deploy_tool tool, struct sandbox *s);
/* Call it after the sockets are connected, before the first byte of a peer is read. From then on no
 * thread of a tool without rights (all but prof-bpf) can open anything (cell.h). 0, or -errno,
 * logged. */
int deploy_seal(void);
/* Whether the launcher closed the life pipe, so that the tool has to exit. Discards what the
 * launcher wrote, except DEPLOY_EPOCH, which sets *epoch (may be NULL). So this is not for tools
 * that get other words from it. Never blocks. False for -1. */
bool deploy_life_over(int life_fd, bool *epoch);
/* Fills in st's magic and phase, and writes it. If the pipe is full, a RUNNING report is dropped,
 * and others wait up to a second. Does nothing without a status pipe or a launcher. */
void deploy_status(const struct deploy *d, struct status *st, enum status_phase phase);

#endif
