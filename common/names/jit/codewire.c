/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/codewire.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include "common/names/calltext.h"

struct result {
	uint64_t since_ns, until_ns;
	uint32_t found, zero;
};

struct wire_call {
	uint64_t line;
	struct calltext name, system_name, source;
};

static_assert(sizeof(struct codewire_head) +
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
	       size == codewire_size(a) && a->file < CODEWIRE_FILES && a->jit < MSG_JIT_KINDS;
}

/* --- answers --- */

size_t codewire_put(const struct codewire_answer *a, const struct names *names, uint8_t *into)
{
	struct codewire_head h = a->head;
	uint8_t *at = into;

	assert(h.count <= CODEWIRE_BATCH && names->count <= h.count);
	h.text_len = names->count ? (uint32_t)names->used : 0;
	at = calltext_append(at, &h, sizeof(h));
	for (uint32_t i = 0; i < h.count; i++) {
		const struct result r = { .since_ns = a->results[i].since_ns,
					  .until_ns = a->results[i].until_ns,
					  .found = a->results[i].found };

		at = calltext_append(at, &r, sizeof(r));
	}
	for (unsigned i = 0; i < names->count; i++) {
		const struct names_call *c = &names->calls[i];
		const struct wire_call w = { .line = c->line,
					     .name = calltext_of(names, c->name),
					     .system_name = calltext_of(names, c->system_name),
					     .source = calltext_of(names, c->source) };

		at = calltext_append(at, &w, sizeof(w));
	}
	at = calltext_append(at, names->text, h.text_len);
	return (size_t)(at - into);
}

static bool take_result(struct span *rest, uint64_t time_ns, struct codefile_answer *ret)
{
	struct result r;

	if (!span_read(rest, &r, sizeof(r)) || r.found > 1 || r.zero || r.until_ns <= r.since_ns)
		return false;
	/* The answer must be valid for the time of the request. */
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
	    !calltext_is_within(c.name, text_len) || !calltext_is_within(c.system_name, text_len) ||
	    !calltext_is_within(c.source, text_len))
		return false;
	n->calls[n->count++] = (struct names_call){ .name = calltext_str(n, c.name),
						    .system_name = calltext_str(n, c.system_name),
						    .source = calltext_str(n, c.source),
						    .line = c.line };
	return true;
}

bool codewire_take(struct span bytes, const struct codewire_ask *to, struct codewire_answer *ret,
		   struct names *ret_names)
{
	struct codewire_head *h = &ret->head;
	const bool finds = to->kind == CODEWIRE_FIND;
	unsigned found = 0;

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
	if ((h->text_len && !found) || !calltext_take(&bytes, h->text_len, ret_names))
		return false;
	return bytes.len == 0;
}
