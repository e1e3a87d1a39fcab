/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/space/interpreted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "runtimes_walk.h" /* generated from bpf/runtimes.def: all walks of runtimes */

#define AT_ONCE 1024 /* items that a walk gathers before they are taken from it */
static_assert(AT_ONCE + 4 <= RUNTIME_MAX_ITEMS, "it never stops for lack of room");

/* A runtime's walk over memory. It has one static state, as in the kernel. */
struct interpreted_walker {
	bool (*begin)(struct walk *w, const struct runtime_config *c, uint64_t base);
	int (*step)(struct walk *w);
};

#define RUNTIME(number, NAME, name, title, type, mark) \
	static struct name##_walk name##_state; \
\
	static bool name##_begins(struct walk *w, const struct runtime_config *c, uint64_t base) \
	{ \
		static_assert(sizeof(name##_state.config) <= RUNTIME_PRIVATE, "it fits"); \
		memcpy(&name##_state.config, c->own, sizeof(name##_state.config)); \
		name##_state.base = base; \
		name##_state.copies.what = c->copy; \
		return name##_begin(w, &name##_state); \
	} \
\
	static int name##_steps(struct walk *w) \
	{ \
		return name##_step(w, &name##_state); \
	}
#include "bpf/runtimes.def"

static const struct interpreted_walker walkers[RUNTIME_MAX] = {
#define RUNTIME(number, NAME, name, title, type, mark) [number] = { name##_begins, name##_steps },
#include "bpf/runtimes.def"
};

static int take(struct interpreted_items *i, struct walk *w)
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
		     struct interpreted_items *ret)
{
	int r = 0, stop = 0;

	if (c->runtime >= RUNTIME_MAX || !walkers[c->runtime].begin)
		return 0;
	w->sample.kernel_frames = w->sample.items = 0;
	if (!walkers[c->runtime].begin(w, c, base))
		return 0;
	while (!r && !stop) {
		stop = walkers[c->runtime].step(w);
		if (!stop && ret->count + w->sample.items >= INTERPRETED_MAX) {
			walk_item(w, RUNTIME_STOPPED, 0, 0);
			stop = 1;
		}
		if (stop || w->sample.items >= AT_ONCE)
			r = take(ret, w);
	}
	return r;
}

void interpreted_done(struct interpreted_items *i)
{
	free(i->words);
	*i = (struct interpreted_items){ 0 };
}

void interpreted_expect(const struct interpreted_items *i, struct weave_run *runs,
			uint32_t run_count, struct walk *w)
{
	struct weave_run *r = weave_nearest(runs, run_count);

	if (!r)
		return;
	w->entry_at = r->entry_at; /* which is not in w->entries */
	weave_pass(i->words, r);
}
