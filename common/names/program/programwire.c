/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/programwire.h"

#include <string.h>
#include "common/names/program/sources.h"

static struct programwire_text text_of(const struct names *n, struct str s)
{
	return s.len ? (struct programwire_text){ .at = (uint32_t)(s.data - n->text), .len = s.len }
		     : (struct programwire_text){ 0 };
}

static uint8_t *append(uint8_t *into, const void *what, size_t n)
{
	if (n)
		memcpy(into, what, n);
	return into + n;
}

size_t programwire_put(const struct programwire_answer *a, const struct names *names, uint8_t *into)
{
	struct programwire_head h = a->head;
	uint8_t *at = into;

	h.count = names ? names->count : 0;
	h.text_len = h.count ? (uint32_t)names->used : 0;
	at = append(at, &h, sizeof(h));
	for (unsigned i = 0; i < h.count; i++) {
		const struct call *c = &names->calls[i];
		const struct programwire_call w = { .line = c->line,
						    .start_line = c->start_line,
						    .name = text_of(names, c->name),
						    .system_name = text_of(names, c->system_name),
						    .source = text_of(names, c->source),
						    .bare = c->bare };

		at = append(at, &w, sizeof(w));
	}
	at = append(at, names ? names->text : NULL, h.text_len);
	if (h.flags & PROGRAMWIRE_FACTS)
		at = append(at, &a->facts, sizeof(a->facts));
	if (h.flags & PROGRAMWIRE_BUILD)
		at = append(at, &a->build, sizeof(a->build));
	return (size_t)(at - into);
}

static bool is_within(struct programwire_text t, uint32_t text_len)
{
	return t.len <= NAMES_TEXT && t.at <= text_len && t.len <= text_len - t.at;
}

static struct str str_of(const struct names *n, struct programwire_text t)
{
	return t.len ? (struct str){ .data = n->text + t.at, .len = t.len } : (struct str){ 0 };
}

static bool take_call(struct span *rest, struct names *n, uint32_t text_len)
{
	struct programwire_call c;

	if (!span_read(rest, &c, sizeof(c)) || !is_within(c.name, text_len) ||
	    !is_within(c.system_name, text_len) || !is_within(c.source, text_len) || c.bare > 1 ||
	    c.zero || c.line > INT32_MAX || c.start_line > INT32_MAX)
		return false;
	n->calls[n->count++] = (struct call){ .name = str_of(n, c.name),
					      .system_name = str_of(n, c.system_name),
					      .source = str_of(n, c.source),
					      .line = c.line,
					      .start_line = c.start_line,
					      .bare = c.bare };
	return true;
}

static bool take_facts(struct span *rest, struct programwire_facts *f)
{
	return span_read(rest, f, sizeof(*f)) && f->want <= PROGRAM_WANTS_PACKAGE &&
	       f->id_len <= sizeof(f->id) && f->build_id_len <= sizeof(f->build_id) &&
	       f->name_len <= NAMES_TEXT && strnlen(f->name, sizeof(f->name)) == f->name_len;
}

bool programwire_take(struct span bytes, struct programwire_answer *ret, struct names *ret_names)
{
	struct programwire_head *h = &ret->head;
	struct span text;

	names_reset(ret_names);
	if (!span_read(&bytes, h, sizeof(*h)) || h->count > NAMES_MAX || h->step > SOURCES_DONE ||
	    (h->count && h->verdict) || h->text_len > sizeof(ret_names->text) ||
	    (h->text_len && !h->count))
		return false;
	for (uint32_t i = 0; i < h->count; i++)
		if (!take_call(&bytes, ret_names, h->text_len))
			return false;
	if (!span_take(&bytes, h->text_len, &text) ||
	    (text.len && memchr(text.data, '\0', text.len)))
		return false;
	if (text.len)
		memcpy(ret_names->text, text.data, text.len);
	ret_names->used = text.len;
	if (h->flags & PROGRAMWIRE_FACTS && !take_facts(&bytes, &ret->facts))
		return false;
	if (h->flags & PROGRAMWIRE_BUILD &&
	    (!span_read(&bytes, &ret->build, sizeof(ret->build)) || !runtime_is_sane(&ret->build)))
		return false;
	return bytes.len == 0;
}
