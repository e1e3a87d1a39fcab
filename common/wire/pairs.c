/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/pairs.h"

#include <string.h>
#include <unistd.h>

static void close_file(struct pair *x)
{
	if (x->fd >= 0)
		close(x->fd);
	x->fd = -1;
}

void pairs_done(struct pairs *p)
{
	for (unsigned i = 0; i < p->count; i++)
		close_file(&p->pair[i]);
	p->count = 0;
}

bool pairs_full(const struct pairs *p)
{
	return p->count == PAIRS_MAX;
}

/* Returns the pair with this id, or a new one; NULL if there is no room. */
static struct pair *get(struct pairs *p, uint64_t id, uint64_t now_ns)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->pair[i].id == id)
			return &p->pair[i];
	if (pairs_full(p))
		return NULL;
	p->pair[p->count] = (struct pair){ .id = id, .since_ns = now_ns, .fd = -1 };
	return &p->pair[p->count++];
}

void pairs_message(struct pairs *p, uint64_t id, bool with_file, uint64_t now_ns)
{
	struct pair *x = get(p, id, now_ns);

	if (!x || x->has_message)
		return;
	x->has_message = true;
	if (!with_file) {
		close_file(x);
		x->has_file = true;
	}
}

void pairs_file(struct pairs *p, uint64_t id, int fd, uint64_t now_ns)
{
	struct pair *x = get(p, id, now_ns);

	if (!x || x->has_file) {
		if (fd >= 0)
			close(fd);
		return;
	}
	x->has_file = true;
	x->fd = fd;
}

static bool is_due(const struct pair *x, uint64_t now_ns)
{
	return (x->has_message && x->has_file) || now_ns - x->since_ns >= PAIRS_WAIT_NS;
}

bool pairs_take(struct pairs *p, uint64_t now_ns, struct pair *ret)
{
	unsigned i = 0;

	while (i < p->count && !is_due(&p->pair[i], now_ns))
		i++;
	if (i == p->count) {
		if (!pairs_full(p))
			return false;
		i = 0;
	}
	*ret = p->pair[i];
	p->count--;
	memmove(&p->pair[i], &p->pair[i + 1], (p->count - i) * sizeof(*p->pair));
	if (!ret->has_message)
		close_file(ret);
	return true;
}

int pairs_wait_ms(const struct pairs *p, uint64_t now_ns)
{
	const uint64_t age_ns = p->count ? now_ns - p->pair[0].since_ns : 0;

	if (!p->count)
		return -1;
	return age_ns < PAIRS_WAIT_NS ? (int)((PAIRS_WAIT_NS - age_ns) / 1000000) + 1 : 0;
}
