/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the command line that the subcommands share. */
#ifndef PROFPIPE_OPTIONS_OPTIONS_INTERNAL_H
#define PROFPIPE_OPTIONS_OPTIONS_INTERNAL_H

#include "common/base/command/cmdline.h"
#include "tools/profpipe/options/options.h"

enum {
	OPTION_SUMMARY = 1,
	OPTION_LINES,
	OPTION_INTERPRETER,
	OPTION_CODE,
	OPTION_LIMIT,
	OPTION_JSON,
	OPTION_MODE,
	OPTION_CHANCE,
	OPTION_INTERVAL,
	OPTION_METRICS,
	OPTION_SETTINGS,
	OPTION_CHECK,
	OPTION_DIR,
	OPTION_ROTATE,
	OPTION_KEEP,
	OPTION_KEEP_SIZE
};

/* Options of record, run and report. */
#define OPTIONS_OF_OUTPUT \
	{ "output", required_argument, NULL, 'o' }, { "format", required_argument, NULL, 'f' }, \
		{ "mode", required_argument, NULL, OPTION_MODE }, \
		{ "lines", no_argument, NULL, OPTION_LINES }, \
		{ "interpreter-frames", no_argument, NULL, OPTION_INTERPRETER }, \
		{ "code", no_argument, NULL, OPTION_CODE }, REPORTING_OPTIONS, OTLP_OPTIONS, \
	{ \
		"quiet", no_argument, NULL, 'q' \
	}

/* State of the options that choose the output. */
struct options_choice {
	struct cmdline *line;
	bool format_given;
};

struct cmdline options_line(int argc, char **argv, const char *shorts, const struct option *longs);
/* Takes the current option of choice->line, which may be of any subcommand. Returns EXITS_GO_ON, or
 * the exit status after logging an error. */
int options_take(struct options *o, struct options_choice *choice, int val);
/* Checks the output and chooses its format; standard output must be text if it is a terminal.
 * output: the default path. Returns EXITS_GO_ON, or EXITS_USAGE after logging an error. */
int options_choose_format(struct options *o, const struct options_choice *choice,
			  const char *output);
/* Checks that the targets exist on this host. Units and containers may also start later. Returns
 * EXITS_GO_ON, or EXITS_FAILED after logging an error. */
int options_check_targets(const struct targets *t);

#endif
