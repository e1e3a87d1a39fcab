/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/settings/settings.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libinih needs room for the end of the line. */
#define LINE_MOST (INI_MAX_LINE - 3)

struct settings_reading {
	struct settings *to;
	settings_refuse *refuse;
	void *ctx;
	unsigned line;
	bool found; /* this line is a setting */
	int verdict;
};

static void refuse(struct settings_reading *r, const char *key, const char *why)
{
	r->refuse(r->ctx, r->line, key, why);
	if (!r->verdict)
		r->verdict = SETTINGS_BAD;
}

/* A callback of libinih, where 0 means an error. */
static int take(void *ctx, const char *section, const char *key, const char *value)
{
	struct settings_reading *r = ctx;
	struct settings *s = r->to;
	char why[80];

	r->found = true;
	if (!key || !*key) {
		refuse(r, NULL, "no key before the `=`; write `key = value`");
		return 1;
	}
	if (!value || !*value) {
		refuse(r, key, "no value; write one, or remove the line");
		return 1;
	}
	if (s->count == SETTINGS_MAX) {
		snprintf(why, sizeof(why), "too many settings; give %d at most", SETTINGS_MAX);
		refuse(r, key, why);
		return 1;
	}
	struct setting *new = &s->list[s->count];

	*new = (struct setting){ .key = strdup(key), .value = strdup(value), .line = r->line };
	s->count++;
	if (!new->key || !new->value)
		r->verdict = -ENOMEM;
	return 1;
}

/* Whether libinih would take a part of the value as a comment. */
static bool has_comment(const char *line)
{
	for (const char *at = strchr(line, ';'); at; at = strchr(at + 1, ';'))
		if (at > line && isspace((unsigned char)at[-1]))
			return true;
	return false;
}

static void take_line(struct settings_reading *r, struct str line)
{
	char text[LINE_MOST + 1], why[80];

	while (line.len && strchr(" \t\r", line.data[0]) && line.data[0]) {
		line.data++;
		line.len--;
	}
	if (!line.len || line.data[0] == '#' || line.data[0] == ';')
		return;
	if (line.len > LINE_MOST) {
		snprintf(why, sizeof(why), "the line is too long; write %d bytes at most",
			 LINE_MOST);
		refuse(r, NULL, why);
		return;
	}
	memcpy(text, line.data, line.len);
	text[line.len] = '\0';
	if (strlen(text) != line.len) {
		refuse(r, NULL, "has a zero byte; remove it");
	} else if (text[0] == '[') {
		refuse(r, NULL, "begins a section; remove the line, since all keys stand alone");
	} else if (has_comment(text)) {
		refuse(r, NULL, "a comment behind a value; give it a line of its own");
	} else {
		r->found = false;
		if (ini_parse_string(text, take, r) || !r->found)
			refuse(r, NULL, "no setting; write `key = value`, or # before a comment");
	}
}

int settings_parse(struct settings *s, struct str text, settings_refuse *on_refused, void *ctx)
{
	static const char mark[] = "\xef\xbb\xbf"; /* byte order mark, which some editors insert */
	struct settings_reading r = { .to = s, .refuse = on_refused, .ctx = ctx };

	if (text.len >= 3 && memcmp(text.data, mark, 3) == 0) {
		text.data += 3;
		text.len -= 3;
	}
	while (text.len && r.verdict >= 0) {
		const char *end = memchr(text.data, '\n', text.len);
		const size_t n = end ? (size_t)(end - text.data) : text.len;

		r.line++;
		take_line(&r, (struct str){ .data = text.data, .len = (uint32_t)n });
		text.data += n + (end != NULL);
		text.len -= (uint32_t)(n + (end != NULL));
	}
	return r.verdict;
}

void settings_done(struct settings *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->list[i].key);
		free(s->list[i].value);
	}
	s->count = 0;
}
