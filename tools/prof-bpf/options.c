/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/log.h"
#include "common/stdfds.h"
#include "tools/prof-bpf/options.h"

#define HZ_MAX 10000
#define TABLE_MIB_DEFAULT 64
#define TABLE_MIB_MAX 512

static const char usage[] =
	"usage: prof-bpf [-F HZ] [-d SECONDS] [-p PID]... [--follow PID] [-o FILE] [--tables MIB]\n"
	"                [--read-memory interpreters|none] [--ignore-unsafe-kernel] [-v]\n"
	"       prof-bpf --check\n"
	"\n"
	"Samples every cpu, and writes the raw stream to FILE or standard output.\n"
	"\n"
	"  -F, --frequency HZ   samples per second and cpu, 1 to 10000 (99)\n"
	"  -d, --duration S     stop after so many seconds (until SIGINT)\n"
	"  -p, --pid PID        only this process; may be repeated\n"
	"      --follow PID     only this process and its descendants, until the last is gone\n"
	"  -o, --output FILE    write here\n"
	"      --tables MIB     ceiling of the unwind tables, 2 to 512 (64)\n"
	"      --read-memory WHOSE\n"
	"                       memory for the names of interpreted frames is read of\n"
	"                       processes with interpreters, or of none (interpreters)\n"
	"      --ignore-unsafe-kernel\n"
	"                       run on a kernel that this may bring to a stand, too\n"
	"      --check          say what this host allows, and end\n"
	"  -v, --verbose        say more\n"
	"      --help, --version\n"
	"\n"
	"For the launcher: --run-dir DIR --ids GID:BPF:DELTAS:SYMD:EXPORT --limit SIZE --status-fd N --life-fd N --resume\n"
	"For itself: --cpus EVENTS, the process that opens events of cpus that come online\n";

enum {
	OPTION_FOLLOW = 1,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_TABLES,
	OPTION_MEMORY,
	OPTION_UNSAFE,
	OPTION_RESUME,
	OPTION_CHECK,
	OPTION_CPUS
};

static bool number(const char *text, unsigned long min, unsigned long max, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && !errno && *ret >= min &&
	       *ret <= max;
}

static int refuse(const char *option, const char *arg, const char *wanted)
{
	log_error("%s %s: %s (see prof-bpf --help)", option, arg, wanted);
	return 2;
}

int options_parse(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "frequency", required_argument, NULL, 'F' },
		{ "duration", required_argument, NULL, 'd' },
		{ "pid", required_argument, NULL, 'p' },
		{ "output", required_argument, NULL, 'o' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "follow", required_argument, NULL, OPTION_FOLLOW },
		{ "tables", required_argument, NULL, OPTION_TABLES },
		{ "read-memory", required_argument, NULL, OPTION_MEMORY },
		{ "ignore-unsafe-kernel", no_argument, NULL, OPTION_UNSAFE },
		{ "resume", no_argument, NULL, OPTION_RESUME },
		{ "check", no_argument, NULL, OPTION_CHECK },
		{ "cpus", required_argument, NULL, OPTION_CPUS },
		{ "help", no_argument, NULL, OPTION_HELP },
		{ "version", no_argument, NULL, OPTION_VERSION },
		DEPLOY_OPTIONS,
		{ 0 },
	};
	unsigned long n;
	char *end;
	int c;

	*ret = (struct options){ .hz = 99 };
	deploy_init(&ret->deploy);
	while ((c = getopt_long(argc, argv, "F:d:p:o:v", longs, NULL)) != -1) {
		switch (c) {
		case 'F':
			if (!number(optarg, 1, HZ_MAX, &n))
				return refuse("-F", optarg,
					      "a frequency is a whole number from 1 to 10000");
			ret->hz = (unsigned)n;
			break;
		case 'd':
			errno = 0;
			ret->seconds = strtod(optarg, &end);
			if (errno || end == optarg || *end || !(ret->seconds > 0) ||
			    ret->seconds > 1e9)
				return refuse("-d", optarg,
					      "a duration is a positive number of seconds");
			break;
		case 'p':
			if (!number(optarg, 1, 1u << 22, &n))
				return refuse("-p", optarg, "not a process id");
			if (ret->pid_count == OPTIONS_MAX_PIDS)
				return refuse("-p", optarg, "too many processes");
			ret->pids[ret->pid_count++] = (uint32_t)n;
			break;
		case OPTION_FOLLOW:
			if (!number(optarg, 1, 1u << 22, &n))
				return refuse("--follow", optarg, "not a process id");
			ret->follow = (uint32_t)n;
			break;
		case OPTION_TABLES:
			if (!number(optarg, 2, TABLE_MIB_MAX, &n))
				return refuse("--tables", optarg,
					      "a whole number of MiB from 2 to 512");
			ret->table_bytes = (size_t)n << 20;
			break;
		case OPTION_MEMORY:
			ret->memory_none = strcmp(optarg, "none") == 0;
			if (!ret->memory_none && strcmp(optarg, "interpreters") != 0)
				return refuse("--read-memory", optarg, "interpreters or none");
			break;
		case OPTION_UNSAFE:
			ret->ignore_unsafe_kernel = true;
			break;
		case OPTION_RESUME:
			ret->resume = true;
			break;
		case OPTION_CHECK:
			ret->check = true;
			break;
		case OPTION_CPUS:
			ret->cpus = true;
			ret->cycles = strncmp(optarg, "cycles", 6) == 0;
			ret->ksymbols = strstr(optarg, "+ksymbols") != NULL;
			break;
		case 'o':
			ret->output = optarg;
			break;
		case 'v':
			ret->verbose = true;
			break;
		case OPTION_HELP:
			fputs(usage, stdout);
			return stdfds_flush();
		case OPTION_VERSION:
			puts("prof-bpf " PROFPIPE_VERSION);
			return stdfds_flush();
		case '?':
			log_error("see prof-bpf --help");
			return 2;
		default:
			if (deploy_option(&ret->deploy, c, optarg) < 0)
				return 2;
			break;
		}
	}
	if (optind < argc)
		return refuse("argument", argv[optind], "prof-bpf takes options only");
	if (ret->follow && ret->pid_count)
		return refuse("-p", "", "not together with --follow");
	/* By hand without a ceiling. */
	if (!ret->table_bytes && !ret->deploy.run_dir && !ret->deploy.limit)
		ret->table_bytes = (size_t)TABLE_MIB_DEFAULT << 20;
	return -1;
}
