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
#include "common/base/command/cmdline.h"
#include "common/cell/budget/budget.h"
#include "common/cell/confine/sandbox.h"
#include "common/status/status.h"

/* For a tool's --help, below the options of a deployment. */
#define DEPLOY_USAGE \
	"    --ids: the run's group, then the users of prof-bpf, prof-deltas, prof-symd,\n" \
	"    prof-export and (N) prof-send\n"

/* The launcher takes the ids of a run from one of these ranges, which contain no other user. Nobody
 * can predict which: a container's root may take any id, and could use up what the kernel allows
 * one user. */
#define DEPLOY_IDS_BASE 2000000000u
#define DEPLOY_IDS_STEP 16u
#define DEPLOY_IDS_RANGES (1u << 23)
#define DEPLOY_IDS_LAST (DEPLOY_IDS_BASE + DEPLOY_IDS_RANGES * DEPLOY_IDS_STEP - 1u)

/* The id of prof-dump's half without rights: it follows all ranges, since a dump takes no range. */
#define DEPLOY_IDS_DUMP (DEPLOY_IDS_LAST + 1u)

/* Whether a user is one of the tools of some run of profpipe on this host. */
static inline bool deploy_is_tool(uint32_t uid)
{
	return uid >= DEPLOY_IDS_BASE && uid <= DEPLOY_IDS_DUMP;
}

/* The id of prof-metrics in a range: the last one, which no other tool has. */
#define DEPLOY_IDS_METRICS (DEPLOY_IDS_STEP - 1u)

enum deploy_tool {
	DEPLOY_BPF,
	DEPLOY_DELTAS,
	DEPLOY_SYMD,
	DEPLOY_EXPORT,
	DEPLOY_TOOLS, /* the tools that every run has */
	DEPLOY_SEND = DEPLOY_TOOLS,
	DEPLOY_USERS
};
static_assert((int)DEPLOY_TOOLS == STATUS_TOOLS, "status words count restarts of each tool");

/* The launcher's orders to prof-bpf, one byte each; DEPLOY_EPOCH goes to prof-symd. */
enum deploy_order {
	DEPLOY_STOP = 'S',  /* stop sampling, and finish */
	DEPLOY_PAUSE = 'P', /* take no samples until DEPLOY_RESUME */
	DEPLOY_RESUME = 'R',
	DEPLOY_EPOCH = 'E',	/* begin a new epoch */
	DEPLOY_CPU_LIMIT = 128, /* this value plus the new --cpu-limit; limit 0: none */
	DEPLOY_CPU_LIMIT_LAST = DEPLOY_CPU_LIMIT + 100
};

/* The launcher's message to prof-export: facts about the stream's senders, which the stream lacks.
 * The launcher sends the whole struct whenever anything in it changes. */
struct deploy_word {
	uint64_t last;	/* 1: no other prof-symd will come */
	uint64_t taken; /* number of samples that all prof-bpfs of the run reported */
	/* CLOCK_MONOTONIC of the end of sampling, if no prof-bpf ran then; else 0. */
	uint64_t until_ns;
	uint64_t restarts[DEPLOY_TOOLS];
};

/* The messages on --next-fd. The launcher sends prof-export the descriptors of the next output and
 * of its journal. Without descriptors, the message is about the present output. prof-export sends
 * one after it has switched to the next output. */
struct deploy_next {
	uint64_t file;	   /* the number of that output */
	uint64_t failed;   /* 1: the output before it could not be written */
	struct status sum; /* the figures of all outputs before it */
};

struct deploy {
	const char *run_dir; /* NULL: run by hand */
	bool ids_given;
	gid_t gid;
	bool send_given;	 /* the ids include that of prof-send */
	uid_t uid[DEPLOY_USERS]; /* our own uid for all of them if not given */
	int status_fd, life_fd;	 /* -1 when not given */
	uint64_t limit;		 /* bytes; 0 when not given */
	unsigned extra;		 /* tools that share it (BUDGET_SEND, BUDGET_METRICS) */
	/* Called by deploy_enter with the tool's identity, while it may still start a process. May
	 * be NULL. If the result is not 0, the function has logged the reason, and deploy_enter
	 * returns it. */
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
/* Divides the limit, or BUDGET_DEFAULT if none was given. Not for tools that are run by hand
 * without a limit. */
void deploy_budget(const struct deploy *d, struct budget *ret);
/* Checks that the descriptor of this option is open, and makes it O_CLOEXEC; -1 is ignored. Returns
 * 0, or -errno, logged. */
int deploy_check_fd(const char *option, int fd);
/* Enters the identity of `tool` (sandbox.h), after setting the ids and change_ids in *s, and the
 * tool's cell (cell.h), which prof-bpf and prof-send do not have. Checks the folder and the given
 * descriptors, makes the status pipe O_NONBLOCK, and ignores SIGPIPE if there is such a pipe.
 * Returns 0, or -errno, logged. */
int deploy_enter(const struct deploy *d, enum deploy_tool tool, struct sandbox *s);
/* Call it after the sockets are connected and before a peer's first byte is read. From then on no
 * thread of a tool without rights (all but prof-bpf) can open anything (cell.h). Returns 0, or
 * -errno, logged. */
int deploy_seal(void);
/* Whether the launcher closed the life pipe, which means that the tool has to exit. Discards
 * everything that the launcher wrote, except DEPLOY_EPOCH, which sets *epoch (may be NULL). So this
 * is not for tools that get other messages from it. Never blocks. Returns false for -1. */
bool deploy_life_over(int life_fd, bool *epoch);
/* Sets st's magic and phase, and writes it. If the pipe is full, a RUNNING report is dropped, and
 * other reports wait up to a second. Does nothing without a status pipe or a launcher. */
void deploy_status(const struct deploy *d, struct status *st, enum status_phase phase);

#endif
