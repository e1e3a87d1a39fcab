/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The targets: options that choose processes and cpus beside -p. They are a part of sampling.h, so
 * profpipe takes them from the user and passes them on to prof-bpf, whose BPF programs decide.
 *
 *   --cgroup PATH         processes of a cgroup and of all below it
 *   --container ID        of a container (container.h), by at least 12 digits of its id
 *   --unit NAME           of a systemd unit
 *   --comm NAME           whose main thread has this name; NAME*: whose name begins with NAME
 *   --user USER           of a user, by name or number: the real uid of the thread
 *   --exclude-KIND        the same for those that are not to be sampled; also --exclude-pid PID
 *   --cpu LIST            only these cpus
 *   --min-age SECONDS     only processes that are at least this old
 *   --descendants         --pid and --exclude-pid also name the descendants of their processes
 *
 * Cgroups, containers and units are one kind, since each names a cgroup. A process must match one
 * of the given values of each kind that has any, and no excluded value of any kind.
 */
#ifndef COMMON_CELL_TARGETS_TARGETS_H
#define COMMON_CELL_TARGETS_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/command/cmdline.h"
#include "common/base/command/words.h"
#include "common/base/system/cpulist.h"

#define TARGETS_MAX 1024      /* of all kinds together */
#define TARGETS_COMM 15	      /* bytes of a name; the kernel truncates longer ones */
#define TARGETS_NAME_MOST 239 /* bytes of the last component of a cgroup's path */

enum targets_kind {
	TARGETS_CGROUP,
	TARGETS_CONTAINER,
	TARGETS_UNIT,
	TARGETS_COMM_NAME,
	TARGETS_USER,
	TARGETS_PID, /* only for --exclude-pid */
};

struct target {
	enum targets_kind kind;
	bool exclude;
	const char *text; /* as given; borrowed from the command line */
	uint32_t number;  /* TARGETS_USER: the uid; TARGETS_PID: the pid */
};

/* All zero: no restrictions. */
struct targets {
	struct target list[TARGETS_MAX];
	size_t count;
	struct cpulist cpus; /* empty: all cpus */
	double min_age;	     /* in seconds; 0: any age */
	bool descendants;
};

/* The values of these options. Those that make a struct target are TARGETS_OPTION plus twice the
 * kind, plus one to exclude. */
enum {
	TARGETS_OPTION = 1400,
	TARGETS_OPTION_CPU = 1450,
	TARGETS_OPTION_MIN_AGE,
	TARGETS_OPTION_DESCENDANTS,
};
/* Whether the option may be repeated. */
static inline bool targets_repeat(int val)
{
	return val >= TARGETS_OPTION && val < TARGETS_OPTION_CPU;
}
#define TARGETS_OPTION_OF(kind, exclude) (TARGETS_OPTION + 2 * (kind) + (exclude))
#define TARGETS_BOTH(name, kind) \
	{ name, required_argument, NULL, TARGETS_OPTION_OF(kind, 0) }, \
	{ \
		"exclude-" name, required_argument, NULL, TARGETS_OPTION_OF(kind, 1) \
	}
#define TARGETS_OPTIONS \
	TARGETS_BOTH("cgroup", TARGETS_CGROUP), TARGETS_BOTH("container", TARGETS_CONTAINER), \
		TARGETS_BOTH("unit", TARGETS_UNIT), TARGETS_BOTH("comm", TARGETS_COMM_NAME), \
		TARGETS_BOTH("user", TARGETS_USER), \
		{ "exclude-pid", required_argument, NULL, TARGETS_OPTION_OF(TARGETS_PID, 1) }, \
		{ "cpu", required_argument, NULL, TARGETS_OPTION_CPU }, \
		{ "min-age", required_argument, NULL, TARGETS_OPTION_MIN_AGE }, \
	{ \
		"descendants", no_argument, NULL, TARGETS_OPTION_DESCENDANTS \
	}

/* For a tool's --help. */
#define TARGETS_USAGE \
	"TARGETS say which processes to sample. The kernel decides, before it walks a stack:\n" \
	"  --cgroup PATH       those of this cgroup and of all below it\n" \
	"  --container ID      those of a container, by the first 12 to 64 digits of its id\n" \
	"  --unit NAME         those of a systemd unit\n" \
	"  --comm NAME         those of this name; NAME*: those whose name begins with NAME\n" \
	"  --user USER         those of a user, by name or number\n" \
	"  --exclude-cgroup PATH, --exclude-container ID, --exclude-unit NAME,\n" \
	"  --exclude-comm NAME, --exclude-user USER, --exclude-pid PID\n" \
	"                      leave these out, whatever else they match\n" \
	"  --descendants       --pid and --exclude-pid also name all descendants\n" \
	"  --cpu LIST          sample only these cpus, such as 0-3,5\n" \
	"  --min-age SECONDS   sample only processes that are at least this old\n" \
	"Each may be repeated. A process must match one value of each kind that is given.\n" \
	"Cgroups, containers and units are one kind.\n"

/* Whether val is one of the options above. */
bool targets_has(int val);
/* Takes the current option of *c. EXITS_GO_ON; EXITS_USAGE; EXITS_FAILED (no such user or cpu),
 * logged. */
int targets_option(struct targets *t, const struct cmdline *c, int val);
/* Appends options from which targets_option makes the same settings. */
void targets_words(const struct targets *t, struct words *w);
/* Whether the decision about a process needs more than its pid. */
bool targets_any(const struct targets *t);
/* Whether a value of this kind was given. exclude: one that excludes. */
bool targets_have(const struct targets *t, enum targets_kind kind, bool exclude);
/* Returns a target that excludes the only processes that targets of its kind include; NULL: there
 * is none. */
const struct target *targets_contradiction(const struct targets *t);
/* The long name of a target's option, such as "exclude-unit". Static. */
const char *targets_name(const struct target *t);

#endif
