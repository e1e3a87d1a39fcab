/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/paths/namesakes.h"

#include <errno.h>
#include <inttypes.h>
#include "tools/prof-export/model/label.h"

#define SHORT_PARTS 3 /* if these parts do not suffice, labels show the whole path */

struct search {
	const struct model *m;
	const struct model_function *functions;
	size_t n;
	uint8_t *parts;
	/* By name (a string): two functions with this name still have equal labels. */
	uint8_t *alike;
	struct pool pool;
};

static struct str last_parts(struct str path, unsigned n)
{
	uint32_t at = path.len;

	if (n > SHORT_PARTS)
		return path;
	while (at && (path.data[at - 1] != '/' || --n))
		at--;
	return (struct str){ .data = path.data + at, .len = path.len - at };
}

static struct str shown(const struct search *s, uint32_t function)
{
	return last_parts(model_string(s->m, s->functions[function].source), s->parts[function]);
}

/* Starts with one part of the path for each interpreted function that has a namesake. */
static int find_names(struct search *s)
{
	const struct model_frame *frames;
	const size_t n = model_frames(s->m, &frames);
	/* By name: the first function with it, plus 1. */
	uint32_t *first = calloc(model_strings(s->m) + 1, sizeof(*first));

	if (!first)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (frames[i].kind != MODEL_INTERPRETED || !frames[i].count)
			continue;
		const uint32_t f = *model_functions_of(s->m, &frames[i]);
		uint32_t *one = &first[s->functions[f].name];

		if (!*one)
			*one = f + 1;
		else if (*one != f + 1)
			s->parts[f] = s->parts[*one - 1] = 1;
	}
	free(first);
	return 0;
}

/* Marks names of which several functions have the same label with this number of parts. */
static int mark_alike(struct search *s, unsigned parts)
{
	struct table_index seen = { 0 };
	int r = 0;

	for (uint32_t i = 0; !r && i < s->n; i++) {
		const struct model_function *f = &s->functions[i];

		if (s->parts[i] != parts || s->alike[f->name])
			continue;
		const struct str path = shown(s, i);
		const uint32_t content[] = { f->name, f->start_line, path.len,
					     table_hash(path.data, path.len) };
		const uint32_t hash = table_hash(content, sizeof(content));
		size_t cursor = SIZE_MAX;
		uint32_t other;

		do
			other = table_index_next(&seen, hash, &cursor);
		while (other != TABLE_NONE && (s->functions[other].name != f->name ||
					       s->functions[other].start_line != f->start_line ||
					       !str_eq(shown(s, other), path)));
		if (other != TABLE_NONE)
			s->alike[f->name] = 1;
		else if (table_index_add(&seen, &s->pool, hash, i))
			r = -ENOMEM;
	}
	table_index_done(&seen, &s->pool);
	return r;
}

int namesakes_find(struct namesakes *t, const struct model *m)
{
	struct search s = { .m = m, .pool = { .max = SIZE_MAX } };

	s.n = model_functions(m, &s.functions);
	t->parts = s.parts = calloc(s.n + 1, 1);
	s.alike = calloc(model_strings(m) + 1, 1);
	int r = s.parts && s.alike ? find_names(&s) : -ENOMEM;

	for (unsigned parts = 1; !r && parts <= SHORT_PARTS; parts++) {
		r = mark_alike(&s, parts);
		for (size_t i = 0; i < s.n; i++)
			if (s.parts[i] == parts && s.alike[s.functions[i].name])
				s.parts[i]++;
		memset(s.alike, 0, model_strings(m) + 1);
	}
	free(s.alike);
	return r;
}

void namesakes_done(struct namesakes *t)
{
	free(t->parts);
	t->parts = NULL;
}

int namesakes_label(const struct namesakes *t, struct buf *b, const struct model *m,
		    const struct model_frame *f)
{
	const struct model_function *functions;
	int r = label_call(b, model_definitions(m), f, 0);

	if (r || f->kind != MODEL_INTERPRETED || !f->count)
		return r;
	model_functions(m, &functions);
	const uint32_t i = *model_functions_of(m, f);
	const struct model_function *function = &functions[i];

	if (!t->parts[i] || (!model_string(m, function->source).len && !function->start_line))
		return 0;
	r = buf_append_str(b, " (");
	if (!r)
		r = label_escape(b, last_parts(model_string(m, function->source), t->parts[i]));
	if (!r && function->start_line)
		r = buf_printf(b, ":%" PRIu32, function->start_line);
	return r ? r : buf_append(b, ")", 1);
}
