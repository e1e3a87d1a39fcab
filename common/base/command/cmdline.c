/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/command/cmdline.h"

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/buf.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/base/text/decimal.h"

#define SHOWN_MAX 200 /* bytes of a value in a message */
#define PLACE_MAX 4200
#define PID_MAX (1u << 22)
#define SECONDS_MAX 1e9

static struct {
	cmdline_place *place;
	void *ctx;
} placing;

/* Returns the option with this value, or the final empty entry of `longs`. */
static const struct option *find(const struct cmdline *c, int val)
{
	const struct option *o = c->longs;

	while (o->name && o->val != val)
		o++;
	return o;
}

static int refuse(const char *thing, const char *value, const char *why)
{
	struct buf b = BUF_INIT(0);
	int r = log_escape(&b, str_from(thing), value ? PLACE_MAX : SHOWN_MAX);

	if (!r && value)
		r = buf_append_str(&b, ": ");
	if (!r && value && !*value)
		r = buf_append_str(&b, "\"\"");
	if (!r && value)
		r = log_escape(&b, str_from(value), SHOWN_MAX);
	log_error("%.*s: %s", (int)b.len, b.data ? (const char *)b.data : "", why);
	buf_done(&b);
	return EXITS_USAGE;
}

int cmdline_refuse(const struct cmdline *c, const char *why)
{
	char name[PLACE_MAX];

	if (c->place)
		snprintf(name, sizeof(name), "%s: %s", c->place, c->option);
	else
		snprintf(name, sizeof(name), "--%s", c->option);
	return refuse(name, c->value, why);
}

int cmdline_refuse_all(const char *fmt, ...)
{
	char text[2 * PLACE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	const char *at = placing.place ? placing.place(placing.ctx, text) : NULL;

	if (at)
		log_error("%s: %s", at, text + 2);
	else
		log_error("%s", text);
	return EXITS_USAGE;
}

void cmdline_set_place(cmdline_place *place, void *ctx)
{
	placing.place = place;
	placing.ctx = ctx;
}

/* Refuses what getopt_long does not accept: a '?' or ':' result. */
static int refuse_option(const struct cmdline *c, int found)
{
	const char *word = c->argv[optind - 1];
	const struct option *o = find(c, optopt);
	char name[64], why[128];

	if (found == ':' || (optopt && o->name)) {
		snprintf(name, sizeof(name), "--%s", o->name);
		snprintf(why, sizeof(why), "%s; see `%s --help`",
			 found == ':' ? "its value is missing" : "takes no value", c->tool);
		return refuse(name, NULL, why);
	}
	snprintf(name, sizeof(name), "-%c", optopt);
	snprintf(why, sizeof(why), "unknown option; see `%s --help`", c->tool);
	return refuse(optopt ? name : word, NULL, why);
}

int cmdline_next(struct cmdline *c)
{
	if (!c->begun) {
		/* With 0, glibc starts over, even if another command line was parsed before. */
		optind = 0;
		c->begun = 1;
	}
	for (;;) {
		opterr = 0;
		const int found = getopt_long(c->argc, c->argv, c->shorts, c->longs, NULL);

		switch (found) {
		case -1:
			return CMDLINE_END;
		case '?':
		case ':':
			c->status = refuse_option(c, found);
			return CMDLINE_EXIT;
		case 'v':
			c->verbose = true;
			log_init(c->tool, LOG_INFO);
			continue;
		case 'h':
			fputs(c->usage, stdout);
			c->status = stdfds_flush();
			return CMDLINE_EXIT;
		case CMDLINE_VERSION:
			printf("%s %s\n", c->tool, PROFPIPE_VERSION);
			c->status = stdfds_flush();
			return CMDLINE_EXIT;
		default:
			c->option = find(c, found)->name;
			c->value = optarg;
			return found;
		}
	}
}

int cmdline_number(const struct cmdline *c, uint64_t min, uint64_t max, uint64_t *ret)
{
	char why[128];
	uint64_t n;
	const bool whole = decimal_parse(c->value, &n);

	if (whole && n >= min && n <= max) {
		*ret = n;
		return EXITS_GO_ON;
	}
	snprintf(why, sizeof(why), "%s; give a whole number from %llu to %llu",
		 whole ? "out of range" : "not a number", (unsigned long long)min,
		 (unsigned long long)max);
	return cmdline_refuse(c, why);
}

int cmdline_pid(const struct cmdline *c, uint32_t *ret)
{
	uint64_t n;
	const int r = cmdline_number(c, 1, PID_MAX, &n);

	if (r == EXITS_GO_ON)
		*ret = (uint32_t)n;
	return r;
}

int cmdline_fd(const struct cmdline *c, int *ret)
{
	uint64_t n;
	const int r = cmdline_number(c, 0, INT_MAX, &n);

	if (r == EXITS_GO_ON)
		*ret = (int)n;
	return r;
}

int cmdline_mode(const struct cmdline *c, unsigned *ret)
{
	const size_t digits = strspn(c->value, "01234567");
	const unsigned long n = strtoul(c->value, NULL, 8);

	if (!digits || c->value[digits] || digits > 8 || n > 0777)
		return cmdline_refuse(c, "not a mode; give one to three octal digits, as 640");
	*ret = (unsigned)n;
	return EXITS_GO_ON;
}

static const char units[] = "KMG";

static bool take_size(const char *s, uint64_t *ret)
{
	uint64_t n;

	if (!decimal_take(&s, &n))
		return false;
	const char upper = *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;
	const char *unit = upper ? strchr(units, upper) : NULL;

	if (unit) {
		const unsigned shift = 10 * (unsigned)(unit - units + 1);

		n = n > UINT64_MAX >> shift ? UINT64_MAX : n << shift;
		s++;
		if (s[0] == 'i' && s[1] == 'B')
			s++;
	}
	if (*s == 'B')
		s++;
	*ret = n;
	return !*s;
}

/* Prints n in the largest unit that holds it exactly. */
static void print_size(char *to, size_t max, uint64_t n)
{
	size_t unit = 0;

	while (n && n % 1024 == 0 && unit < sizeof(units) - 1) {
		n /= 1024;
		unit++;
	}
	snprintf(to, max, "%llu%.*s", (unsigned long long)n, unit > 0,
		 unit ? units + unit - 1 : "");
}

int cmdline_size(const struct cmdline *c, uint64_t min, uint64_t max, uint64_t *ret)
{
	char least[32], most[32], why[128];
	uint64_t n;
	const bool size = take_size(c->value, &n);

	if (size && n >= min && n <= max) {
		*ret = n;
		return EXITS_GO_ON;
	}
	print_size(least, sizeof(least), min);
	print_size(most, sizeof(most), max);
	snprintf(why, sizeof(why), "%s; give a size from %s to %s",
		 size ? "out of range" : "not a size", least, most);
	return cmdline_refuse(c, why);
}

int cmdline_seconds(const struct cmdline *c, double *ret)
{
	/* strtod also accepts blanks, signs and other bases, which are refused. An exponent is
	 * accepted, because profpipe passes short times on in that form. */
	const char *past = c->value + strspn(c->value, "0123456789.");
	char *end;
	double d = strtod(c->value, &end);
	const bool number = past != c->value && end != c->value && *past != 'x' && *past != 'X';

	if (number && *end) {
		d *= *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 0;
		end++;
	}
	if (!number || *end)
		return cmdline_refuse(c, "not a duration; give seconds above 0, as 90, 1.5 or 2m");
	if (!(d > 0) || d > SECONDS_MAX)
		return cmdline_refuse(c, "out of range; give seconds above 0, as 90, 1.5 or 2m");
	*ret = d;
	return EXITS_GO_ON;
}

int cmdline_path(const struct cmdline *c, const char **ret)
{
	if (*ret)
		return cmdline_refuse(c, "is the second one; give this option once");
	if (!*c->value)
		return cmdline_refuse(c, "is not a path; name a file or a folder");
	*ret = c->value;
	return EXITS_GO_ON;
}

int cmdline_word(const struct cmdline *c, const char *const *words, size_t n, size_t *ret)
{
	struct buf b = BUF_INIT(0);
	int r = buf_append_str(&b, "unknown; give ");

	for (size_t i = 0; i < n; i++) {
		if (strcmp(words[i], c->value) == 0) {
			*ret = i;
			buf_done(&b);
			return EXITS_GO_ON;
		}
		if (!r)
			r = buf_printf(&b, "%s%s", !i ? "" : i + 1 < n ? ", " : " or ", words[i]);
	}
	if (!r)
		r = buf_append(&b, "", 1);
	const int status = cmdline_refuse(c, r ? "unknown" : (const char *)b.data);

	buf_done(&b);
	return status;
}
