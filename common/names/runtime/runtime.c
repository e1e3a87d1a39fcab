/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/runtime/runtime.h"

#include <string.h>
#include "common/base/text/utf8.h"

/* Returns the index of the line that contains the position, or `count`. */
static size_t find_line(const struct runtime_line *lines, size_t count, uint32_t position)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lines[middle].end <= position)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t runtime_line(const struct runtime_line *lines, size_t count, uint32_t position)
{
	const size_t at = find_line(lines, count, position);

	return at < count ? lines[at].line : 0;
}

void runtime_object_done(struct runtime_object *o)
{
	buf_done(&o->lines);
	buf_done(&o->inside);
	buf_done(&o->inlined);
	buf_done(&o->texts);
}

/* Returns the inlined call of the last line. */
static uint32_t last_inside(const struct runtime_object *o)
{
	uint32_t inside = 0;

	if (o->inside.len)
		memcpy(&inside, o->inside.data + o->inside.len - sizeof(inside), sizeof(inside));
	return inside;
}

int runtime_add_line_in(struct runtime_object *o, uint32_t end, uint32_t line, uint32_t inlined)
{
	struct runtime_line *lines = (struct runtime_line *)o->lines.data;
	size_t count = o->lines.len / sizeof(*lines);
	const uint32_t none = 0;
	int r = 0;

	if (count > 0 && end <= lines[count - 1].end)
		return 0;
	if (count > 0 && lines[count - 1].line == line && last_inside(o) == inlined) {
		lines[count - 1].end = end;
		return 0;
	}
	if (count == RUNTIME_LINES)
		return 0;
	/* Without an earlier inlined call, all lines so far are in the object itself. */
	while (!r && inlined && o->inside.len < count * sizeof(none))
		r = buf_append(&o->inside, &none, sizeof(none));
	if (!r && (inlined || o->inside.len))
		r = buf_append(&o->inside, &inlined, sizeof(inlined));
	return r ? r
		 : buf_append(&o->lines, &(struct runtime_line){ .end = end, .line = line },
			      sizeof(*lines));
}

int runtime_add_line(struct runtime_object *o, uint32_t end, uint32_t line)
{
	return runtime_add_line_in(o, end, line, 0);
}

int runtime_add_inlined(struct runtime_object *o, uint32_t caller, uint32_t line, struct str name,
			struct str source, uint32_t start_line, uint32_t *ret)
{
	const uint32_t count = (uint32_t)(o->inlined.len / sizeof(struct runtime_inlined));
	const struct str called = str_cut(name, RUNTIME_TEXT), file = str_cut(source, RUNTIME_TEXT);
	struct runtime_inlined c = { .line = line, .start_line = start_line };

	*ret = caller = caller <= count ? caller : 0;
	if (count == RUNTIME_INLINED || called.len + file.len > RUNTIME_INLINED_TEXT - o->texts.len)
		return 0;
	c.caller = caller;
	c.name = (uint32_t)o->texts.len;
	c.name_len = called.len;
	c.source = c.name + c.name_len;
	c.source_len = file.len;

	int r = buf_append(&o->texts, called.data, called.len);

	if (!r)
		r = buf_append(&o->texts, file.data, file.len);
	if (!r)
		r = buf_append(&o->inlined, &c, sizeof(c));
	if (!r)
		*ret = count + 1;
	return r;
}

unsigned runtime_calls(const struct runtime_object *o, uint32_t position, struct runtime_call *ret,
		       unsigned max)
{
	const struct runtime_line *lines = (const struct runtime_line *)o->lines.data;
	const size_t at = find_line(lines, o->lines.len / sizeof(*lines), position);
	uint64_t line = at < o->lines.len / sizeof(*lines) ? lines[at].line : 0;
	uint32_t inside = 0;
	unsigned n = 0;

	if ((at + 1) * sizeof(inside) <= o->inside.len)
		memcpy(&inside, o->inside.data + at * sizeof(inside), sizeof(inside));
	/* A frame that has not reached its first instruction is on the function's first line. */
	if (position == RUNTIME_POSITION_MASK) {
		line = o->start_line;
		inside = 0;
	}
	/* Indices fall from call to caller, since callers were added before their calls. */
	while (inside && inside <= o->inlined.len / sizeof(struct runtime_inlined)) {
		struct runtime_inlined c;

		memcpy(&c, o->inlined.data + (inside - 1) * sizeof(c), sizeof(c));
		if (n + 1 < max)
			ret[n++] = (struct runtime_call){
				.name = { (const char *)o->texts.data + c.name, c.name_len },
				.source = { (const char *)o->texts.data + c.source, c.source_len },
				.line = line,
				.start_line = c.start_line,
			};
		line = c.line;
		inside = c.caller;
	}
	if (n < max)
		ret[n++] = (struct runtime_call){ .name = { o->name.bytes, o->name.len },
						  .source = { o->source.bytes, o->source.len },
						  .line = line,
						  .start_line = o->start_line };
	return n;
}

void runtime_append(struct runtime_text *t, const char *s, size_t len)
{
	struct str cut = str_cut((struct str){ .data = s, .len = (uint32_t)len },
				 RUNTIME_TEXT - t->len);

	if (cut.len)
		memcpy(t->bytes + t->len, cut.data, cut.len);
	t->len += cut.len;
}

void runtime_append_character(struct runtime_text *t, uint32_t c)
{
	char s[4];

	runtime_append(t, s, utf8_encode(c, s));
}
