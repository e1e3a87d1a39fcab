/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/codewire.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

/* A string of an answer: its place in the text. */
struct text {
	uint32_t at, len;
};

struct result {
	uint64_t since_ns, until_ns;
	uint32_t found, zero;
};

struct wire_call {
	uint64_t line;
	struct text name, system_name, source;
};

_Static_assert(sizeof(struct codewire_head) +
			       CODEWIRE_BATCH * (sizeof(struct result) + sizeof(struct wire_call) +
						 3 * (NAMES_TEXT + 1)) <=
		       CODEWIRE_MAX,
	       "the largest answer");

/* --- requests --- */

size_t codewire_size(const struct codewire_ask *a)
{
	return offsetof(struct codewire_ask, addresses) + a->count * sizeof(a->addresses[0]);
}

bool codewire_is_ask(const struct codewire_ask *a, size_t size)
{
	return size >= offsetof(struct codewire_ask, addresses) && a->count <= CODEWIRE_BATCH &&
	       size == codewire_size(a) && a->file < CODEWIRE_FILES && a->jit < JIT_KINDS;
}

/* --- answers --- */

static struct text text_of(const struct names *n, struct str s)
{
	return s.len ? (struct text){ .at = (uint32_t)(s.data - n->text), .len = s.len }
		     : (struct text){ 0 };
}

static uint8_t *append(uint8_t *into, const void *what, size_t n)
{
	if (n)
		memcpy(into, what, n);
	return into + n;
}

size_t codewire_put(const struct codewire_answer *a, const struct names *names, uint8_t *into)
{
	struct codewire_head h = a->head;
	uint8_t *at = into;

	assert(h.count <= CODEWIRE_BATCH && names->count <= h.count);
	h.text_len = names->count ? (uint32_t)names->used : 0;
	at = append(at, &h, sizeof(h));
	for (uint32_t i = 0; i < h.count; i++) {
		const struct result r = { .since_ns = a->results[i].since_ns,
					  .until_ns = a->results[i].until_ns,
					  .found = a->results[i].found };

		at = append(at, &r, sizeof(r));
	}
	for (unsigned i = 0; i < names->count; i++) {
		const struct call *c = &names->calls[i];
		const struct wire_call w = { .line = c->line,
					     .name = text_of(names, c->name),
					     .system_name = text_of(names, c->system_name),
					     .source = text_of(names, c->source) };

		at = append(at, &w, sizeof(w));
	}
	at = append(at, names->text, h.text_len);
	return (size_t)(at - into);
}

static bool is_within(struct text t, uint32_t text_len)
{
	return t.len <= NAMES_TEXT && t.at <= text_len && t.len <= text_len - t.at;
}

static struct str str_of(const struct names *n, struct text t)
{
	return t.len ? (struct str){ .data = n->text + t.at, .len = t.len } : (struct str){ 0 };
}

static bool take_result(struct span *rest, uint64_t time_ns, struct codefile_answer *ret)
{
	struct result r;

	if (!span_read(rest, &r, sizeof(r)) || r.found > 1 || r.zero || r.until_ns <= r.since_ns)
		return false;
	/* An answer also holds for the time that was asked about. */
	if (r.since_ns > time_ns || (r.until_ns <= time_ns && r.until_ns != UINT64_MAX))
		return false;
	*ret = (struct codefile_answer){ .found = r.found,
					 .since_ns = r.since_ns,
					 .until_ns = r.until_ns };
	return true;
}

static bool take_call(struct span *rest, uint32_t text_len, struct names *n)
{
	struct wire_call c;

	if (!span_read(rest, &c, sizeof(c)) || c.line > UINT32_MAX ||
	    !is_within(c.name, text_len) || !is_within(c.system_name, text_len) ||
	    !is_within(c.source, text_len))
		return false;
	n->calls[n->count++] = (struct call){ .name = str_of(n, c.name),
					      .system_name = str_of(n, c.system_name),
					      .source = str_of(n, c.source),
					      .line = c.line };
	return true;
}

bool codewire_take(struct span bytes, const struct codewire_ask *to, struct codewire_answer *ret,
		   struct names *ret_names)
{
	struct codewire_head *h = &ret->head;
	const bool finds = to->kind == CODEWIRE_FIND;
	unsigned found = 0;
	struct span text;

	names_reset(ret_names);
	if (!span_read(&bytes, h, sizeof(*h)) || (h->verdict && h->verdict != -ENOMEM) ||
	    h->count != (finds && !h->verdict ? to->count : 0) || h->flags & ~CODEWIRE_FLAGS ||
	    h->text_len > sizeof(ret_names->text) ||
	    h->read > (to->kind == CODEWIRE_READ ? to->value + CODEFILE_CHUNK : 0))
		return false;
	for (uint32_t i = 0; i < h->count; i++) {
		if (!take_result(&bytes, to->time_ns, &ret->results[i]))
			return false;
		found += ret->results[i].found;
	}
	for (unsigned i = 0; i < found; i++)
		if (!take_call(&bytes, h->text_len, ret_names))
			return false;
	if ((h->text_len && !found) || !span_take(&bytes, h->text_len, &text) ||
	    (text.len && memchr(text.data, '\0', text.len)))
		return false;
	if (text.len)
		memcpy(ret_names->text, text.data, text.len);
	ret_names->used = text.len;
	return bytes.len == 0;
}
