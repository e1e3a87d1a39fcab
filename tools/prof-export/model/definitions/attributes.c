/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/definitions/attributes.h"

#include <errno.h>

struct attributes_head {
	uint16_t key, value; /* lengths of the key and the value that follow */
};

bool attributes_next(struct span *rest, struct str *ret_key, struct str *ret_value)
{
	struct attributes_head h;
	struct span key, value;

	if (!span_read(rest, &h, sizeof(h)) || !span_take(rest, h.key, &key) ||
	    !span_take(rest, h.value, &value))
		return false;
	*ret_key = (struct str){ .data = (const char *)key.data, .len = h.key };
	*ret_value = (struct str){ .data = (const char *)value.data, .len = h.value };
	return true;
}

/* Finds the attribute with this key: the offset of its first byte and its length. Returns false if
 * there is none. */
static bool find(const struct attributes *a, struct str wanted, size_t *ret_at, size_t *ret_len)
{
	struct span rest = attributes_all(a);
	struct str key, value;

	for (;;) {
		const size_t at = a->bytes.len - rest.len;

		if (!attributes_next(&rest, &key, &value))
			return false;
		if (!str_eq(key, wanted))
			continue;
		*ret_at = at;
		*ret_len = a->bytes.len - rest.len - at;
		return true;
	}
}

int attributes_set(struct attributes *a, struct pool *p, struct str key, struct str value)
{
	const struct attributes_head h = { .key = (uint16_t)key.len, .value = (uint16_t)value.len };
	size_t at = a->bytes.len, old = 0;
	const bool known = find(a, key, &at, &old);
	const size_t now = value.len ? sizeof(h) + key.len + value.len : 0,
		     behind = a->bytes.len - at - old;

	if (!known && !now)
		return 0;
	if (key.len > UINT16_MAX || value.len > UINT16_MAX ||
	    a->bytes.len - old + now > ATTRIBUTES_MAX || !POOL_ARRAY_ROOM(p, &a->bytes, now + 1))
		return -ENOBUFS;
	uint8_t *to = a->bytes.data + at;

	memmove(to + now, to + old, behind);
	a->bytes.len = at + now + behind;
	if (!now)
		return 0;
	memcpy(to, &h, sizeof(h));
	if (key.len)
		memcpy(to + sizeof(h), key.data, key.len);
	memcpy(to + sizeof(h) + key.len, value.data, value.len);
	return 0;
}

void attributes_done(struct attributes *a, struct pool *p)
{
	POOL_ARRAY_FREE(p, &a->bytes);
}
