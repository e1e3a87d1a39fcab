/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/calltext.h"

#include <string.h>

struct calltext calltext_of(const struct names *n, struct str s)
{
	return s.len ? (struct calltext){ .at = (uint32_t)(s.data - n->text), .len = s.len }
		     : (struct calltext){ 0 };
}

bool calltext_is_within(struct calltext t, uint32_t text_len)
{
	return t.len <= NAMES_TEXT && t.at <= text_len && t.len <= text_len - t.at;
}

struct str calltext_str(const struct names *n, struct calltext t)
{
	return t.len ? (struct str){ .data = n->text + t.at, .len = t.len } : (struct str){ 0 };
}

bool calltext_take(struct span *rest, uint32_t text_len, struct names *n)
{
	struct span text;

	if (text_len > sizeof(n->text) || !span_take(rest, text_len, &text) ||
	    (text.len && memchr(text.data, '\0', text.len)))
		return false;
	if (text.len)
		memcpy(n->text, text.data, text.len);
	n->used = text.len;
	return true;
}

uint8_t *calltext_append(uint8_t *into, const void *what, size_t n)
{
	if (n)
		memcpy(into, what, n);
	return into + n;
}
