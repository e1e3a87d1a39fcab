/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/workers/environment.h"

#include <assert.h>
#include <string.h>
#include "common/base/bytes/numbers.h"

struct value_head {
	uint32_t which, len;
};

static void end_entry(struct environment_parser *e)
{
	const size_t len = numbers_smaller(e->len, sizeof(e->entry));
	const char *equals = len ? memchr(e->entry, '=', len) : NULL;
	const size_t name_len = equals ? (size_t)(equals - e->entry) : 0;

	e->len = 0;
	for (unsigned i = 0; equals && i < e->count; i++) {
		if (strlen(e->names[i]) != name_len || memcmp(e->names[i], e->entry, name_len) ||
		    e->found & 1u << i)
			continue;
		const struct str value = str_cut(
			(struct str){ .data = equals + 1, .len = (uint32_t)(len - name_len - 1) },
			ENVIRONMENT_VALUE_MAX);

		e->found |= 1u << i;
		if (value.len)
			e->take(e->ctx, i, value);
	}
}

void environment_feed(struct environment_parser *e, struct span piece)
{
	while (piece.len) {
		const uint8_t *end = memchr(piece.data, '\0', piece.len);
		const size_t n = end ? (size_t)(end - piece.data) : piece.len,
			     left = e->len < sizeof(e->entry) ? sizeof(e->entry) - e->len : 0;

		memcpy(e->entry + (sizeof(e->entry) - left), piece.data, numbers_smaller(n, left));
		e->len += n;
		piece.data += n + (end != NULL);
		piece.len -= n + (end != NULL);
		if (end)
			end_entry(e);
	}
}

struct str environment_command_line(const char *bytes, size_t len)
{
	while (len && !bytes[len - 1])
		len--;
	return str_cut((struct str){ .data = bytes, .len = (uint32_t)len }, ENVIRONMENT_VALUE_MAX);
}

size_t environment_put(uint8_t *into, size_t used, unsigned which, struct str value)
{
	const struct value_head h = { .which = which, .len = value.len };

	memcpy(into + used, &h, sizeof(h));
	memcpy(into + used + sizeof(h), value.data, value.len);
	return used + sizeof(h) + value.len;
}

bool environment_next(struct span *values, unsigned *ret_which, struct str *ret_value)
{
	struct value_head h;
	struct span text;

	static_assert(ENVIRONMENT_BYTES == ENVIRONMENT_VALUES * (ENVIRONMENT_VALUE_MAX + sizeof(h)),
		      "all values fit");
	if (!span_read(values, &h, sizeof(h)) || h.which >= ENVIRONMENT_VALUES || !h.len ||
	    h.len > ENVIRONMENT_VALUE_MAX || !span_take(values, h.len, &text))
		return false;
	*ret_which = h.which;
	*ret_value = (struct str){ .data = (const char *)text.data, .len = h.len };
	return true;
}
