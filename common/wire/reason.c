/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of errors.def. Numbers come from messages, so each look-up checks the bounds. Unused
 * numbers are "unknown". */
#include "common/wire/reason.h"

#include <stddef.h>

struct reason {
	const char *word, *text;
};

static const struct reason walk_reasons[] = {
#define WALK_REASON(n, NAME, word, text) [n] = { word, text },
#include "bpf/errors.def"
};
static const struct reason lost_reasons[] = {
#define LOST_REASON(n, NAME, word, text) [n] = { word, text },
#include "bpf/errors.def"
};
static const struct reason unnamed_reasons[] = {
#define UNNAMED_REASON(n, NAME, word, text) [n] = { word, text },
#include "bpf/errors.def"
};

static const struct reason *look_up(const struct reason *table, size_t len, uint64_t n)
{
	static const struct reason unknown = { "unknown",
					       "a reason that this version does not know" };

	return n < len && table[n].word ? &table[n] : &unknown;
}

#define LOOK_UP(table, n) look_up(table, sizeof(table) / sizeof((table)[0]), n)

const char *reason_walk_word(uint64_t reason)
{
	return LOOK_UP(walk_reasons, reason)->word;
}

const char *reason_walk_text(uint64_t reason)
{
	return LOOK_UP(walk_reasons, reason)->text;
}

const char *reason_lost_word(uint64_t reason)
{
	return LOOK_UP(lost_reasons, reason)->word;
}

const char *reason_lost_text(uint64_t reason)
{
	return LOOK_UP(lost_reasons, reason)->text;
}

const char *reason_unnamed_word(uint64_t reason)
{
	return LOOK_UP(unnamed_reasons, reason)->word;
}

const char *reason_unnamed_text(uint64_t reason)
{
	return LOOK_UP(unnamed_reasons, reason)->text;
}

bool reason_lost_is_samples(uint64_t reason)
{
	return reason < LOST_REASONS && reason != LOST_SIDEBAND && reason != LOST_THROTTLED &&
	       reason != LOST_UNTRACKED;
}

uint64_t reason_lost_samples(const uint64_t counts[static LOST_REASONS])
{
	uint64_t n = 0;

	for (unsigned i = 0; i < LOST_REASONS; i++)
		n += reason_lost_is_samples(i) ? counts[i] : 0;
	return n;
}
