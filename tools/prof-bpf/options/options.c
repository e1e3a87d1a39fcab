/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/options/options.h"

#include "common/base/command/cmdline.h"
#include "common/base/command/exits.h"
#include "common/base/files/outfile.h"

#define TABLES_DEFAULT (64u << 20)
#define TABLES_LEAST (2u << 20)
#define TABLES_MOST (512u << 20)

/* clang-format off */
static const char usage[] =
	"usage: prof-bpf [-F HZ] [-d SECONDS] [-p PID]... [--follow PID] [-o FILE] [--mode MODE]\n"
	"                [--tables SIZE] [--memory-limit SIZE] [--cpu-limit PERCENT]\n"
	"                [--read-memory interpreters|none]\n"
	"                [--env NAME]... [--cmdline] [--host-id ID]\n"
	"                [--ignore-unsafe-kernel] [-v] [TARGETS]\n"
	"       prof-bpf --check\n"
	"\n"
	"Sample every cpu, and write the raw stream to FILE or standard output.\n"
	"\n"
	SAMPLING_USAGE("", "")
	"  --follow PID        sample only this process and its descendants, until all have\n"
	"                      ended\n"
	"  -o, --output FILE   write to FILE\n"
	OUTFILE_USAGE
	"  --tables SIZE       size limit of the unwind tables, 2M to 512M (default 64M)\n"
	BUDGET_USAGE
	"  --check             check what this host supports, and exit\n"
	CMDLINE_USAGE
	"\n"
	TARGETS_USAGE
	"\n"
	"In a deployment (see prof-bpf(1)):\n"
	"  --run-dir DIR --ids GID:B:D:S:E --memory-limit SIZE --status-fd N --life-fd N "
	"--resume\n"
	"    [--with-send] [--with-metrics]\n"
	DEPLOY_USAGE
	"Internal: --cpus EVENTS, the process that opens events of cpus that come online\n";
/* clang-format on */

enum { OPTION_FOLLOW = 1, OPTION_TABLES, OPTION_RESUME, OPTION_CHECK, OPTION_CPUS, OPTION_MODE };

static int take_option(struct options *o, const struct cmdline *c, int val)
{
	int r = EXITS_GO_ON;
	uint64_t n = 0;

	switch (val) {
	case OPTION_FOLLOW:
		return cmdline_pid(c, &o->follow);
	case OPTION_TABLES:
		r = cmdline_size(c, TABLES_LEAST, TABLES_MOST, &n);
		o->table_bytes = (size_t)n;
		return r;
	case OPTION_RESUME:
		o->resume = true;
		return r;
	case OPTION_CHECK:
		o->check = true;
		return r;
	case OPTION_CPUS:
		o->cpus = true;
		return cpus_events_parse(c->value, &o->events)
			       ? EXITS_GO_ON
			       : cmdline_refuse(c, "no such events; only for prof-bpf's own use");
	case OPTION_MODE:
		return cmdline_mode(c, &o->mode);
	case 'o':
		return cmdline_path(c, &o->output);
	default:
		return sampling_has(val) ? sampling_option(&o->sampling, c, val)
					 : deploy_option(&o->deploy, c, val);
	}
}

int options_parse(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "mode", required_argument, NULL, OPTION_MODE },
		{ "follow", required_argument, NULL, OPTION_FOLLOW },
		{ "tables", required_argument, NULL, OPTION_TABLES },
		{ "resume", no_argument, NULL, OPTION_RESUME },
		{ "check", no_argument, NULL, OPTION_CHECK },
		{ "cpus", required_argument, NULL, OPTION_CPUS },
		SAMPLING_OPTIONS,
		DEPLOY_OPTIONS,
		CMDLINE_OPTIONS,
		{ 0 },
	};
	struct cmdline c = { .tool = "prof-bpf",
			     .usage = usage,
			     .shorts = ":F:d:p:o:vh",
			     .longs = longs,
			     .argc = argc,
			     .argv = argv };

	*ret = (struct options){ .sampling.hz = SAMPLING_HZ_DEFAULT, .mode = OUTFILE_MODE };
	deploy_init(&ret->deploy);
	for (int val = cmdline_next(&c); val != CMDLINE_END; val = cmdline_next(&c)) {
		const int r = val == CMDLINE_EXIT ? c.status : take_option(ret, &c, val);

		if (r != EXITS_GO_ON)
			return r;
	}
	if (optind < argc)
		return cmdline_refuse_all("%s: not an option; prof-bpf takes options only",
					  argv[optind]);
	if (ret->follow && ret->sampling.pid_count)
		return cmdline_refuse_all("--follow: not together with --pid; give one of them");
	if (sampling_check(&ret->sampling) != EXITS_GO_ON)
		return EXITS_USAGE;
	/* --check reports to profpipe doctor; neither --check nor the helper is part of a run. */
	if (!ret->check && !ret->cpus &&
	    deploy_check_options(&ret->deploy, DEPLOY_BPF) != EXITS_GO_ON)
		return EXITS_USAGE;
	/* By hand there is no limit for all memory, so the tables get a fixed one. */
	if (!ret->table_bytes && !ret->deploy.run_dir && !ret->deploy.limit)
		ret->table_bytes = TABLES_DEFAULT;
	return EXITS_GO_ON;
}

bool options_follow_forks(const struct options *o)
{
	return o->follow || o->sampling.targets.descendants;
}
