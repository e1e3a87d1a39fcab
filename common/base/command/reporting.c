/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/command/reporting.h"

#include <assert.h>
#include "common/base/command/exits.h"

#define JITTER_MOST 90
#define WINDOW_MOST_S 3600

static const char *const names_words[] = { "all", "interpreted", "none" };
static const char *const receiver_words[] = { "collector", "devfiler" };

bool reporting_has(int val)
{
	return val >= REPORTING_WINDOW && val <= REPORTING_RECEIVER;
}

static int take_window(struct reporting *r, const struct cmdline *c)
{
	double seconds;
	const int e = cmdline_seconds(c, &seconds);

	if (e != EXITS_GO_ON)
		return e;
	if (seconds > WINDOW_MOST_S)
		return cmdline_refuse(c, "too long; give an hour (3600) at most");
	r->window_s = seconds;
	return EXITS_GO_ON;
}

int reporting_option(struct reporting *r, const struct cmdline *c, int val)
{
	uint64_t n = 0;
	size_t word = 0;
	int e;

	switch (val) {
	case REPORTING_WINDOW:
		return take_window(r, c);
	case REPORTING_JITTER:
		e = cmdline_number(c, 0, JITTER_MOST, &n);
		r->jitter_percent = (unsigned)n;
		return e;
	case REPORTING_NAMES:
		e = cmdline_word(c, names_words, 3, &word);
		r->names = (enum reporting_names)word;
		return e;
	case REPORTING_RECEIVER:
		e = cmdline_word(c, receiver_words, 2, &word);
		r->receiver = (enum reporting_receiver)word;
		return e;
	}
	assert(!"an option of reporting");
	return EXITS_USAGE;
}

void reporting_words(const struct reporting *r, struct words *w)
{
	words_add(w, "--window");
	words_print(w, "%.17g", r->window_s);
	words_add(w, "--window-jitter");
	words_print(w, "%u", r->jitter_percent);
	words_add(w, "--receiver");
	words_add(w, receiver_words[r->receiver]);
	reporting_names_words(r, w);
}

void reporting_names_words(const struct reporting *r, struct words *w)
{
	words_add(w, "--names");
	words_add(w, names_words[r->names]);
}
