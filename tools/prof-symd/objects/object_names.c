/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/objects/object_names.h"

#include <errno.h>
#include <stdlib.h>
#include "bpf/mix.h"

struct object_names_source {
	uint32_t users, len;
	char text[];
};

struct object_names {
	struct object_names_source *source;
	uint32_t start_line, lines; /* lines: size of the packed lines */
	uint16_t name, system_name; /* lengths in bytes */
	bool hidden, shared; /* shared: the name ends with the system name, which is not stored */
	/* The number of inlined calls, and the bytes of their texts. If there are any, each packed
	 * line also has the call that it is in. */
	uint32_t inlined, texts;
	uint8_t bytes[]; /* the packed lines, the name, the system name, the calls, their texts */
};

#define LINE_BYTES 15 /* largest size: three packed numbers of 32 bits */

/* --- sources --- */

static void leave_source(struct object_names_source *s)
{
	if (s && --s->users == 0)
		free(s);
}

void object_names_sources_done(struct object_names_sources *s)
{
	for (size_t i = 0; i < OBJECT_NAMES_SOURCES; i++) {
		leave_source(s->recent[i]);
		s->recent[i] = NULL;
	}
}

static size_t slot_of(const struct object_names_sources *s, const struct runtime_text *t)
{
	uint64_t h = s->seed ^ t->len;

	for (uint32_t i = 0; i < t->len; i++) {
		h = (h ^ (uint8_t)t->bytes[i]) * MIX_GOLDEN;
		h ^= h >> 29;
	}
	return (size_t)(h ^ h >> 32) & (OBJECT_NAMES_SOURCES - 1);
}

/* Finds or adds a source, and takes a reference. NULL: no memory. */
static struct object_names_source *join_source(struct object_names_sources *all,
					       const struct runtime_text *t, size_t *bytes)
{
	struct object_names_source **at = &all->recent[slot_of(all, t)], *s = *at;

	if (!s || s->len != t->len || memcmp(s->text, t->bytes, t->len) != 0) {
		s = malloc(sizeof(*s) + t->len);
		if (!s)
			return NULL;
		s->users = 1;
		s->len = t->len;
		memcpy(s->text, t->bytes, t->len);
		*bytes += sizeof(*s) + t->len;
		leave_source(*at);
		*at = s;
	}
	s->users++;
	return s;
}

/* --- lines --- */

static uint8_t *put_number(uint8_t *at, uint32_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	return at;
}

static uint32_t take_number(const uint8_t **at, const uint8_t *end)
{
	uint32_t v = 0;

	for (unsigned shift = 0; *at < end && shift < 32; shift += 7) {
		uint8_t b = *(*at)++;

		v |= (uint32_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			break;
	}
	return v;
}

/* Packs each entry as two numbers: how many positions it has, and its difference in lines with the
 * sign in the lowest bit. If there are inlined calls, the call that it is in follows. Returns the
 * bytes written. */
static size_t pack_lines(const struct runtime_object *from, uint32_t start, uint8_t *into)
{
	const struct runtime_line *lines = (const struct runtime_line *)from->lines.data;
	const size_t count = from->lines.len / sizeof(*lines);
	uint32_t end = 0, line = start;
	uint8_t *at = into;

	for (size_t i = 0; i < count; i++) {
		uint32_t by = lines[i].line - line, inside = 0;

		at = put_number(at, lines[i].end - end);
		at = put_number(at, by << 1 ^ (by >> 31 ? UINT32_MAX : 0));
		if ((i + 1) * sizeof(inside) <= from->inside.len)
			memcpy(&inside, from->inside.data + i * sizeof(inside), sizeof(inside));
		if (from->inlined.len)
			at = put_number(at, inside);
		end = lines[i].end;
		line = lines[i].line;
	}
	return (size_t)(at - into);
}

static uint32_t find_line(const struct object_names *k, uint32_t position, uint32_t *ret_inside)
{
	const uint8_t *at = k->bytes, *stop = at + k->lines;
	uint32_t end = 0, line = k->start_line;

	*ret_inside = 0;
	while (at < stop) {
		uint32_t by, inside = 0;

		end += take_number(&at, stop);
		by = take_number(&at, stop);
		line += by >> 1 ^ (by & 1 ? UINT32_MAX : 0);
		if (k->inlined)
			inside = take_number(&at, stop);
		if (position < end) {
			*ret_inside = inside;
			return line;
		}
	}
	return 0;
}

/* --- objects --- */

int object_names_new(const struct runtime_object *from, struct object_names_sources *s,
		     struct object_names **ret, size_t *ret_bytes)
{
	const struct runtime_text *name = &from->name, *system = &from->system_name;
	size_t lines = from->lines.len / sizeof(struct runtime_line), bytes = 0;
	bool shared = str_ends_with((struct str){ .data = name->bytes, .len = name->len },
				    (struct str){ .data = system->bytes, .len = system->len });
	const size_t own = name->len + (shared ? 0 : system->len);
	const size_t rest = own + from->inlined.len + from->texts.len;
	struct object_names *k = malloc(sizeof(*k) + lines * LINE_BYTES + rest), *smaller;

	if (!k)
		return -ENOMEM;
	*k = (struct object_names){ .start_line = from->start_line <= INT32_MAX
							  ? (uint32_t)from->start_line
							  : 0,
				    .name = (uint16_t)name->len,
				    .system_name = (uint16_t)system->len,
				    .hidden = from->hidden,
				    .shared = shared };
	k->inlined = (uint32_t)(from->inlined.len / sizeof(struct runtime_inlined));
	k->texts = (uint32_t)from->texts.len;
	k->lines = (uint32_t)pack_lines(from, k->start_line, k->bytes);
	memcpy(k->bytes + k->lines, name->bytes, name->len);
	if (!shared)
		memcpy(k->bytes + k->lines + name->len, system->bytes, system->len);
	if (from->inlined.len)
		memcpy(k->bytes + k->lines + own, from->inlined.data, from->inlined.len);
	if (from->texts.len)
		memcpy(k->bytes + k->lines + own + from->inlined.len, from->texts.data,
		       from->texts.len);
	k->source = join_source(s, &from->source, &bytes);
	if (!k->source) {
		free(k);
		return -ENOMEM;
	}
	bytes += sizeof(*k) + k->lines + rest;
	smaller = realloc(k, sizeof(*k) + k->lines + rest);
	*ret = smaller ? smaller : k;
	*ret_bytes = bytes;
	return 0;
}

void object_names_free(struct object_names *k)
{
	if (!k)
		return;
	leave_source(k->source);
	free(k);
}

bool object_names_hidden(const struct object_names *k)
{
	return k->hidden;
}

/* Adds the inlined calls at a line to *ret, from the innermost one on. Returns the line of the
 * outermost call, in the object. */
static uint32_t tell_inlined(const struct object_names *k, uint32_t inside, uint32_t line,
			     struct names *ret)
{
	const uint8_t *calls = k->bytes + k->lines + k->name + (k->shared ? 0 : k->system_name);
	const char *texts = (const char *)calls + k->inlined * sizeof(struct runtime_inlined);

	/* Callers come before their calls. */
	while (inside && inside <= k->inlined) {
		struct runtime_inlined i;

		memcpy(&i, calls + (inside - 1) * sizeof(i), sizeof(i));
		if (ret->count < NAMES_MAX - 1 && i.source + i.source_len <= k->texts) {
			struct names_call *c = &ret->calls[ret->count++];

			*c = (struct names_call){ .line = line, .start_line = i.start_line };
			c->name = names_keep(ret, texts + i.name, i.name_len);
			c->system_name = c->name;
			c->source = names_keep(ret, texts + i.source, i.source_len);
		}
		line = i.line;
		inside = i.caller < inside ? i.caller : 0;
	}
	return line;
}

void object_names_tell(const struct object_names *k, uint32_t position, struct names *ret)
{
	const char *text = (const char *)k->bytes + k->lines;
	uint32_t inside = 0, line;

	/* The position mask means that the frame is before its first instruction. */
	line = position == RUNTIME_POSITION_MASK ? k->start_line : find_line(k, position, &inside);
	ret->count = 0;
	line = tell_inlined(k, inside, line, ret);

	struct names_call *c = &ret->calls[ret->count++];

	*c = (struct names_call){ .start_line = k->start_line, .line = line };
	c->name = names_keep(ret, text, k->name);
	if (k->shared)
		c->system_name = (struct str){ .data = c->name.data + k->name - k->system_name,
					       .len = k->system_name };
	else
		c->system_name = names_keep(ret, text + k->name, k->system_name);
	c->source = names_keep(ret, k->source->text, k->source->len);
}
