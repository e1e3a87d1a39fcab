/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/figures/hottest.h"

#include <string.h>

void hottest_done(struct hottest *h, struct pool *p)
{
	table_strings_done(&h->names, p);
	pool_free(p, h->self.data, &h->self.cap, sizeof(*h->self.data));
	h->self.data = NULL;
	h->self.len = 0;
}

static bool add(struct hottest *h, struct pool *p, struct str name, uint64_t self)
{
	uint32_t at;

	if (table_strings_intern(&h->names, p, name, &at))
		return false;
	if (at == h->self.len) {
		void *more = pool_grow(p, h->self.data, &h->self.cap, h->self.len + 1,
				       sizeof(*h->self.data));

		if (!more)
			return false;
		h->self.data = more;
		h->self.data[h->self.len++] = 0;
	}
	/* An earlier call may have stored the name but had no room for its count. */
	if (at < h->self.len && __builtin_add_overflow(h->self.data[at], self, &h->self.data[at]))
		h->self.data[at] = UINT64_MAX;
	return true;
}

bool hottest_add(struct hottest *h, struct pool *p, struct buf *label, enum status_kind kind,
		 uint64_t self)
{
	if (buf_append(label, &(char){ (char)kind }, 1))
		return false;
	return add(h, p, (struct str){ .data = (char *)label->data, .len = (uint32_t)label->len },
		   self);
}

void hottest_add_all(struct hottest *h, struct pool *p, const struct hottest *from)
{
	for (uint32_t i = 0; i < from->self.len; i++) {
		if (!add(h, p, table_strings_get(&from->names, i), from->self.data[i]))
			break;
	}
}

static bool hotter(const struct hottest *h, uint32_t a, uint32_t b)
{
	if (h->self.data[a] != h->self.data[b])
		return h->self.data[a] > h->self.data[b];
	const struct str x = table_strings_get(&h->names, a), y = table_strings_get(&h->names, b);
	const uint32_t n = x.len < y.len ? x.len : y.len;
	const int order = n ? memcmp(x.data, y.data, n) : 0;

	return order ? order < 0 : x.len < y.len;
}

void hottest_top(const struct hottest *h, struct status_top top[static STATUS_TOP])
{
	uint32_t best[STATUS_TOP];
	size_t n = 0;

	for (uint32_t i = 0; i < h->self.len; i++) {
		size_t at = n < STATUS_TOP ? n++ : STATUS_TOP;

		for (; at > 0 && hotter(h, i, best[at - 1]); at--)
			if (at < STATUS_TOP)
				best[at] = best[at - 1];
		if (at < STATUS_TOP)
			best[at] = i;
	}
	for (size_t i = 0; i < n; i++) {
		static const char more[] = "…";
		struct str s = table_strings_get(&h->names, best[i]);

		top[i].self = h->self.data[best[i]];
		top[i].kind = (uint8_t)s.data[--s.len];
		/* Without the dots, cutting a name could produce one that looks like a mark. */
		if (s.len > STATUS_NAME - 1) {
			s = str_cut(s, STATUS_NAME - sizeof(more));
			memcpy(top[i].name + s.len, more, sizeof(more) - 1);
		}
		memcpy(top[i].name, s.data, s.len);
	}
}
