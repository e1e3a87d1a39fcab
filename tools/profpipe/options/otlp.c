/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/options/otlp.h"

#include <string.h>
#include <unistd.h>
#include "common/base/command/exits.h"

static const char *const names[] = {
	"--otlp",	"--otlp-protocol",   "--otlp-header-file", "--otlp-ca",
	"--otlp-cert",	"--otlp-key",	     "--otlp-compression", "--otlp-timeout",
	"--otlp-spool", "--otlp-spool-size", "--otlp-drain",
};
#define NAMES ((int)(sizeof(names) / sizeof(names[0])))

bool otlp_has(int val)
{
	return val >= OTLP_FIRST && val < OTLP_FIRST + NAMES;
}

int otlp_option(struct otlp_words *o, const struct cmdline *c, int val)
{
	if (o->n + 2 > OTLP_WORDS)
		return cmdline_refuse(c, "too many options of OTLP; give 64 at most");
	o->words[o->n++] = names[val - OTLP_FIRST];
	o->words[o->n++] = c->value;
	o->endpoints += val == OTLP_ENDPOINT;
	return val == OTLP_DRAIN ? cmdline_seconds(c, &o->drain_s) : EXITS_GO_ON;
}

int otlp_check(const struct otlp_words *o)
{
	if (o->n && !o->endpoints)
		return cmdline_refuse_all("%s: needs --otlp, the receiver", o->words[0]);
	return EXITS_GO_ON;
}

bool otlp_equal(const struct otlp_words *a, const struct otlp_words *b)
{
	bool equal = a->n == b->n;

	for (size_t i = 0; equal && i < a->n; i++)
		equal = strcmp(a->words[i], b->words[i]) == 0;
	return equal;
}

bool otlp_spools(const struct otlp_words *o)
{
	bool is = false;

	for (size_t i = 0; i < o->n; i += 2)
		is |= strcmp(o->words[i], "--otlp-spool") == 0;
	return is;
}

void otlp_pass_on(const struct otlp_words *o, struct words *w)
{
	for (size_t i = 0; i < o->n; i++)
		words_add(w, o->words[i]);
}

/* libcurl deliberately ignores HTTP_PROXY, so only these are passed on. */
static bool is_for_send(const char *entry)
{
	static const char *const heads[] = { "OTEL_EXPORTER_OTLP_", "http_proxy=", "https_proxy=",
					     "HTTPS_PROXY=",	    "all_proxy=",  "ALL_PROXY=",
					     "no_proxy=",	    "NO_PROXY=" };
	bool is = false;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		is |= strncmp(entry, heads[i], strlen(heads[i])) == 0;
	return is;
}

void otlp_variables(const char *ret[static OTLP_VARIABLES])
{
	size_t n = 0;

	for (char **e = environ; e && *e && n + 1 < OTLP_VARIABLES; e++)
		if (is_for_send(*e))
			ret[n++] = *e;
	ret[n] = NULL;
}
