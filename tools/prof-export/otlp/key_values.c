/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/key_values.h"

#include "common/base/text/percent.h"

static struct str trim(struct str s)
{
	while (s.len && (*s.data == ' ' || *s.data == '\t')) {
		s.data++;
		s.len--;
	}
	while (s.len && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* Decodes %XX, as far as the result fits. Returns the length. */
static uint32_t decode(struct str s, char to[static KEY_VALUES_TEXT])
{
	uint32_t n = 0;

	for (size_t i = 0; i < s.len && n < KEY_VALUES_TEXT;)
		to[n++] = percent_next(s.data, s.len, &i);
	return n;
}

static bool parse(struct str text, struct key_value *ret)
{
	const char *equals = text.len ? memchr(text.data, '=', text.len) : NULL;

	if (!equals)
		return false;
	const uint32_t at = (uint32_t)(equals - text.data);

	ret->key_len = decode(trim((struct str){ .data = text.data, .len = at }), ret->key);
	ret->value_len = decode(trim((struct str){ .data = equals + 1, .len = text.len - at - 1 }),
				ret->value);
	return ret->key_len && ret->value_len;
}

bool key_values_next(struct str *list, struct key_value *ret, uint32_t *skipped)
{
	while (list->len) {
		const char *comma = memchr(list->data, ',', list->len);
		const uint32_t n = comma ? (uint32_t)(comma - list->data) : list->len;
		const struct str text = { .data = list->data, .len = n };

		list->data += n + (comma != NULL);
		list->len -= n + (comma != NULL);
		if (parse(text, ret))
			return true;
		/* Two adjacent commas do not count as a skipped pair. */
		*skipped += trim(text).len > 0;
	}
	return false;
}
