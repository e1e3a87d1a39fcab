/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/interpreted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/python_walk.h"

#define AT_ONCE 1024 /* items that a walk gathers before they are taken from it */
static_assert(AT_ONCE + 4 <= RUNTIME_MAX_ITEMS, "it never stops for want of room");

/* Its process stands still: names are read afterwards. */
ENV_INLINE void env_object(const struct walk *w, struct python_walk *p, __u64 code, __u64 check)
{
	(void)w, (void)p, (void)code, (void)check;
}

static int take(struct items *i, struct walk *w)
{
	uint32_t n = w->sample.items;

	if (i->cap - i->count < n) {
		uint32_t cap = i->cap ? i->cap * 2 : 64;

		while (cap - i->count < n)
			cap *= 2;
		uint64_t *p = reallocarray(i->words, cap, 2 * sizeof(*p));

		if (!p)
			return -ENOMEM;
		i->words = p;
		i->cap = cap;
	}
	if (n)
		memcpy(i->words + 2 * (size_t)i->count, w->words, 2 * sizeof(*w->words) * n);
	i->count += n;
	w->sample.items = 0;
	w->entries[0].at = w->entry_at = 0;
	return 0;
}

int interpreted_walk(struct walk *w, const struct runtime_config *c, uint64_t base,
		     struct items *ret)
{
	static struct python_walk p;
	int r = 0, stop = 0;

	if (c->runtime != RUNTIME_PYTHON)
		return 0;
	memcpy(&p.config, c->own, sizeof(p.config));
	p.base = base;
	w->sample.kernel_frames = w->sample.items = 0;
	if (!python_begin(w, &p))
		return 0;
	while (!r && !stop) {
		stop = python_step(w, &p);
		if (!stop && ret->count + w->sample.items >= INTERPRETED_MAX) {
			walk_item(w, RUNTIME_STOPPED, 0, 0);
			stop = 1;
		}
		if (stop || w->sample.items >= AT_ONCE)
			r = take(ret, w);
	}
	return r;
}

void items_done(struct items *i)
{
	free(i->words);
	*i = (struct items){ 0 };
}

void items_expect(const struct items *i, struct weave_run *runs, uint32_t run_count, struct walk *w)
{
	struct weave_run *r = weave_nearest(runs, run_count);

	if (!r)
		return;
	w->entry_at = r->entry_at; /* which is in none of w->entries */
	weave_pass(i->words, r);
}
