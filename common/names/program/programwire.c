/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/programwire.h"

#include <string.h>
#include "common/names/calltext.h"
#include "common/names/program/sources.h"

size_t programwire_put(const struct programwire_answer *a, const struct names *names, uint8_t *into)
{
	struct programwire_head h = a->head;
	uint8_t *at = into;

	h.count = names ? names->count : 0;
	h.text_len = h.count ? (uint32_t)names->used : 0;
	at = calltext_append(at, &h, sizeof(h));
	for (unsigned i = 0; i < h.count; i++) {
		const struct names_call *c = &names->calls[i];
		const struct programwire_call w = { .line = c->line,
						    .start_line = c->start_line,
						    .name = calltext_of(names, c->name),
						    .system_name = calltext_of(names,
									       c->system_name),
						    .source = calltext_of(names, c->source),
						    .bare = c->bare };

		at = calltext_append(at, &w, sizeof(w));
	}
	at = calltext_append(at, names ? names->text : NULL, h.text_len);
	if (h.flags & PROGRAMWIRE_FACTS)
		at = calltext_append(at, &a->facts, sizeof(a->facts));
	if (h.flags & PROGRAMWIRE_BUILD)
		at = calltext_append(at, &a->build, sizeof(a->build));
	if (h.flags & PROGRAMWIRE_MORE)
		at = calltext_append(at, a->more.data, a->more.len);
	return (size_t)(at - into);
}

static bool take_call(struct span *rest, struct names *n, uint32_t text_len)
{
	struct programwire_call c;

	if (!span_read(rest, &c, sizeof(c)) || !calltext_is_within(c.name, text_len) ||
	    !calltext_is_within(c.system_name, text_len) ||
	    !calltext_is_within(c.source, text_len) || c.bare > 1 || c.zero || c.line > INT32_MAX ||
	    c.start_line > INT32_MAX)
		return false;
	n->calls[n->count++] = (struct names_call){ .name = calltext_str(n, c.name),
						    .system_name = calltext_str(n, c.system_name),
						    .source = calltext_str(n, c.source),
						    .line = c.line,
						    .start_line = c.start_line,
						    .bare = c.bare };
	return true;
}

static bool take_facts(struct span *rest, struct programwire_facts *f)
{
	return span_read(rest, f, sizeof(*f)) && f->want <= PROGRAM_WANTS_PACKAGE &&
	       f->id_len <= sizeof(f->id) && fileid_is_sane(&f->file) &&
	       f->name_len <= NAMES_TEXT && strnlen(f->name, sizeof(f->name)) == f->name_len;
}

bool programwire_take(struct span bytes, struct programwire_answer *ret, struct names *ret_names)
{
	struct programwire_head *h = &ret->head;

	names_reset(ret_names);
	if (!span_read(&bytes, h, sizeof(*h)) || h->count > NAMES_MAX || h->step > SOURCES_DONE ||
	    (h->count && h->verdict) || h->text_len > sizeof(ret_names->text) ||
	    (h->text_len && !h->count))
		return false;
	for (uint32_t i = 0; i < h->count; i++)
		if (!take_call(&bytes, ret_names, h->text_len))
			return false;
	if (!calltext_take(&bytes, h->text_len, ret_names))
		return false;
	if (h->flags & PROGRAMWIRE_FACTS && !take_facts(&bytes, &ret->facts))
		return false;
	if (h->flags & PROGRAMWIRE_BUILD &&
	    (!span_read(&bytes, &ret->build, sizeof(ret->build)) || !runtime_is_sane(&ret->build)))
		return false;
	ret->more = (struct span){ 0 };
	if (h->flags & PROGRAMWIRE_MORE)
		return bytes.len <= PROGRAMWIRE_MORE_MAX &&
		       span_take(&bytes, bytes.len, &ret->more);
	return bytes.len == 0;
}

bool programwire_find(struct span more, uint64_t offset, struct programwire_answer *ret,
		      struct names *ret_names)
{
	struct programwire_more m;
	struct span answer;

	while (span_read(&more, &m, sizeof(m)) && span_take(&more, m.size, &answer))
		if (m.offset == offset)
			return programwire_take(answer, ret, ret_names);
	return false;
}
