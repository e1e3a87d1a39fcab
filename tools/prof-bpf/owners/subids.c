/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/owners/subids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/hash.h"
#include "common/base/files/smallfile.h"
#include "common/base/text/decimal.h"

#define FILE_MAX (1u << 20)

static int by_first(const void *a, const void *b)
{
	const struct subids_block *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

static int by_user(const void *a, const void *b)
{
	const struct subids_block *x = a, *y = b;

	return x->user != y->user ? (x->user < y->user ? -1 : 1) : by_first(a, b);
}

/* Takes a line without its end. Returns false if it has no block. */
static bool take_line(const char *line, size_t len, struct subids_block *ret)
{
	const char *colon = memchr(line, ':', len), *at = colon ? colon + 1 : NULL;
	uint64_t first, count;

	if (!at || !decimal_take(&at, &first) || *at++ != ':' || !decimal_take(&at, &count) ||
	    at != line + len || !count || first > UINT32_MAX || count > UINT32_MAX - first)
		return false;
	*ret = (struct subids_block){ .user = hash_bytes(HASH_START, line, (size_t)(colon - line)),
				      .first = (uint32_t)first,
				      .last = (uint32_t)(first + count - 1) };
	return true;
}

/* Lets each block stand for the lowest id of its user, and sorts them by their first ids. */
static void settle(struct subids *s)
{
	if (!s->len)
		return;
	qsort(s->blocks, s->len, sizeof(*s->blocks), by_user);
	for (size_t i = 0; i < s->len; i++) {
		struct subids_block *b = &s->blocks[i];

		b->as = i && b[-1].user == b->user ? b[-1].as : b->first;
	}
	qsort(s->blocks, s->len, sizeof(*s->blocks), by_first);
}

int subids_add(struct subids *s, const char *text)
{
	size_t len;

	for (const char *line = text; *line; line += len + (line[len] == '\n')) {
		struct subids_block b;

		len = strcspn(line, "\n");
		if (!take_line(line, len, &b))
			continue;
		void *more = reallocarray(s->blocks, s->len + 1, sizeof(*s->blocks));

		if (!more)
			return -ENOMEM;
		s->blocks = more;
		s->blocks[s->len++] = b;
	}
	settle(s);
	return 0;
}

int subids_read(struct subids *s)
{
	static const char *const files[] = { "/proc/1/root/etc/subuid", "/etc/subuid" };
	struct subids read = { .len = 0 };
	char *text = malloc(FILE_MAX);
	int r = text ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < sizeof(files) / sizeof(files[0]); i++)
		if (smallfile_read(AT_FDCWD, files[i], text, FILE_MAX) >= 0)
			r = subids_add(&read, text);
	free(text);
	if (r) {
		subids_done(&read);
		return r;
	}
	subids_done(s);
	*s = read;
	return 0;
}

uint32_t subids_owner(const struct subids *s, uint32_t uid)
{
	size_t from = 0, to = s->len;

	/* The last block that begins at or before it. */
	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (s->blocks[middle].first <= uid)
			from = middle + 1;
		else
			to = middle;
	}
	return from && uid <= s->blocks[from - 1].last ? s->blocks[from - 1].as : uid;
}

void subids_done(struct subids *s)
{
	free(s->blocks);
	*s = (struct subids){ .len = 0 };
}
