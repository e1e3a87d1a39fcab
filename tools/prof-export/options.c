/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "common/log.h"
#include "common/stdfds.h"

static const char usage_text[] =
	"Usage: prof-export [-f FORMAT] [-o FILE] <STREAM\n"
	"Turn a stream of prof-symd or prof-bpf, or a recording of one, into a file.\n"
	"\n"
	"  -f, --format FORMAT     folded, pprof, html, text or stream; else by FILE's ending:\n"
	"                          .folded, .pb.gz or .pprof, .html, .txt, .prof\n"
	"  -o, --output FILE       write there, not to standard output\n"
	"  -t, --threads           folded: the thread's name is the second frame\n"
	"  -l, --lines             folded, html: interpreted frames have their line numbers\n"
	"      --interpreter-frames\n"
	"                          show the native frames of an interpreter's own loop, too\n"
	"  -s, --summary           print figures and the hottest functions to standard error\n"
	"  -m, --memory-limit MIB  keep at most so much of the stream (256); samples beyond it are counted as lost\n"
	"  -v, --verbose           say more\n"
	"  -h, --help              print this\n"
	"      --version           print the version\n"
	"\n"
	"In a deployment (see prof-export(1)):\n"
	"  --run-dir DIR --ids GID:B:D:S:E --limit SIZE --status-fd N --life-fd N --output-fd N --journal-fd N\n"
	"  --run-dir DIR --ids GID:B:D:S:E --output-dir DIR [--keep FILES] [--keep-size MIB]\n"
	"\n"
	"Exit status: 0 done; 1 nothing or not all could be written; 3 all that came was written, but the stream was cut short.\n";

enum {
	OPTION_OUTPUT_FD = 256,
	OPTION_JOURNAL_FD,
	OPTION_OUTPUT_DIR,
	OPTION_KEEP,
	OPTION_KEEP_SIZE,
	OPTION_VERSION,
	OPTION_INTERPRETER
};

static const struct {
	const char *name;
	const char *endings[3];
} formats[SESSION_FORMATS] = {
	[SESSION_FOLDED] = { "folded", { ".folded" } },
	[SESSION_PPROF] = { "pprof", { ".pb.gz", ".pprof" } },
	[SESSION_HTML] = { "html", { ".html" } },
	[SESSION_TEXT] = { "text", { ".txt" } },
	[SESSION_STREAM] = { "stream", { ".prof" } },
};

static bool format_by_name(const char *name, enum session_format *ret)
{
	for (int i = 0; i < SESSION_FORMATS; i++)
		if (!strcmp(name, formats[i].name)) {
			*ret = (enum session_format)i;
			return true;
		}
	return false;
}

static bool format_by_ending(const char *path, enum session_format *ret)
{
	const size_t len = strlen(path);

	for (int i = 0; i < SESSION_FORMATS; i++)
		for (const char *const *e = formats[i].endings; e < formats[i].endings + 3 && *e;
		     e++)
			if (len > strlen(*e) && !strcasecmp(path + len - strlen(*e), *e)) {
				*ret = (enum session_format)i;
				return true;
			}
	return false;
}

static bool parse_number(const char *s, unsigned long max, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(s, &end, 10);
	return *s >= '0' && *s <= '9' && !*end && !errno && *ret <= max;
}

int options_parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "format", required_argument, NULL, 'f' },
		{ "output", required_argument, NULL, 'o' },
		{ "threads", no_argument, NULL, 't' },
		{ "lines", no_argument, NULL, 'l' },
		{ "interpreter-frames", no_argument, NULL, OPTION_INTERPRETER },
		{ "summary", no_argument, NULL, 's' },
		{ "memory-limit", required_argument, NULL, 'm' },
		{ "output-fd", required_argument, NULL, OPTION_OUTPUT_FD },
		{ "journal-fd", required_argument, NULL, OPTION_JOURNAL_FD },
		{ "output-dir", required_argument, NULL, OPTION_OUTPUT_DIR },
		{ "keep", required_argument, NULL, OPTION_KEEP },
		{ "keep-size", required_argument, NULL, OPTION_KEEP_SIZE },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPTION_VERSION },
		DEPLOY_OPTIONS,
		{ NULL, 0, NULL, 0 },
	};
	unsigned long n;
	int c;

	while ((c = getopt_long(argc, argv, "f:o:tlsm:vh", longs, NULL)) != -1) {
		switch (c) {
		case 'f':
			if (!format_by_name(optarg, &o->session.format)) {
				log_error(
					"--format %s: is none of folded, pprof, html, text, stream",
					optarg);
				return -EINVAL;
			}
			o->format_given = true;
			break;
		case 'o':
			o->output = optarg;
			break;
		case 't':
			o->session.threads = true;
			break;
		case 'l':
			o->session.lines = true;
			break;
		case OPTION_INTERPRETER:
			o->session.interpreter_frames = true;
			break;
		case 's':
			o->summary = true;
			break;
		case 'm':
			if (!parse_number(optarg, 65536, &n) || !n) {
				log_error("--memory-limit %s: is no number of MiB from 1 to 65536",
					  optarg);
				return -EINVAL;
			}
			o->session.memory_max = (size_t)n << 20;
			break;
		case OPTION_JOURNAL_FD:
		case OPTION_OUTPUT_FD:
			if (!parse_number(optarg, INT_MAX, &n)) {
				log_error("--%s %s: is no number of a descriptor",
					  c == OPTION_OUTPUT_FD ? "output-fd" : "journal-fd",
					  optarg);
				return -EINVAL;
			}
			*(c == OPTION_OUTPUT_FD ? &o->output_fd : &o->journal_fd) = (int)n;
			break;
		case OPTION_OUTPUT_DIR:
			o->output_dir = optarg;
			break;
		case OPTION_KEEP:
			if (!parse_number(optarg, 65536, &n) || !n) {
				log_error("--keep %s: is no number of files from 1 to 65536",
					  optarg);
				return -EINVAL;
			}
			o->keep_files = (unsigned)n;
			break;
		case OPTION_KEEP_SIZE:
			if (!parse_number(optarg, 1ul << 30, &n) || !n) {
				log_error("--keep-size %s: is no number of MiB from 1 to %lu",
					  optarg, 1ul << 30);
				return -EINVAL;
			}
			o->keep_bytes = (uint64_t)n << 20;
			break;
		case 'v':
			log_init("prof-export", LOG_INFO);
			break;
		case 'h':
			fputs(usage_text, stdout);
			return stdfds_flush() ? -EIO : 1;
		case OPTION_VERSION:
			puts("prof-export " PROFPIPE_VERSION);
			return stdfds_flush() ? -EIO : 1;
		case '?':
			fputs("Try `prof-export --help`.\n", stderr);
			return -EINVAL;
		default:
			if (deploy_option(&o->deploy, c, optarg))
				return -EINVAL;
		}
	}
	if (optind < argc) {
		log_error(
			"%s: is no option; the stream comes on standard input, and FILE is named by -o",
			argv[optind]);
		return -EINVAL;
	}
	if (o->output && !o->format_given && format_by_ending(o->output, &o->session.format))
		o->format_given = true;
	if (!o->format_given) {
		log_error(
			o->output
				? "%s: its ending names no format; give one with -f (folded, pprof, html, text, stream)"
				: "no format%s; give one with -f (folded, pprof, html, text, stream)",
			o->output ? o->output : "");
		return -EINVAL;
	}
	if (o->deploy.run_dir && o->output_fd < 0 && !o->output_dir) {
		log_error(
			"--run-dir without --output-fd: the output is the launcher's to open; without a launcher give --output-dir");
		return -EINVAL;
	}
	if (!o->deploy.run_dir && (o->output_fd >= 0 || o->output_dir)) {
		log_error("--output-%s without --run-dir; by hand, name the output with -o",
			  o->output_dir ? "dir" : "fd");
		return -EINVAL;
	}
	return 0;
}

const char *options_format(enum session_format f)
{
	return formats[f].name;
}

const char *options_ending(enum session_format f)
{
	return formats[f].endings[0];
}
