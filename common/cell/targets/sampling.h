/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of sampling, which profpipe takes from the user and passes on to prof-bpf. profpipe,
 * prof-bpf and the command line between them use one struct, one parser and one printer.
 * SAMPLING_USAGE lists the options; targets.h has those that choose processes.
 */
#ifndef COMMON_CELL_TARGETS_SAMPLING_H
#define COMMON_CELL_TARGETS_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/command/cmdline.h"
#include "common/base/command/words.h"
#include "common/cell/targets/targets.h"

#define SAMPLING_HZ_DEFAULT 99
#define SAMPLING_MAX_PIDS 1024
#define SAMPLING_HOST_ID_MAX 64 /* bytes */
#define SAMPLING_ENV_MAX 16
#define SAMPLING_ENV_NAME_MAX 96 /* bytes */

struct sampling {
	unsigned hz;
	double seconds; /* 0: until stopped */
	uint32_t pids[SAMPLING_MAX_PIDS];
	size_t pid_count;
	unsigned cpu_limit;		   /* percent of all cpus; 0: none */
	bool memory_none;		   /* no tool may read memory of processes */
	const char *env[SAMPLING_ENV_MAX]; /* names of variables; borrowed */
	size_t env_count;
	bool command_lines;
	const char *host_id; /* borrowed; NULL: derived from the machine's id; "": none */
	bool ignore_unsafe_kernel;
	struct targets targets;
};

/* The options above, for a tool's long options, whose short ones need "F:d:p:". */
enum {
	SAMPLING_HZ = 'F',
	SAMPLING_SECONDS = 'd',
	SAMPLING_PID = 'p',
	SAMPLING_CPU_LIMIT = 1100,
	SAMPLING_MEMORY,
	SAMPLING_ENV,
	SAMPLING_COMMAND_LINES,
	SAMPLING_HOST_ID,
	SAMPLING_UNSAFE
};
#define SAMPLING_UNSAFE_OPTION \
	{ \
		"ignore-unsafe-kernel", no_argument, NULL, SAMPLING_UNSAFE \
	}
#define SAMPLING_ENDLESS_OPTIONS \
	{ "frequency", required_argument, NULL, SAMPLING_HZ }, \
		{ "pid", required_argument, NULL, SAMPLING_PID }, \
		{ "cpu-limit", required_argument, NULL, SAMPLING_CPU_LIMIT }, \
		{ "read-memory", required_argument, NULL, SAMPLING_MEMORY }, \
		{ "env", required_argument, NULL, SAMPLING_ENV }, \
		{ "cmdline", no_argument, NULL, SAMPLING_COMMAND_LINES }, \
		{ "host-id", required_argument, NULL, SAMPLING_HOST_ID }, TARGETS_OPTIONS, \
		SAMPLING_UNSAFE_OPTION
#define SAMPLING_OPTIONS \
	{ "duration", required_argument, NULL, SAMPLING_SECONDS }, SAMPLING_ENDLESS_OPTIONS

/* For a tool's --help. hz, limit: more text about the defaults. */
#define SAMPLING_USAGE(hz, limit) \
	"  -F, --frequency HZ  samples per second and cpu, 1 to 10000 (default 99" hz ")\n" \
	"  -d, --duration SECONDS\n" \
	"                      stop after this time (default: run until Ctrl-C)\n" \
	"  -p, --pid PID       sample only this process; may be repeated\n" \
	"  --cpu-limit PERCENT cpu time of all tools, in percent of all cpus over ten seconds\n" \
	"                      (default: no limit" limit "); samples dropped for it are counted\n" \
	"  --read-memory interpreters|none\n" \
	"                      processes whose memory may be read to name interpreted frames;\n" \
	"                      none: these frames have no names (default: interpreters)\n" \
	"  --env NAME          record the value of this environment variable of each sampled\n" \
	"                      process; may be repeated\n" \
	"  --cmdline           record the command line of each sampled process\n" \
	"  --host-id ID        identify this host by ID in profiles (default: derived from\n" \
	"                      /etc/machine-id; an empty ID: none)\n" \
	"  --ignore-unsafe-kernel\n" \
	"                      run even on a kernel that profiling may hang\n"

/* Whether val is one of the options above. */
bool sampling_has(int val);
/* Takes the current option of *c; val: its value in SAMPLING_OPTIONS. EXITS_GO_ON; EXITS_USAGE,
 * EXITS_FAILED (of targets_option), logged. */
int sampling_option(struct sampling *s, const struct cmdline *c, int val);
/* Refuses options that would have no effect together. Call it after the last option. EXITS_GO_ON,
 * EXITS_USAGE. */
int sampling_check(const struct sampling *s);
/* Appends options from which sampling_option makes the same settings. */
void sampling_words(const struct sampling *s, struct words *w);

#endif
