/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/budget.h"
#include "common/buf.h"
#include "common/log.h"
#include "common/stdfds.h"
#include "tools/profpipe/options.h"

#define HZ_MAX 10000

static const struct {
	const char *ending, *format;
} endings[] = {
	{ ".html", "html" },   { ".folded", "folded" }, { ".pb.gz", "pprof" },
	{ ".pprof", "pprof" }, { ".txt", "text" },	{ ".prof", "stream" },
};
static const char *const formats[] = { "html", "folded", "pprof", "text", "stream" };

void options_usage(void)
{
	fputs("usage: profpipe record [-F HZ] [-d SECONDS] [-p PID]... [-o FILE] [-f FORMAT] [--lines] [--interpreter-frames]\n"
	      "                       [--memory-limit SIZE] [--summary FILE] [-q] [-- COMMAND...]\n"
	      "       profpipe report FILE.prof [-f FORMAT] [-o FILE] [--lines] [--interpreter-frames]\n"
	      "       profpipe dump [--all-threads] PID|CORE\n"
	      "       profpipe doctor [--json]\n"
	      "\n"
	      "record profiles the whole host, or only the given processes, or COMMAND and its children until they end.\n"
	      "report replays a recording.\n"
	      "dump prints the stacks of a live process or of a core file (see prof-dump --help).\n"
	      "doctor says what this host allows, what is lost by what it does not, and how to mend it.\n"
	      "\n"
	      "  -F HZ            samples per second and cpu, 1 to 10000 (99)\n"
	      "  -d SECONDS       stop after so long (until Ctrl-C)\n"
	      "  -p PID           only this process; may be repeated\n"
	      "  -o FILE          write here (record: flame.html; report: standard output); - is standard output\n"
	      "  -f FORMAT        html, folded, pprof, text or stream; by default what the file's ending says:\n"
	      "                   .html .folded .pb.gz .txt .prof\n"
	      "  --lines          folded, html: interpreted frames have their line numbers\n"
	      "  --interpreter-frames\n"
	      "                   show the native frames of an interpreter's own loop, too\n"
	      "  --memory-limit SIZE\n"
	      "                   all tools and their BPF maps together, from 64M on (128M); what does not fit is counted\n"
	      "  --read-memory none\n"
	      "                   read no memory of processes: interpreted frames have no names\n"
	      "  --ignore-unsafe-kernel\n"
	      "                   record and doctor: run on a kernel that this may bring to a stand, too\n"
	      "  --json           doctor: as JSON\n"
	      "  --summary FILE   write the summary as JSON, too\n"
	      "  -q               no progress and no summary on standard error\n"
	      "  -v               let the tools say more\n"
	      "  --help, --version\n",
	      stdout);
}

static int refuse(const char *option, const char *arg, const char *why)
{
	struct buf b = BUF_INIT(0);

	if (log_escape(&b, str_from(arg), 200) == 0)
		log_error("%s %.*s: %s", option, (int)b.len, (const char *)b.data, why);
	buf_done(&b);
	return 2;
}

static bool whole(const char *text, unsigned long min, unsigned long max)
{
	char *end;

	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && !errno && n >= min && n <= max;
}

/* A thread that leads none can be signalled, too: /proc tells them apart. */
static bool is_process(const char *pid)
{
	char path[64], text[2048];

	if (kill((pid_t)strtoul(pid, NULL, 10), 0) < 0 && errno == ESRCH)
		return false;
	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return errno != ENOENT;
	const size_t n = fread(text, 1, sizeof(text) - 1, f);

	fclose(f);
	text[n] = '\0';
	const char *leader = strstr(text, "\nTgid:");

	return !leader || strtoul(leader + 6, NULL, 10) == strtoul(pid, NULL, 10);
}

static int choose_format(struct options *o, const char *fallback)
{
	if (o->format) {
		for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
			if (strcmp(formats[i], o->format) == 0)
				return -1;
		}
		return refuse("-f", o->format,
			      "no such format; there are html, folded, pprof, text and stream");
	}
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t n = strlen(o->output), e = strlen(endings[i].ending);

		if (n > e && strcmp(o->output + n - e, endings[i].ending) == 0) {
			o->format = endings[i].format;
			return -1;
		}
	}
	if (!fallback)
		return refuse(
			"-o", o->output,
			"its ending names no format; use .html, .folded, .pb.gz, .txt or .prof, or say -f FORMAT");
	o->format = fallback;
	return -1;
}

/* Binary formats do a terminal no good. */
static int check_terminal(const struct options *o)
{
	if (strcmp(o->output, "-") != 0 || !isatty(STDOUT_FILENO) ||
	    (strcmp(o->format, "pprof") != 0 && strcmp(o->format, "stream") != 0))
		return -1;
	return refuse("-f", o->format,
		      "is binary, and standard output a terminal; name a file with -o");
}

enum {
	OPTION_SUMMARY = 1,
	OPTION_LINES,
	OPTION_INTERPRETER,
	OPTION_MEMORY,
	OPTION_LIMIT,
	OPTION_UNSAFE,
	OPTION_JSON,
	OPTION_HELP,
	OPTION_VERSION
};
static const struct option longs[] = {
	{ "frequency", required_argument, NULL, 'F' },
	{ "duration", required_argument, NULL, 'd' },
	{ "pid", required_argument, NULL, 'p' },
	{ "output", required_argument, NULL, 'o' },
	{ "format", required_argument, NULL, 'f' },
	{ "summary", required_argument, NULL, OPTION_SUMMARY },
	{ "lines", no_argument, NULL, OPTION_LINES },
	{ "interpreter-frames", no_argument, NULL, OPTION_INTERPRETER },
	{ "read-memory", required_argument, NULL, OPTION_MEMORY },
	{ "memory-limit", required_argument, NULL, OPTION_LIMIT },
	{ "ignore-unsafe-kernel", no_argument, NULL, OPTION_UNSAFE },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ 0 },
};

/* One option of either subcommand. unknown: the word of the command line that it came from. */
static int take_option(int c, const char *unknown, struct options *o)
{
	char *end;

	switch (c) {
	case 'F':
		if (!whole(optarg, 1, HZ_MAX))
			return refuse("-F", optarg,
				      "a frequency is a whole number from 1 to 10000");
		o->hz = optarg;
		return -1;
	case 'd': {
		errno = 0;
		double d = strtod(optarg, &end);
		if (errno || end == optarg || *end || !(d > 0) || d > 1e9)
			return refuse("-d", optarg, "a duration is a positive number of seconds");
		o->seconds = optarg;
		return -1;
	}
	case 'p':
		if (!whole(optarg, 1, 1u << 22))
			return refuse("-p", optarg, "not a process id");
		if (!is_process(optarg))
			return refuse("-p", optarg, "there is no such process") / 2;
		if (o->pid_count == OPTIONS_MAX_PIDS)
			return refuse("-p", optarg, "too many processes (256 at most)");
		o->pids[o->pid_count++] = optarg;
		return -1;
	case 'o':
		o->output = optarg;
		return -1;
	case 'f':
		o->format = optarg;
		return -1;
	case OPTION_SUMMARY:
		o->summary = optarg;
		return -1;
	case OPTION_LINES:
		o->lines = true;
		return -1;
	case OPTION_INTERPRETER:
		o->interpreter_frames = true;
		return -1;
	case OPTION_MEMORY:
		if (strcmp(optarg, "interpreters") != 0 && strcmp(optarg, "none") != 0)
			return refuse("--read-memory", optarg, "interpreters or none");
		o->read_memory = optarg;
		return -1;
	case OPTION_LIMIT: {
		uint64_t n;

		if (!budget_parse(optarg, &n) || n > BUDGET_MOST)
			return refuse("--memory-limit", optarg, "not a size, as in 128M or 1G");
		if (n < BUDGET_LEAST)
			return refuse("--memory-limit", optarg,
				      "the tools do not fit in less than 64M; give that or more");
		o->limit = optarg;
		return -1;
	}
	case OPTION_UNSAFE:
		o->ignore_unsafe_kernel = true;
		return -1;
	case OPTION_JSON:
		o->json = true;
		return -1;
	case 'q':
		o->quiet = true;
		return -1;
	case 'v':
		o->verbose = true;
		return -1;
	case OPTION_HELP:
		options_usage();
		return stdfds_flush();
	case OPTION_VERSION:
		puts("profpipe " PROFPIPE_VERSION);
		return stdfds_flush();
	default:
		return refuse("option", unknown,
			      c == ':' ? "wants a value (see profpipe --help)"
				       : "there is no such option here (see profpipe --help)");
	}
}

int options_record(int argc, char **argv, struct options *ret)
{
	const char *at;
	int c;

	*ret = (struct options){ .hz = "99" };
	opterr = 0;
	while ((at = argv[optind], c = getopt_long(argc, argv, "+:F:d:p:o:f:qv", longs, NULL)) !=
	       -1) {
		int r = take_option(c, at, ret);

		if (r >= 0)
			return r;
	}
	if (optind < argc)
		ret->command = argv + optind;
	if (ret->command && ret->pid_count)
		return refuse("-p", ret->pids[0], "not together with a COMMAND");
	if (!ret->output)
		ret->output = "flame.html";
	const int r = choose_format(ret, strcmp(ret->output, "-") == 0 ? "folded" : NULL);

	return r >= 0 ? r : check_terminal(ret);
}

int options_report(int argc, char **argv, struct options *ret)
{
	const char *at;
	int c;

	*ret = (struct options){ .output = "-" };
	opterr = 0;
	while ((at = argv[optind], c = getopt_long(argc, argv, ":o:f:qv", longs, NULL)) != -1) {
		/* getopt has moved what is no option behind it. */
		const bool not_here = c == 'F' || c == 'd' || c == 'p' || c == OPTION_SUMMARY ||
				      c == OPTION_UNSAFE || c == OPTION_LIMIT;
		int r = take_option(not_here ? '?' : c, c == '?' || !at ? argv[optind - 1] : at,
				    ret);

		if (r >= 0)
			return r;
	}
	if (argc - optind != 1) {
		log_error(
			"report takes one recording: profpipe report FILE.prof [-f FORMAT] [-o FILE]");
		return 2;
	}
	ret->input = argv[optind];
	const int r = choose_format(ret, strcmp(ret->output, "-") == 0 ? "folded" : NULL);

	return r >= 0 ? r : check_terminal(ret);
}

int options_doctor(int argc, char **argv, struct options *ret)
{
	static const struct option own[] = {
		{ "json", no_argument, NULL, OPTION_JSON },
		{ "ignore-unsafe-kernel", no_argument, NULL, OPTION_UNSAFE },
		{ "help", no_argument, NULL, OPTION_HELP },
		{ "version", no_argument, NULL, OPTION_VERSION },
		{ 0 },
	};
	const char *at;
	int c;

	*ret = (struct options){ 0 };
	opterr = 0;
	while ((at = argv[optind], c = getopt_long(argc, argv, "+:", own, NULL)) != -1) {
		int r = take_option(c, at, ret);

		if (r >= 0)
			return r;
	}
	return optind < argc ? refuse("argument", argv[optind], "doctor takes options only") : -1;
}
