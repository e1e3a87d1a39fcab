/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/options/subcommands.h"

#include <string.h>
#include "common/base/command/exits.h"
#include "common/base/files/outfile.h"

static int take_options(struct options *o, struct options_choice *choice)
{
	int r = EXITS_GO_ON;

	while (r == EXITS_GO_ON) {
		const int val = cmdline_next(choice->line);

		if (val == CMDLINE_END)
			break;
		r = options_take(o, choice, val);
	}
	o->verbose = choice->line->verbose;
	return r;
}

int options_record(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "summary", required_argument, NULL, OPTION_SUMMARY },
		{ "memory-limit", required_argument, NULL, OPTION_LIMIT },
		SAMPLING_OPTIONS,
		OPTIONS_OF_OUTPUT,
		CMDLINE_OPTIONS,
		{ 0 },
	};
	struct cmdline c = options_line(argc, argv, "+:F:d:p:o:f:qvh", longs);
	struct options_choice choice = { .line = &c };

	*ret = (struct options){ .sampling.hz = SAMPLING_HZ_DEFAULT,
				 .mode = OUTFILE_MODE,
				 .reporting = REPORTING_DEFAULTS };
	const int r = take_options(ret, &choice);

	if (r != EXITS_GO_ON)
		return r;
	if (optind < argc)
		ret->command = argv + optind;
	/* "--" without a command, as from an empty "$@", must not mean the whole host. */
	else if (strcmp(argv[argc - 1], "--") == 0)
		return cmdline_refuse_all("COMMAND: missing after --; name one, or omit --");
	if (ret->command && ret->sampling.pid_count)
		return cmdline_refuse_all(
			"--pid: %u: not together with a COMMAND; give one of them",
			ret->sampling.pids[0]);
	if (sampling_check(&ret->sampling) != EXITS_GO_ON)
		return EXITS_USAGE;
	const int e = options_choose_format(ret, &choice, "flame.html");

	return e == EXITS_GO_ON ? options_check_targets(&ret->sampling.targets) : e;
}

int options_report(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = { OPTIONS_OF_OUTPUT, CMDLINE_OPTIONS, { 0 } };
	struct cmdline c = options_line(argc, argv, ":o:f:qvh", longs);
	struct options_choice choice = { .line = &c };

	*ret = (struct options){ .mode = OUTFILE_MODE, .reporting = REPORTING_DEFAULTS };
	const int r = take_options(ret, &choice);

	if (r != EXITS_GO_ON)
		return r;
	if (argc - optind != 1)
		return cmdline_refuse_all("report: needs exactly one recording; "
					  "see `profpipe --help`");
	ret->input = argv[optind];
	if (ret->otlp.endpoints && ret->output)
		return cmdline_refuse_all("--otlp: not together with -o; run report twice");
	return options_choose_format(ret, &choice, "-");
}

int options_doctor(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, OPTION_JSON },
		SAMPLING_UNSAFE_OPTION,
		CMDLINE_HELP_OPTIONS,
		{ 0 },
	};
	struct cmdline c = options_line(argc, argv, "+:h", longs);
	struct options_choice choice = { .line = &c };

	*ret = (struct options){ 0 };
	const int r = take_options(ret, &choice);

	if (r == EXITS_GO_ON && optind < argc)
		return cmdline_refuse_all("%s: not an option; doctor takes options only",
					  argv[optind]);
	return r;
}

int options_subcommand(int argc, char **argv, int *ret)
{
	static const struct option longs[] = { CMDLINE_HELP_OPTIONS, { 0 } };
	struct cmdline c = options_line(argc, argv, "+:h", longs);

	if (cmdline_next(&c) == CMDLINE_EXIT)
		return c.status;
	if (optind == argc)
		return cmdline_refuse_all(
			"missing subcommand: record, run, report, dump or doctor; "
			"see `profpipe --help`");
	*ret = optind;
	return EXITS_GO_ON;
}
