/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/options.h"

#include "common/base/command/cmdline.h"
#include "common/base/command/exits.h"
#include "common/base/files/outfile.h"

#define MEMORY_LEAST (1ull << 20)
#define MEMORY_MOST (64ull << 30)

/* clang-format off */
static const char usage[] =
	"usage: prof-export [-f FORMAT] [-o FILE] <STREAM\n"
	"Turn a stream of prof-symd or prof-bpf, or a recording of one, into a file.\n"
	"\n"
	FORMAT_USAGE
	"  -o, --output FILE   write to FILE instead of standard output\n"
	OUTFILE_USAGE
	"  -t, --threads       folded: make the thread's name the second frame\n"
	"  -l, --lines         folded, html: show line numbers of interpreted frames\n"
	REPORTING_INTERPRETER_USAGE
	REPORTING_CODE_USAGE
	REPORTING_USAGE
	"  -s, --stats         also print figures and the hottest functions to standard error\n"
	"  -m, --memory SIZE   keep at most this much of the stream (default 256M); samples\n"
	"                      beyond it are counted as lost\n"
	CMDLINE_USAGE
	"\n"
	"In a deployment (see prof-export(1)):\n"
	"  --run-dir DIR --ids GID:B:D:S:E --memory-limit SIZE --status-fd N --life-fd N\n"
	"    --output-fd N -f FORMAT [--journal-fd N] [--next-fd N] [--file N]\n"
	"    [--with-send] [--with-metrics]\n"
	"  --run-dir DIR --ids GID:B:D:S:E:N ... --send: hand requests of OTLP to prof-send,\n"
	"    beside the output, or with -f otlp and no output instead of one\n"
	DEPLOY_USAGE
	"\n"
	"Exit status: 0 done; 1 output not written, or not completely; 2 bad usage; 3 all "
	"input was\n"
	"written, but the stream was truncated.\n";
/* clang-format on */

enum {
	OPTION_OUTPUT_FD = 256,
	OPTION_JOURNAL_FD,
	OPTION_NEXT_FD,
	OPTION_FILE,
	OPTION_INTERPRETER,
	OPTION_CODE,
	OPTION_MODE,
	OPTION_SEND
};

static int take_option(struct options *o, const struct cmdline *c, int val)
{
	int r = EXITS_GO_ON;
	uint64_t n = 0;
	size_t word = 0;

	switch (val) {
	case 'f':
		r = cmdline_word(c, format_names, FORMATS, &word);
		o->session.format = (enum format)word;
		o->format_given = true;
		return r;
	case 'o':
		return cmdline_path(c, &o->output);
	case OPTION_MODE:
		return cmdline_mode(c, &o->mode);
	case 't':
		o->session.threads = true;
		return r;
	case 'l':
		o->session.lines = true;
		return r;
	case OPTION_INTERPRETER:
		o->session.interpreter_frames = true;
		return r;
	case OPTION_CODE:
		o->session.code = true;
		return r;
	case 's':
		o->stats = true;
		return r;
	case 'm':
		r = cmdline_size(c, MEMORY_LEAST, MEMORY_MOST, &n);
		o->session.memory_max = (size_t)n;
		return r;
	case OPTION_OUTPUT_FD:
		return cmdline_fd(c, &o->output_fd);
	case OPTION_JOURNAL_FD:
		return cmdline_fd(c, &o->journal_fd);
	case OPTION_SEND:
		o->send = true;
		return r;
	case OPTION_NEXT_FD:
		return cmdline_fd(c, &o->next_fd);
	case OPTION_FILE:
		return cmdline_number(c, 0, UINT32_MAX, &o->file);
	default:
		if (reporting_has(val))
			return reporting_option(&o->session.reporting, c, val);
		return deploy_option(&o->deploy, c, val);
	}
}

int options_parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "format", required_argument, NULL, 'f' },
		{ "output", required_argument, NULL, 'o' },
		{ "mode", required_argument, NULL, OPTION_MODE },
		{ "threads", no_argument, NULL, 't' },
		{ "lines", no_argument, NULL, 'l' },
		{ "interpreter-frames", no_argument, NULL, OPTION_INTERPRETER },
		{ "code", no_argument, NULL, OPTION_CODE },
		{ "stats", no_argument, NULL, 's' },
		{ "memory", required_argument, NULL, 'm' },
		{ "output-fd", required_argument, NULL, OPTION_OUTPUT_FD },
		{ "journal-fd", required_argument, NULL, OPTION_JOURNAL_FD },
		{ "next-fd", required_argument, NULL, OPTION_NEXT_FD },
		{ "file", required_argument, NULL, OPTION_FILE },
		{ "send", no_argument, NULL, OPTION_SEND },
		REPORTING_OPTIONS,
		DEPLOY_OPTIONS,
		CMDLINE_OPTIONS,
		{ 0 },
	};
	struct cmdline c = { .tool = "prof-export",
			     .usage = usage,
			     .shorts = ":f:o:tlsm:vh",
			     .longs = longs,
			     .argc = argc,
			     .argv = argv };

	deploy_init(&o->deploy);
	o->session.reporting = REPORTING_DEFAULTS;
	for (int val = cmdline_next(&c); val != CMDLINE_END; val = cmdline_next(&c)) {
		const int r = val == CMDLINE_EXIT ? c.status : take_option(o, &c, val);

		if (r != EXITS_GO_ON)
			return r;
	}
	if (optind < argc)
		return cmdline_refuse_all("%s: not an option; the stream comes on standard input, "
					  "and -o names the output",
					  argv[optind]);
	if (o->output && !o->format_given)
		o->format_given = format_of_path(o->output, &o->session.format);
	if (deploy_check_options(&o->deploy, DEPLOY_EXPORT) != EXITS_GO_ON)
		return EXITS_USAGE;
	if (!o->format_given && o->output)
		return cmdline_refuse_all(
			"--output: %s: its ending names no format; use .html, .folded, .pb.gz, "
			".txt, .prof or .otlp, or give -f FORMAT",
			o->output);
	if (!o->format_given)
		return cmdline_refuse_all(
			"--format: missing; give folded, pprof, html, text, stream or otlp");
	if (o->send && !o->deploy.run_dir)
		return cmdline_refuse_all("--send: needs --run-dir; by hand, pipe -f otlp into "
					  "prof-send");
	if (o->send && o->deploy.ids_given && !o->deploy.send_given)
		return cmdline_refuse_all("--ids: has no user of prof-send; give "
					  "GID:BPF:DELTAS:SYMD:EXPORT:SEND");
	const bool no_output = o->deploy.run_dir && o->output_fd < 0;

	if (no_output && o->send && o->session.format != FORMAT_OTLP)
		return cmdline_refuse_all("--send: without an output, the format is otlp; give "
					  "-f otlp");
	if (no_output && !o->send)
		return cmdline_refuse_all("--run-dir: needs --output-fd, which the launcher opens");
	if (!o->deploy.run_dir && o->output_fd >= 0)
		return cmdline_refuse_all(
			"--output-fd: needs --run-dir; by hand, name the output with -o");
	if (o->next_fd >= 0 && (o->output_fd < 0 || o->session.format == FORMAT_STREAM))
		return cmdline_refuse_all("--next-fd: needs --output-fd, and no recording");
	if (o->deploy.run_dir && o->session.memory_max)
		return cmdline_refuse_all("--memory: not together with --run-dir; give "
					  "--memory-limit, the limit of the whole run");
	if (o->deploy.run_dir && (o->output || o->stats))
		return cmdline_refuse_all("--%s: not together with --run-dir; omit it",
					  o->output ? "output" : "stats");
	return EXITS_GO_ON;
}
