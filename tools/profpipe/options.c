/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/cmdline.h"
#include "common/base/exits.h"
#include "common/base/log.h"
#include "common/cell/budget.h"

#define HZ_MAX 10000

static const char *const read_memory_words[] = { "interpreters", "none" };

static const char usage[] =
	"usage: profpipe record [-F HZ] [-d SECONDS] [-p PID]... [-o FILE] [-f FORMAT] [--lines]\n"
	"                       [--interpreter-frames] [--memory-limit SIZE] "
	"[--summary FILE] [-q]\n"
	"                       [-- COMMAND...]\n"
	"       profpipe report FILE.prof [-f FORMAT] [-o FILE] [--lines] [--interpreter-frames]\n"
	"       profpipe dump [--all-threads] PID|CORE\n"
	"       profpipe doctor [--json]\n"
	"\n"
	"record  profiles the whole host, or the given processes, or COMMAND and its descendants\n"
	"report  turns a recording into another format\n"
	"dump    prints the stacks of a live process or of a core file (see prof-dump --help)\n"
	"doctor  checks what this host supports, what is missing, and how to fix it\n"
	"\n"
	"  -F HZ            samples per second and cpu, 1 to 10000 (default 99)\n"
	"  -d SECONDS       stop after this time (default: on Ctrl-C)\n"
	"  -p PID           sample only this process; may be repeated\n"
	"  -o FILE          write to FILE, or to standard output for - (default: flame.html for\n"
	"                   record, standard output for report)\n"
	"  -f FORMAT        html, folded, pprof, text or stream (default: by FILE's ending,\n"
	"                   .html, .folded, .pb.gz, .txt or .prof)\n"
	"  --lines          folded, html: show line numbers of interpreted frames\n"
	"  --interpreter-frames\n"
	"                   also show the native frames of an interpreter's own loop\n"
	"  --memory-limit SIZE\n"
	"                   memory of all tools and their BPF maps together, at "
	"least 64M (default\n"
	"                   128M); what does not fit is counted\n"
	"  --read-memory none\n"
	"                   read no memory of processes: interpreted frames have no names\n"
	"  --ignore-unsafe-kernel\n"
	"                   record, doctor: run even on a kernel that profiling may hang\n"
	"  --json           doctor: print JSON\n"
	"  --summary FILE   also write the summary to FILE, as JSON\n"
	"  -q               print no progress and no summary on standard error\n"
	"  -v               make the tools log more\n"
	"  -h, --help       print this help\n"
	"  --version        print the version\n";

/* A signal also reaches a thread that leads no process; /proc tells the two apart. */
static bool is_process(uint32_t pid)
{
	char path[64], text[2048];

	if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return errno != ENOENT;
	const size_t n = fread(text, 1, sizeof(text) - 1, f);

	fclose(f);
	text[n] = '\0';
	const char *leader = strstr(text, "\nTgid:");

	return !leader || strtoul(leader + 6, NULL, 10) == pid;
}

enum {
	OPTION_SUMMARY = 1,
	OPTION_LINES,
	OPTION_INTERPRETER,
	OPTION_MEMORY,
	OPTION_LIMIT,
	OPTION_UNSAFE,
	OPTION_JSON
};

/* For record and report. */
#define OUTPUT_OPTIONS \
	{ "output", required_argument, NULL, 'o' }, { "format", required_argument, NULL, 'f' }, \
		{ "lines", no_argument, NULL, OPTION_LINES }, \
		{ "interpreter-frames", no_argument, NULL, OPTION_INTERPRETER }, \
	{ \
		"quiet", no_argument, NULL, 'q' \
	}

/* State for the options that concern the output. */
struct choice {
	struct cmdline *line;
	bool format_given;
};

static int take_pid(struct options *o, const struct cmdline *c)
{
	uint32_t pid;
	const int r = cmdline_pid(c, &pid);

	if (r != EXITS_GO_ON)
		return r;
	if (!is_process(pid)) {
		log_error("--pid: %u: there is no such process; see `ps -e`", pid);
		return EXITS_FAILED;
	}
	if (o->pid_count == OPTIONS_MAX_PIDS)
		return cmdline_refuse(c, "too many processes; give 256 at most");
	o->pids[o->pid_count++] = c->value;
	return EXITS_GO_ON;
}

/* Takes one option of any subcommand. Only checks values that tools get unchanged. */
static int take_option(struct options *o, struct choice *choice, int val)
{
	const struct cmdline *c = choice->line;
	int r = EXITS_GO_ON;
	size_t word = 0;
	uint64_t n;
	double d;

	switch (val) {
	case 'F':
		o->hz = c->value;
		return cmdline_number(c, 1, HZ_MAX, &n);
	case 'd':
		o->seconds = c->value;
		return cmdline_seconds(c, &d);
	case 'p':
		return take_pid(o, c);
	case 'o':
		o->output = c->value;
		return r;
	case 'f':
		r = cmdline_word(c, format_names, FORMATS, &word);
		o->format = (enum format)word;
		choice->format_given = true;
		return r;
	case OPTION_SUMMARY:
		o->summary = c->value;
		return r;
	case OPTION_LINES:
		o->lines = true;
		return r;
	case OPTION_INTERPRETER:
		o->interpreter_frames = true;
		return r;
	case OPTION_MEMORY:
		o->read_memory = c->value;
		return cmdline_word(c, read_memory_words, 2, &word);
	case OPTION_LIMIT:
		o->limit = c->value;
		return cmdline_size(c, BUDGET_LEAST, BUDGET_MOST, &n);
	case OPTION_UNSAFE:
		o->ignore_unsafe_kernel = true;
		return r;
	case OPTION_JSON:
		o->json = true;
		return r;
	case 'q':
		o->quiet = true;
		return r;
	default:
		return choice->line->status; /* CMDLINE_EXIT */
	}
}

static int take_options(struct options *o, struct choice *choice)
{
	int val, r = EXITS_GO_ON;

	while (r == EXITS_GO_ON && (val = cmdline_next(choice->line)) != CMDLINE_END)
		r = take_option(o, choice, val);
	o->verbose = choice->line->verbose > 0;
	return r;
}

/* Completes the output's format: on standard output it must be text. */
static int choose_format(struct options *o, const struct choice *choice)
{
	const bool standard = strcmp(o->output, "-") == 0;

	if (!choice->format_given && standard)
		o->format = FORMAT_FOLDED;
	else if (!choice->format_given && !format_of_path(o->output, &o->format))
		return cmdline_refuse_all(
			"--output: %s: its ending names no format; use .html, .folded, .pb.gz, "
			".txt or .prof, or give -f FORMAT",
			o->output);
	if (standard && format_is_binary(o->format) && isatty(STDOUT_FILENO))
		return cmdline_refuse_all(
			"--format: %s: is binary, and standard output is a terminal; "
			"name a file with -o",
			format_names[o->format]);
	return EXITS_GO_ON;
}

static struct cmdline line_of(int argc, char **argv, const char *shorts, const struct option *longs)
{
	return (struct cmdline){ .tool = "profpipe",
				 .usage = usage,
				 .shorts = shorts,
				 .longs = longs,
				 .argc = argc,
				 .argv = argv };
}

int options_record(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "frequency", required_argument, NULL, 'F' },
		{ "duration", required_argument, NULL, 'd' },
		{ "pid", required_argument, NULL, 'p' },
		{ "summary", required_argument, NULL, OPTION_SUMMARY },
		{ "read-memory", required_argument, NULL, OPTION_MEMORY },
		{ "memory-limit", required_argument, NULL, OPTION_LIMIT },
		{ "ignore-unsafe-kernel", no_argument, NULL, OPTION_UNSAFE },
		OUTPUT_OPTIONS,
		CMDLINE_OPTIONS,
		{ 0 },
	};
	struct cmdline c = line_of(argc, argv, "+:F:d:p:o:f:qvh", longs);
	struct choice choice = { .line = &c };

	*ret = (struct options){ .hz = "99", .output = "flame.html" };
	const int r = take_options(ret, &choice);

	if (r != EXITS_GO_ON)
		return r;
	if (optind < argc)
		ret->command = argv + optind;
	if (ret->command && ret->pid_count)
		return cmdline_refuse_all(
			"--pid: %s: not together with a COMMAND; give one of them", ret->pids[0]);
	return choose_format(ret, &choice);
}

int options_report(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = { OUTPUT_OPTIONS, CMDLINE_OPTIONS, { 0 } };
	struct cmdline c = line_of(argc, argv, ":o:f:qvh", longs);
	struct choice choice = { .line = &c };

	*ret = (struct options){ .output = "-" };
	const int r = take_options(ret, &choice);

	if (r != EXITS_GO_ON)
		return r;
	if (argc - optind != 1)
		return cmdline_refuse_all("report takes one recording: "
					  "profpipe report FILE.prof [-f FORMAT] [-o FILE]");
	ret->input = argv[optind];
	return choose_format(ret, &choice);
}

int options_doctor(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, OPTION_JSON },
		{ "ignore-unsafe-kernel", no_argument, NULL, OPTION_UNSAFE },
		CMDLINE_HELP_OPTIONS,
		{ 0 },
	};
	struct cmdline c = line_of(argc, argv, "+:h", longs);
	struct choice choice = { .line = &c };

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
	struct cmdline c = line_of(argc, argv, "+:h", longs);

	if (cmdline_next(&c) == CMDLINE_EXIT)
		return c.status;
	if (optind == argc)
		return cmdline_refuse_all("missing subcommand: record, report, dump or doctor; "
					  "see `profpipe --help`");
	*ret = optind;
	return EXITS_GO_ON;
}
