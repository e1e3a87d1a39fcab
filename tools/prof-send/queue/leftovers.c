/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/queue/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/system/clock.h"

#define ENTRIES_FIRST 64

static bool is_given(uint64_t key, const uint64_t *keys, size_t n)
{
	bool is = false;

	for (size_t i = 0; i < n; i++)
		is |= keys[i] == key;
	return is;
}

static int add(struct leftovers *l, const struct leftover *one)
{
	if (l->n == l->cap) {
		const size_t more = l->cap ? 2 * l->cap : ENTRIES_FIRST;
		struct leftover *list = reallocarray(l->list, more, sizeof(*list));

		if (!list)
			return -ENOMEM;
		l->list = list;
		l->cap = more;
	}
	l->list[l->n++] = *one;
	l->bytes += one->bytes;
	return 0;
}

/* Requests of different endpoints have unrelated serials. */
static int by_age(const void *a, const void *b)
{
	const struct leftover *x = a, *y = b;

	if (x->written_ns != y->written_ns)
		return x->written_ns < y->written_ns ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

int leftovers_find(const struct spool *s, const uint64_t *keys, size_t key_count,
		   struct leftovers *ret)
{
	DIR *d = spool_names(s);
	int r = 0;

	*ret = (struct leftovers){ 0 };
	if (!d)
		return -errno;
	for (struct dirent *e = readdir(d); e && !r; e = readdir(d)) {
		struct leftover one;
		struct stat st;
		bool part;

		if (!spoolfile_parse_name(e->d_name, &one.key, &one.serial, &part) ||
		    is_given(one.key, keys, key_count) ||
		    fstatat(s->folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		one.bytes = (uint64_t)st.st_size;
		one.written_ns = clock_timespec_ns(st.st_mtim);
		if (part)
			unlinkat(s->folder, e->d_name, 0);
		else
			r = add(ret, &one);
	}
	closedir(d);
	if (ret->n)
		qsort(ret->list, ret->n, sizeof(ret->list[0]), by_age);
	return r;
}

size_t leftovers_keep(struct leftovers *l, const struct spool *s, uint64_t max)
{
	const size_t before = l->dropped;

	for (; l->bytes > max && l->dropped < l->n; l->dropped++) {
		const struct leftover *oldest = &l->list[l->dropped];

		spool_remove(s, oldest->key, oldest->serial);
		l->bytes -= oldest->bytes;
	}
	return l->dropped - before;
}

void leftovers_done(struct leftovers *l)
{
	free(l->list);
	*l = (struct leftovers){ 0 };
}
