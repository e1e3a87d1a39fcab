/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/options/options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/files/outfile.h"
#include "common/base/files/smallfile.h"
#include "common/cell/budget/budget.h"
#include "common/cell/targets/cgrouptree.h"
#include "tools/profpipe/options/listen.h"

#define INTERVAL_LEAST_S 1
#define INTERVAL_MOST_S 86400
#define KEEP_MOST 65536
#define KEEP_SIZE_LEAST (1ull << 20)
#define KEEP_SIZE_MOST (1ull << 50)

/* clang-format off */
static const char usage[] =
	"usage: profpipe record [-F HZ] [-d SECONDS] [-p PID]... [-o FILE] [-f FORMAT]\n"
	"                       [--mode MODE] [--lines] [--interpreter-frames] [--code]\n"
	"                       [--names all|interpreted|none] [--window SECONDS]\n"
	"                       [--window-jitter PERCENT] [--receiver collector|devfiler]\n"
	"                       [--otlp ENDPOINT]... [--otlp-OPTION VALUE]...\n"
	"                       [--memory-limit SIZE] [--cpu-limit PERCENT] [--summary FILE]\n"
	"                       [--read-memory interpreters|none] [--env NAME]...\n"
	"                       [--cmdline] [--host-id ID]\n"
	"                       [--ignore-unsafe-kernel] [-qv] [TARGETS] [-- COMMAND...]\n"
	"       profpipe run [--settings FILE] [OPTIONS]\n"
	"       profpipe run --check FILE\n"
	"       profpipe report RECORDING [-f FORMAT] [-o FILE] [--mode MODE] [--lines]\n"
	"                       [--interpreter-frames] [--code] [--names all|interpreted|none]\n"
	"                       [--window SECONDS] [--window-jitter PERCENT]\n"
	"                       [--receiver collector|devfiler] [-qv]\n"
	"       profpipe report RECORDING --otlp ENDPOINT... [--otlp-OPTION VALUE]... [OPTIONS]\n"
	"       profpipe dump [--all-threads] PID|CORE\n"
	"       profpipe doctor [--json] [--ignore-unsafe-kernel]\n"
	"\n"
	"record  profiles the whole host, or the given processes, or COMMAND and its descendants\n"
	"run     profiles as a service, until it is stopped; settings may come from a file\n"
	"report  turns a recording into another format\n"
	"dump    prints the stacks of a live process or of a core file (see prof-dump --help)\n"
	"doctor  checks what this host supports, what is missing, and how to fix it\n"
	"\n"
	SAMPLING_USAGE("; run: 20", "; run: 5")
	BUDGET_USAGE
	"  -o, --output FILE   write to FILE, or to standard output for - (default: "
	"flame.html for\n"
	"                      record, standard output for report; with --otlp none)\n"
	FORMAT_USAGE
	OUTFILE_USAGE
	"  --lines             folded, html: show line numbers of interpreted frames\n"
	REPORTING_INTERPRETER_USAGE
	REPORTING_CODE_USAGE
	REPORTING_USAGE
	"  --otlp ENDPOINT     send to this receiver of OTLP, http://HOST:PORT or\n"
	"                      https://HOST:PORT; may be repeated\n"
	"  --otlp-protocol, --otlp-header-file, --otlp-ca, --otlp-cert, --otlp-key,\n"
	"  --otlp-compression, --otlp-timeout, --otlp-spool, --otlp-spool-size, --otlp-drain\n"
	"                      how to send (see prof-send --help); an option after an --otlp\n"
	"                      applies to that endpoint\n"
	"  --settings FILE     run: take options from FILE, in lines `key = value`; on SIGHUP,\n"
	"                      read it again\n"
	"  --check FILE        run: only check this settings file\n"
	"  --output-dir DIR    run: write one file after another into DIR, named by start times\n"
	"                      (default format: pprof)\n"
	"  --rotate TIME       run: begin a new file in DIR after this time (default 1h)\n"
	"  --keep FILES, --keep-size SIZE\n"
	"                      run: keep the newest files in DIR, up to this many and this size\n"
	"                      (default 168 and 1G)\n"
	"  --probabilistic-threshold PERCENT\n"
	"                      run: sample in this percentage of intervals (default 100)\n"
	"  --probabilistic-interval TIME\n"
	"                      run: length of these intervals (default 1m)\n"
	"  --metrics ADDRESS:PORT\n"
	"                      run: serve figures to Prometheus at /metrics of this loopback\n"
	"                      address, such as 127.0.0.1 (default: do not)\n"
	"  --json              doctor: print JSON\n"
	"  --summary FILE      also write the summary to FILE, as JSON\n"
	"  -q, --quiet         print no progress and no summary on standard error\n"
	CMDLINE_USAGE
	"\n"
	TARGETS_USAGE;
/* clang-format on */

/* kill() also succeeds for the id of a thread that is not a process; /proc distinguishes the
 * two. */
static bool is_process(uint32_t pid)
{
	char path[64], text[2048] = "";

	if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		return false;
	snprintf(path, sizeof(path), "%u/status", pid);
	const int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const ssize_t n = proc < 0 ? proc : smallfile_read(proc, path, text, sizeof(text));

	if (proc >= 0)
		close(proc);
	if (n == -ENOENT)
		return false;
	const char *leader = strstr(text, "\nTgid:");

	return !leader || strtoul(leader + 6, NULL, 10) == pid;
}

static int check_pid(const char *option, uint32_t pid)
{
	if (is_process(pid))
		return EXITS_GO_ON;
	(void)cmdline_refuse_all("--%s: %u: there is no such process; see `ps -e`", option, pid);
	return EXITS_FAILED;
}

static void pass_over(void *ctx, const struct cgrouptree_found *found)
{
}

int options_check_targets(const struct targets *t)
{
	struct cgrouptrees trees;
	int r = EXITS_GO_ON;

	if (targets_have(t, TARGETS_CGROUP, false) || targets_have(t, TARGETS_CGROUP, true))
		(void)cgrouptrees_find(&trees);
	for (size_t i = 0; i < t->count && r == EXITS_GO_ON; i++) {
		const struct target *of = &t->list[i];

		if (of->kind == TARGETS_PID)
			r = check_pid(targets_name(of), of->number);
		if (of->kind != TARGETS_CGROUP || cgrouptrees_each(&trees, of, pass_over, NULL) > 0)
			continue;
		log_error("--%s: %s: there is no such cgroup; see /proc/PID/cgroup",
			  targets_name(of), of->text);
		r = EXITS_FAILED;
	}
	return r;
}

static int take_pid(struct options *o, const struct cmdline *c)
{
	const int r = sampling_option(&o->sampling, c, SAMPLING_PID);

	if (r != EXITS_GO_ON)
		return r;
	return check_pid("pid", o->sampling.pids[o->sampling.pid_count - 1]);
}

static int take_chance(struct options *o, const struct cmdline *c)
{
	uint64_t n = 0;
	const int r = cmdline_number(c, 1, 100, &n);

	o->chance = (unsigned)n;
	return r;
}

static int take_metrics(struct options *o, const struct cmdline *c)
{
	struct sockaddr_storage at;
	socklen_t len;

	if (!listen_parse(c->value, &at, &len))
		return cmdline_refuse(c, "not an address of this host alone; give 127.0.0.1:PORT, "
					 "or [::1]:PORT");
	o->metrics = c->value;
	return EXITS_GO_ON;
}

static int take_interval(const struct cmdline *c, double *ret)
{
	double seconds = 0;
	const int r = cmdline_seconds(c, &seconds);

	if (r != EXITS_GO_ON)
		return r;
	if (seconds < INTERVAL_LEAST_S || seconds > INTERVAL_MOST_S)
		return cmdline_refuse(c, "out of range; give 1s to 24h");
	*ret = seconds;
	return r;
}

static int take_keep(struct options *o, const struct cmdline *c)
{
	uint64_t n = 0;
	const int r = cmdline_number(c, 1, KEEP_MOST, &n);

	o->keep_files = (unsigned)n;
	return r;
}

int options_take(struct options *o, struct options_choice *choice, int val)
{
	const struct cmdline *c = choice->line;
	int r = EXITS_GO_ON;
	size_t word = 0;

	switch (val) {
	case SAMPLING_PID:
		return take_pid(o, c);
	case 'o':
		return cmdline_path(c, &o->output);
	case 'f':
		r = cmdline_word(c, format_names, FORMATS, &word);
		o->format = (enum format)word;
		choice->format_given = true;
		return r;
	case OPTION_MODE:
		return cmdline_mode(c, &o->mode);
	case OPTION_SUMMARY:
		return cmdline_path(c, &o->summary);
	case OPTION_LINES:
		o->lines = true;
		return r;
	case OPTION_INTERPRETER:
		o->interpreter_frames = true;
		return r;
	case OPTION_CODE:
		o->code = true;
		return r;
	case OPTION_LIMIT:
		return cmdline_size(c, BUDGET_LEAST, BUDGET_MOST, &o->limit);
	case OPTION_JSON:
		o->json = true;
		return r;
	case OPTION_CHANCE:
		return take_chance(o, c);
	case OPTION_METRICS:
		return take_metrics(o, c);
	case OPTION_INTERVAL:
		return take_interval(c, &o->interval_s);
	case OPTION_DIR:
		return cmdline_path(c, &o->output_dir);
	case OPTION_ROTATE:
		return take_interval(c, &o->rotate_s);
	case OPTION_KEEP:
		return take_keep(o, c);
	case OPTION_KEEP_SIZE:
		return cmdline_size(c, KEEP_SIZE_LEAST, KEEP_SIZE_MOST, &o->keep_bytes);
	case 'q':
		o->quiet = true;
		return r;
	case CMDLINE_EXIT:
		return c->status;
	default:
		if (reporting_has(val))
			return reporting_option(&o->reporting, c, val);
		if (otlp_has(val))
			return otlp_option(&o->otlp, c, val);
		return sampling_option(&o->sampling, c, val);
	}
}

int options_choose_format(struct options *o, const struct options_choice *choice,
			  const char *output)
{
	const int r = otlp_check(&o->otlp);

	if (r != EXITS_GO_ON)
		return r;
	if (!o->output && o->otlp.endpoints) {
		if (choice->format_given && o->format != FORMAT_OTLP)
			return cmdline_refuse_all("--format: %s: has no output; name one with -o",
						  format_names[o->format]);
		o->format = FORMAT_OTLP;
		return EXITS_GO_ON;
	}
	if (!o->output)
		o->output = output;
	const bool standard = strcmp(o->output, "-") == 0;

	if (!choice->format_given && standard)
		o->format = FORMAT_FOLDED;
	else if (!choice->format_given && !format_of_path(o->output, &o->format))
		return cmdline_refuse_all(
			"--output: %s: its ending names no format; use .html, .folded, .pb.gz, "
			".txt, .prof or .otlp, or give -f FORMAT",
			o->output);
	if (standard && format_is_binary(o->format) && isatty(STDOUT_FILENO))
		return cmdline_refuse_all(
			"--format: %s: is binary, and standard output is a terminal; "
			"name a file with -o",
			format_names[o->format]);
	return EXITS_GO_ON;
}

struct cmdline options_line(int argc, char **argv, const char *shorts, const struct option *longs)
{
	return (struct cmdline){ .tool = "profpipe",
				 .usage = usage,
				 .shorts = shorts,
				 .longs = longs,
				 .argc = argc,
				 .argv = argv };
}
