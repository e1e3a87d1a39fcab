/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool's command line. All tools read their options here, so that numbers, sizes, durations and
 * words are written the same way everywhere, and each error is one line:
 *
 *   prof-bpf: error: --frequency: 0: out of range; give a whole number from 1 to 10000
 *
 * A settings file has the same values, without the dashes:
 *
 *   profpipe: error: a.conf:3: frequency: 0: out of range; give a whole number from 1 to 10000
 *
 * cmdline_next walks the options and serves --verbose, --help and --version itself. The functions
 * for values read the value of the current option. They return EXITS_GO_ON, or log the error and
 * return EXITS_USAGE (exits.h).
 */
#ifndef COMMON_BASE_COMMAND_CMDLINE_H
#define COMMON_BASE_COMMAND_CMDLINE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Results of cmdline_next that are not options. */
enum { CMDLINE_END = -1, CMDLINE_EXIT = -2 };

struct cmdline {
	/* The caller fills these; all are borrowed. */
	const char *tool;
	const char *usage;	    /* printed by --help */
	const char *shorts;	    /* as of getopt, beginning with ":" or "+:" */
	const struct option *longs; /* also names the options of `shorts` */
	int argc;
	char **argv;
	const char *place; /* if the value is not from the command line: its "FILE:LINE" */

	/* cmdline_next fills these. */
	const char *option; /* long name of the current option, without dashes */
	const char *value;  /* of the current option; NULL: it takes none */
	int status;	    /* exit status after CMDLINE_EXIT */
	bool verbose;	    /* --verbose was given */
	int begun;
};

/* For a tool's long options. Their values start at 900, except 'h' and 'v'. */
#define CMDLINE_VERSION 900
#define CMDLINE_HELP_OPTIONS \
	{ "help", no_argument, NULL, 'h' }, \
	{ \
		"version", no_argument, NULL, CMDLINE_VERSION \
	}
#define CMDLINE_OPTIONS { "verbose", no_argument, NULL, 'v' }, CMDLINE_HELP_OPTIONS
/* For a tool's --help. Texts that several tools share begin in column 23. */
#define CMDLINE_USAGE "  -v, --verbose       log more\n" CMDLINE_HELP_USAGE
#define CMDLINE_HELP_USAGE \
	"  -h, --help          print this help\n" \
	"  --version           print the version\n"

/* Returns the next option's `val` of `longs`. CMDLINE_END: no more options; the operands begin at
 * argv[optind]. CMDLINE_EXIT: the tool must exit with `status`. */
int cmdline_next(struct cmdline *c);

/* A whole number from min to max, in decimal digits. */
int cmdline_number(const struct cmdline *c, uint64_t min, uint64_t max, uint64_t *ret);
/* A process id. */
int cmdline_pid(const struct cmdline *c, uint32_t *ret);
/* The number of a file descriptor. */
int cmdline_fd(const struct cmdline *c, int *ret);
/* A size: "134217728", or in units of 1024 with K, M or G, as "128M". "B" or "iB" may follow. */
int cmdline_size(const struct cmdline *c, uint64_t min, uint64_t max, uint64_t *ret);
/* Seconds, above 0, with or without a fraction; or a number followed by s, m or h. */
int cmdline_seconds(const struct cmdline *c, double *ret);
/* A mode of a file: octal, up to 777. */
int cmdline_mode(const struct cmdline *c, unsigned *ret);
/* The path of a file or folder. A repeated option with a number or a word is accepted, and its last
 * value counts, so that a script can override it. But a user would not notice an ignored file. So a
 * second path is refused, that is, if *ret is not NULL. */
int cmdline_path(const struct cmdline *c, const char **ret);
/* One of n words; *ret becomes its index. */
int cmdline_word(const struct cmdline *c, const char *const *words, size_t n, size_t *ret);

/* Refuses the value of the current option. why: "reason; remedy". Returns EXITS_USAGE. */
int cmdline_refuse(const struct cmdline *c, const char *why);
/* Refuses the whole command line with this message. Returns EXITS_USAGE. */
int cmdline_refuse_all(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Options may also come from a file. For a message that begins with "--NAME: ", returns where the
 * option was set, as "FILE:LINE", borrowed until the next call; NULL: on the command line. */
typedef const char *cmdline_place(void *ctx, const char *message);
/* From now on, cmdline_refuse_all asks this function; NULL: none. */
void cmdline_set_place(cmdline_place *place, void *ctx);

#endif
