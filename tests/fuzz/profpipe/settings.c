/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a settings file. Each line is a setting, is refused once, or is blank or a comment.
 * Settings that were read and written again read the same.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/must.h"
#include "tools/profpipe/settings/spelling.h"
#include "tools/profpipe/settings/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct lines {
	unsigned last, refused;
};

static void refuse(void *ctx, unsigned line, const char *key, const char *why)
{
	struct lines *l = ctx;

	must(line > l->last && strchr(why, ';'));
	must(!key || *key);
	l->last = line;
	l->refused++;
}

/* One line that does not begin like a comment, and ends at its last letter. */
static bool is_trimmed(const char *s)
{
	return *s && !strchr(s, '\n') && !isspace((unsigned char)*s) &&
	       !isspace((unsigned char)s[strlen(s) - 1]);
}

static void read_again(const struct settings *s)
{
	static struct settings again;
	struct lines l = { 0 };
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	must(f);
	for (size_t i = 0; i < s->count; i++)
		fprintf(f, "%s=%s\n", s->list[i].key, s->list[i].value);
	must(fclose(f) == 0);
	must(settings_parse(&again, (struct str){ .data = text, .len = (uint32_t)len }, refuse,
			    &l) == 0);
	must(again.count == s->count);
	for (size_t i = 0; i < s->count; i++) {
		must(strcmp(again.list[i].key, s->list[i].key) == 0);
		must(strcmp(again.list[i].value, s->list[i].value) == 0);
	}
	settings_done(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct settings s;
	struct lines l = { 0 };
	const struct str text = { .data = (const char *)data, .len = (uint32_t)size };
	const int r = settings_parse(&s, text, refuse, &l);
	unsigned line = 0;

	must(r == (l.refused ? SETTINGS_BAD : 0));
	must(s.count <= SETTINGS_MAX);
	for (size_t i = 0; i < s.count; i++) {
		const struct setting *at = &s.list[i];

		must(at->line > line && is_trimmed(at->key) && is_trimmed(at->value));
		line = at->line;
		must(spelling_distance(at->key, at->value) ==
		     spelling_distance(at->value, at->key));
		must(spelling_distance(at->key, at->key) == 0);
	}
	read_again(&s);
	settings_done(&s);
	return 0;
}
