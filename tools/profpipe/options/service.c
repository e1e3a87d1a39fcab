/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/options/service.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/bytes/buf.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/base/files/contents.h"
#include "common/base/files/fd.h"
#include "common/base/files/outfile.h"
#include "tools/profpipe/options/sendcheck.h"
#include "tools/profpipe/settings/spelling.h"
#include "tools/profpipe/store/profiles.h"

#define HZ_DEFAULT 20
#define CPU_LIMIT_DEFAULT 5
#define INTERVAL_DEFAULT_S 60
#define ROTATE_DEFAULT_S 3600
#define KEEP_FILES_DEFAULT 168 /* one week of hourly files */
#define KEEP_BYTES_DEFAULT (1ull << 30)
#define UNIT_FOLDER "/var/lib/profpipe" /* the unit makes it when it starts */
#define PLACE 4200			/* longest "FILE:LINE" in bytes */

static const struct option longs[] = {
	{ "settings", required_argument, NULL, OPTION_SETTINGS },
	{ "check", required_argument, NULL, OPTION_CHECK },
	{ "memory-limit", required_argument, NULL, OPTION_LIMIT },
	{ "output-dir", required_argument, NULL, OPTION_DIR },
	{ "rotate", required_argument, NULL, OPTION_ROTATE },
	{ "keep", required_argument, NULL, OPTION_KEEP },
	{ "keep-size", required_argument, NULL, OPTION_KEEP_SIZE },
	{ "metrics", required_argument, NULL, OPTION_METRICS },
	{ "probabilistic-threshold", required_argument, NULL, OPTION_CHANCE },
	{ "probabilistic-interval", required_argument, NULL, OPTION_INTERVAL },
	SAMPLING_ENDLESS_OPTIONS,
	OPTIONS_OF_OUTPUT,
	CMDLINE_OPTIONS,
	{ 0 },
};
static_assert(sizeof(longs) / sizeof(longs[0]) <= SERVICE_OPTIONS, "each option has a place");

/* Options that may change while the tools run. */
static bool may_change(int val)
{
	return val == SAMPLING_CPU_LIMIT || val == OPTION_CHANCE || val == OPTION_INTERVAL ||
	       val == OPTION_METRICS || val == 'v' || val == 'q' || otlp_has(val);
}

/* The options of an endpoint may be repeated, since an option after an --otlp applies to that
 * endpoint. */
static bool is_repeatable(int val)
{
	return val == SAMPLING_PID || val == SAMPLING_ENV || targets_repeat(val) || otlp_has(val);
}

/* Whether a settings file may contain the option. */
static bool is_key(int val)
{
	return val != OPTION_SETTINGS && val != OPTION_CHECK && val != 'h' &&
	       val != CMDLINE_VERSION;
}

static const struct option *key_of(const char *name)
{
	for (const struct option *o = longs; o->name; o++)
		if (is_key(o->val) && strcmp(o->name, name) == 0)
			return o;
	return NULL;
}

/* --- the command line --- */

static void note_given(struct service *s, int val)
{
	for (const struct option *o = longs; o->name; o++)
		if (o->val == val || (otlp_has(val) && otlp_has(o->val)))
			s->given[o - longs] = true;
}

/* Takes all options of the command line. An endpoint there replaces all endpoints of the file. Only
 * one settings file may be given, since a second one would hide the first. */
static int take_line(struct service *s, struct options_choice *choice)
{
	const char *checked = NULL;
	int r = EXITS_GO_ON;

	while (r == EXITS_GO_ON) {
		const int val = cmdline_next(choice->line);

		if (val == CMDLINE_END)
			break;
		if (val == OPTION_SETTINGS) {
			r = cmdline_path(choice->line, &s->path);
		} else if (val == OPTION_CHECK) {
			r = cmdline_path(choice->line, &checked);
		} else {
			r = options_take(&s->options, choice, val);
			note_given(s, val);
		}
	}
	s->options.verbose = choice->line->verbose;
	if (s->options.verbose)
		note_given(s, 'v');
	if (r != EXITS_GO_ON)
		return r;
	if (optind < s->argc)
		return cmdline_refuse_all("%s: not an option; run takes options only",
					  s->argv[optind]);
	if (checked && s->path)
		return cmdline_refuse_all("--check: not together with --settings; give one file");
	s->check = checked != NULL;
	if (checked)
		s->path = checked;
	return r;
}

/* --- the file --- */

/* Logs the errors of a file. */
struct errors {
	const char *path;
	unsigned count;
};

static void refuse(void *ctx, unsigned line, const char *key, const char *why)
{
	struct errors *e = ctx;
	struct buf b = BUF_INIT(0);
	int r = key ? log_escape(&b, str_from(key), SPELLING_LETTERS) : 0;

	if (!r)
		r = buf_append(&b, "", 1);
	e->count++;
	log_error("%s:%u: %s%s%s", e->path, line, r ? "" : (const char *)b.data, key ? ": " : "",
		  why);
	buf_done(&b);
}

static void refuse_unknown(struct errors *e, const struct setting *at)
{
	const char *nearest = NULL;
	unsigned least = UINT32_MAX;
	char why[160];

	for (const struct option *o = longs; o->name; o++) {
		const unsigned distance = spelling_distance(at->key, o->name);

		if (!is_key(o->val) || distance >= least)
			continue;
		least = distance;
		nearest = o->name;
	}
	if (nearest && spelling_is_likely(at->key, least))
		snprintf(why, sizeof(why), "unknown key; did you mean %s?", nearest);
	else
		snprintf(why, sizeof(why), "unknown key; see `profpipe --help` for all options");
	refuse(e, at->line, at->key, why);
}

/* Returns an earlier setting with the same key; NULL: none. */
static const struct setting *earlier(const struct service *s, const struct setting *at)
{
	for (const struct setting *i = s->file.list; i < at; i++)
		if (strcmp(i->key, at->key) == 0)
			return i;
	return NULL;
}

/* Takes the yes or no of an option without a value. */
static int take_flag(struct service *s, struct options_choice *choice, const struct option *o)
{
	static const char *const words[] = { "no", "yes" };
	size_t word = 0;
	const int r = cmdline_word(choice->line, words, 2, &word);

	if (r != EXITS_GO_ON || !word)
		return r;
	if (o->val != 'v')
		return options_take(&s->options, choice, o->val);
	s->options.verbose = true;
	return r;
}

static void take_setting(struct service *s, struct options_choice *choice, const struct setting *at,
			 struct errors *e)
{
	static struct service unused; /* gets a key that the command line overrides */
	struct options_choice unused_choice = *choice;
	const struct option *o = key_of(at->key);
	char place[PLACE], why[64];

	if (!o) {
		refuse_unknown(e, at);
		return;
	}
	const struct setting *first = is_repeatable(o->val) ? NULL : earlier(s, at);

	if (first) {
		snprintf(why, sizeof(why), "is also set in line %u; remove one of them",
			 first->line);
		refuse(e, at->line, at->key, why);
		return;
	}
	const bool replaced = s->given[o - longs];
	struct service *to = replaced ? &unused : s;
	struct options_choice *by = replaced ? &unused_choice : choice;

	snprintf(place, sizeof(place), "%s:%u", s->path, at->line);
	by->line->place = place;
	by->line->option = o->name;
	by->line->value = at->value;
	unused.options = (struct options){ 0 };
	if ((o->has_arg == no_argument ? take_flag(to, by, o)
				       : options_take(&to->options, by, o->val)) != EXITS_GO_ON)
		e->count++;
}

/* Reads the file. Errors of open and of contents_read. */
static int read_file(const char *path, uint8_t **ret, size_t *ret_len)
{
	struct stat st;
	/* O_NONBLOCK, so that opening a pipe without a writer does not hang. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	const int r = contents_read(fd, SETTINGS_BYTES, ret, ret_len, &st);

	fd_close(&fd);
	return r;
}

static void say_unread(const char *path, int r)
{
	if (r == -EFBIG)
		log_error("%s: is larger than %u KiB; is it the settings file?", path,
			  SETTINGS_BYTES >> 10);
	else if (r == CONTENTS_NO_FILE)
		log_error("%s: is not a regular file; name a settings file", path);
	else if (r == -EAGAIN)
		log_error(
			"%s: changes while it is read; write a new file and rename it to this name",
			path);
	else
		log_error("%s: %s; name a settings file that can be read", path, strerror(-r));
}

/* Logs that the file could not be taken, and returns the exit status. Lack of memory is not the
 * file's fault. */
static int unread(const char *path, int r)
{
	if (r != -ENOMEM) {
		say_unread(path, r);
		return EXITS_USAGE;
	}
	log_error("%s: cannot be read: %s; leave profpipe more memory", path, strerror(ENOMEM));
	return EXITS_FAILED;
}

/* Takes the file's settings. A part of main. *ret_errors: the number of errors in a file that could
 * be read. */
static int take_file(struct service *s, struct options_choice *choice, unsigned *ret_errors)
{
	struct errors e = { .path = s->path };
	uint8_t *text = NULL;
	size_t len = 0;
	int r = read_file(s->path, &text, &len);

	if (r)
		return unread(s->path, r);
	r = settings_parse(&s->file,
			   (struct str){ .data = (const char *)text, .len = (uint32_t)len }, refuse,
			   &e);
	free(text);
	if (r < 0)
		return unread(s->path, r);
	for (size_t i = 0; i < s->file.count; i++)
		take_setting(s, choice, &s->file.list[i], &e);
	*ret_errors = e.count;
	return e.count ? EXITS_USAGE : EXITS_GO_ON;
}

/* --- both --- */

/* Returns the setting to which a message "--key: VALUE: …" refers; NULL: it is not in the file. */
static const struct setting *meant(const struct service *s, const char *text)
{
	const struct setting *ret = NULL;
	const size_t n = strcspn(text, ":");
	unsigned number = 0, k = 0;

	/* prof-send does not repeat a URL that contains a secret. */
	(void)sscanf(text + n, ": endpoint %u: ", &number);
	for (size_t i = 0; i < s->file.count && strncmp(text, "--", 2) == 0; i++) {
		const struct setting *at = &s->file.list[i];
		const struct option *o = key_of(at->key);

		if (!o || s->given[o - longs] || strlen(at->key) != n - 2 ||
		    strncmp(at->key, text + 2, n - 2) != 0)
			continue;
		if (!ret || ++k == number - 1 || strstr(text + n, at->value))
			ret = at;
	}
	return ret;
}

/* A cmdline_place. ctx: the service. */
static const char *place_of(void *ctx, const char *message)
{
	static char place[PLACE];
	const struct service *s = ctx;
	const struct setting *at = s->path ? meant(s, message) : NULL;

	if (!at)
		return NULL;
	snprintf(place, sizeof(place), "%s:%u", s->path, at->line);
	return place;
}

/* Checks by prof-send what only prof-send understands. */
static int check_delivery(const struct service *s)
{
	char text[SENDCHECK_TEXT];

	if (!s->options.otlp.endpoints)
		return EXITS_GO_ON;
	const int r = sendcheck_run(&s->options.otlp, text);

	if (!r)
		return EXITS_GO_ON;
	if (r < 0) {
		log_error("prof-send: cannot be started: %s; install it beside profpipe",
			  strerror(-r));
		return EXITS_FAILED;
	}
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		(void)cmdline_refuse_all("%s", line);
	return EXITS_USAGE;
}

/* Whether the command line or the file has the option. */
static bool has(const struct service *s, int val)
{
	for (const struct option *o = longs; o->name; o++) {
		if (o->val != val)
			continue;
		if (s->given[o - longs])
			return true;
		for (size_t i = 0; i < s->file.count; i++)
			if (strcmp(s->file.list[i].key, o->name) == 0)
				return true;
	}
	return false;
}

/* The status of two checks. */
static int both(int one, int other)
{
	return one == EXITS_GO_ON ? other : one;
}

static int check_folder(struct options *o, struct options_choice *choice)
{
	int r = EXITS_GO_ON;

	if (o->output)
		r = cmdline_refuse_all("--output-dir: not together with --output; give one");
	if (!choice->format_given)
		o->format = FORMAT_PPROF;
	if (o->format == FORMAT_STREAM)
		r = cmdline_refuse_all("--format: stream: has one beginning and one end; give a "
				       "file with -o in place of --output-dir");
	return both(r, otlp_check(&o->otlp));
}

/* Refuses options that only a folder can have. */
static int check_folder_options(const struct service *s)
{
	static const struct {
		int val;
		const char *name;
	} options[] = { { OPTION_ROTATE, "rotate" },
			{ OPTION_KEEP, "keep" },
			{ OPTION_KEEP_SIZE, "keep-size" } };
	int r = EXITS_GO_ON;

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (has(s, options[i].val))
			r = cmdline_refuse_all("--%s: needs --output-dir", options[i].name);
	return r;
}

/* Refuses formats that are written at their end: a service has no end. may_lack: an output may be
 * missing. */
static int check_output(struct service *s, struct options_choice *choice, bool may_lack)
{
	struct options *o = &s->options;

	if (o->output_dir)
		return check_folder(o, choice);
	int r = check_folder_options(s);

	if (!o->output && !o->otlp.endpoints && may_lack)
		return both(r, otlp_check(&o->otlp));
	if (!o->output && !o->otlp.endpoints)
		return both(r, cmdline_refuse_all("--otlp: missing; name a receiver, a folder with "
						  "--output-dir, or an output with -o"));
	if (o->output && strcmp(o->output, "-") == 0 && !choice->format_given) {
		o->format = FORMAT_OTLP;
		choice->format_given = true;
	}
	const int format = options_choose_format(o, choice, o->output);

	if (format != EXITS_GO_ON || format_streams(o->format))
		return both(r, format);
	return both(r, choice->format_given
			       ? cmdline_refuse_all("--format: %s: is written at the end, and run "
						    "has none; give otlp, stream or text",
						    format_names[o->format])
			       : cmdline_refuse_all("--output: %s: its format, %s, is written at "
						    "the end, and run has none; use the ending "
						    ".otlp, .prof or .txt",
						    o->output, format_names[o->format]));
}

/* Whether the outputs can be made. The run finds out by itself. */
static int check_places(const struct options *o)
{
	char copy[PATH_MAX];
	int e = 0;

	if (o->output_dir) {
		int dir = profiles_open(o->output_dir, &e);

		if (e == -ENOENT && strcmp(o->output_dir, UNIT_FOLDER) == 0)
			return EXITS_GO_ON;
		if (!e && faccessat(dir, ".", W_OK, AT_EACCESS))
			e = -errno;
		fd_close(&dir);
		return e ? cmdline_refuse_all("--output-dir: %s: %s", o->output_dir,
					      profiles_error(e))
			 : EXITS_GO_ON;
	}
	if (!o->output || strcmp(o->output, "-") == 0 || strlen(o->output) >= PATH_MAX)
		return EXITS_GO_ON;
	memcpy(copy, o->output, strlen(o->output) + 1);
	if (!access(dirname(copy), W_OK))
		return EXITS_GO_ON;
	return cmdline_refuse_all("--output: %s: %s; name a folder that you can write to",
				  o->output, strerror(errno));
}

/* Checks what concerns more than one option. With a settings file, every error is logged, else only
 * the first one. r: the status so far. */
static int check_all(struct service *s, struct options_choice *choice, int r)
{
	const bool goes_on = s->path;

	r = both(r, sampling_check(&s->options.sampling));
	/* With --check, a settings file for all hosts may name targets that only other hosts
	 * have. */
	if ((r == EXITS_GO_ON || goes_on) && !s->check)
		r = both(r, options_check_targets(&s->options.sampling.targets));
	if (r == EXITS_GO_ON || goes_on)
		/* A settings file for all hosts may leave the output to the command line of each
		 * host, and the line of the output may have an error. */
		r = both(r, check_output(s, choice, s->check || r != EXITS_GO_ON));
	if (s->check)
		r = both(r, check_places(&s->options));
	if (r == EXITS_GO_ON || goes_on)
		r = both(r, check_delivery(s));
	return r;
}

int service_parse(int argc, char **argv, struct service *ret)
{
	struct cmdline c = options_line(argc, argv, "+:F:p:o:f:qvh", longs);
	struct options_choice choice = { .line = &c };

	*ret = (struct service){ .options = { .sampling = { .hz = HZ_DEFAULT,
							    .cpu_limit = CPU_LIMIT_DEFAULT },
					      .mode = OUTFILE_MODE,
					      .reporting = REPORTING_DEFAULTS,
					      .chance = 100,
					      .interval_s = INTERVAL_DEFAULT_S,
					      .rotate_s = ROTATE_DEFAULT_S,
					      .keep_files = KEEP_FILES_DEFAULT,
					      .keep_bytes = KEEP_BYTES_DEFAULT },
				 .argc = argc,
				 .argv = argv };
	unsigned errors = 0;
	int r = take_line(ret, &choice);

	cmdline_set_place(place_of, ret);
	if (r == EXITS_GO_ON && ret->path)
		r = take_file(ret, &choice, &errors);
	if (r == EXITS_GO_ON || errors)
		r = check_all(ret, &choice, r);
	cmdline_set_place(NULL, NULL);
	if (r == EXITS_GO_ON && ret->check) {
		printf("%s: %zu settings, all valid\n", ret->path, ret->file.count);
		r = stdfds_flush();
	}
	if (r != EXITS_GO_ON)
		service_done(ret);
	return r;
}

/* --- reloading --- */

/* Returns the next setting of this key, starting at *i; NULL: none. */
static const struct setting *next(const struct service *s, const char *key, size_t *i)
{
	while (*i < s->file.count)
		if (strcmp(s->file.list[(*i)++].key, key) == 0)
			return &s->file.list[*i - 1];
	return NULL;
}

/* Refuses a changed key that may not change during the run. */
static void compare(const struct service *now, const struct service *new, const char *key,
		    struct errors *e)
{
	const struct setting *was, *is;
	size_t i = 0, k = 0;
	char why[160];

	do {
		was = next(now, key, &i);
		is = next(new, key, &k);
	} while (was && is && strcmp(was->value, is->value) == 0);
	if (!was && !is)
		return;
	snprintf(why, sizeof(why),
		 "%s while profpipe runs; restart "
		 "it, or %s",
		 is ? "cannot change" : "cannot be removed",
		 was ? "put the old value back" : "remove it");
	refuse(e, is ? is->line : was->line, key, why);
}

int service_reload(const struct service *now, struct service *ret)
{
	int r = service_parse(now->argc, now->argv, ret);

	if (r != EXITS_GO_ON)
		return r;
	struct errors e = { .path = ret->path };

	for (const struct option *o = longs; o->name; o++)
		if (is_key(o->val) && !may_change(o->val) && !now->given[o - longs])
			compare(now, ret, o->name, &e);
	/* Whether requests are made at all is fixed at the start. */
	if (!now->options.otlp.endpoints != !ret->options.otlp.endpoints) {
		log_error("%s: otlp: cannot be added or removed while profpipe runs; restart "
			  "it, or %s",
			  ret->path, ret->options.otlp.endpoints ? "remove it" : "put it back");
		e.count++;
	}
	if (!e.count)
		return EXITS_GO_ON;
	service_done(ret);
	return EXITS_USAGE;
}

void service_done(struct service *s)
{
	settings_done(&s->file);
}
