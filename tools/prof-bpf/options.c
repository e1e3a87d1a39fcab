/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/options.h"

#include <string.h>
#include "common/base/cmdline.h"
#include "common/base/exits.h"

#define HZ_MAX 10000
#define TABLES_DEFAULT (64u << 20)
#define TABLES_LEAST (2u << 20)
#define TABLES_MOST (512u << 20)

static const char usage[] =
	"usage: prof-bpf [-F HZ] [-d SECONDS] [-p PID]... [--follow PID] [-o FILE] "
	"[--tables SIZE]\n"
	"                [--read-memory interpreters|none] [--ignore-unsafe-kernel] [-v]\n"
	"       prof-bpf --check\n"
	"\n"
	"Sample every cpu, and write the raw stream to FILE or standard output.\n"
	"\n"
	"  -F, --frequency HZ   samples per second and cpu, 1 to 10000 (default 99)\n"
	"  -d, --duration S     stop after S seconds (default: on SIGINT)\n"
	"  -p, --pid PID        sample only this process; may be repeated\n"
	"      --follow PID     sample only this process and its descendants, "
	"until all have ended\n"
	"  -o, --output FILE    write to FILE\n"
	"      --tables SIZE    size limit of the unwind tables, 2M to 512M (default 64M)\n"
	"      --read-memory WHOSE\n"
	"                       read memory to name interpreted frames: of processes with\n"
	"                       interpreters (the default), or of none\n"
	"      --ignore-unsafe-kernel\n"
	"                       run even on a kernel that profiling may hang\n"
	"      --check          check what this host supports, and exit\n"
	"  -v, --verbose        log more\n"
	"  -h, --help           print this help\n"
	"      --version        print the version\n"
	"\n"
	"In a deployment (see prof-bpf(1)):\n"
	"  --run-dir DIR --ids GID:B:D:S:E --memory-limit SIZE --status-fd N --life-fd N --resume\n"
	"Internal: --cpus EVENTS, the process that opens events of cpus that come online\n";

enum {
	OPTION_FOLLOW = 1,
	OPTION_TABLES,
	OPTION_MEMORY,
	OPTION_UNSAFE,
	OPTION_RESUME,
	OPTION_CHECK,
	OPTION_CPUS
};

static const char *const read_memory_words[] = { "interpreters", "none" };

static int take_pid(struct options *o, const struct cmdline *c)
{
	uint32_t pid;
	const int r = cmdline_pid(c, &pid);

	if (r != EXITS_GO_ON)
		return r;
	if (o->pid_count == OPTIONS_MAX_PIDS)
		return cmdline_refuse(c, "too many processes; give 1024 at most");
	o->pids[o->pid_count++] = pid;
	return EXITS_GO_ON;
}

static int take_option(struct options *o, const struct cmdline *c, int val)
{
	int r = EXITS_GO_ON;
	uint64_t n = 0;
	size_t word = 0;

	switch (val) {
	case 'F':
		r = cmdline_number(c, 1, HZ_MAX, &n);
		o->hz = (unsigned)n;
		return r;
	case 'd':
		return cmdline_seconds(c, &o->seconds);
	case 'p':
		return take_pid(o, c);
	case OPTION_FOLLOW:
		return cmdline_pid(c, &o->follow);
	case OPTION_TABLES:
		r = cmdline_size(c, TABLES_LEAST, TABLES_MOST, &n);
		o->table_bytes = (size_t)n;
		return r;
	case OPTION_MEMORY:
		r = cmdline_word(c, read_memory_words, 2, &word);
		o->memory_none = word == 1;
		return r;
	case OPTION_UNSAFE:
		o->ignore_unsafe_kernel = true;
		return r;
	case OPTION_RESUME:
		o->resume = true;
		return r;
	case OPTION_CHECK:
		o->check = true;
		return r;
	case OPTION_CPUS:
		o->cpus = true;
		o->cycles = strncmp(c->value, "cycles", 6) == 0;
		o->ksymbols = strstr(c->value, "+ksymbols") != NULL;
		return r;
	case 'o':
		o->output = c->value;
		return r;
	default:
		return deploy_option(&o->deploy, c, val);
	}
}

int options_parse(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "frequency", required_argument, NULL, 'F' },
		{ "duration", required_argument, NULL, 'd' },
		{ "pid", required_argument, NULL, 'p' },
		{ "output", required_argument, NULL, 'o' },
		{ "follow", required_argument, NULL, OPTION_FOLLOW },
		{ "tables", required_argument, NULL, OPTION_TABLES },
		{ "read-memory", required_argument, NULL, OPTION_MEMORY },
		{ "ignore-unsafe-kernel", no_argument, NULL, OPTION_UNSAFE },
		{ "resume", no_argument, NULL, OPTION_RESUME },
		{ "check", no_argument, NULL, OPTION_CHECK },
		{ "cpus", required_argument, NULL, OPTION_CPUS },
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
	int val;

	*ret = (struct options){ .hz = 99 };
	deploy_init(&ret->deploy);
	while ((val = cmdline_next(&c)) != CMDLINE_END) {
		const int r = val == CMDLINE_EXIT ? c.status : take_option(ret, &c, val);

		if (r != EXITS_GO_ON)
			return r;
	}
	if (optind < argc)
		return cmdline_refuse_all("%s: not an option; prof-bpf takes options only",
					  argv[optind]);
	if (ret->follow && ret->pid_count)
		return cmdline_refuse_all(
			"--follow and --pid exclude each other; give one of them");
	/* By hand there is no limit for all memory. */
	if (!ret->table_bytes && !ret->deploy.run_dir && !ret->deploy.limit)
		ret->table_bytes = TABLES_DEFAULT;
	return EXITS_GO_ON;
}
