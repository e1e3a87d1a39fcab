/* SPDX-License-Identifier: Apache-2.0 */
/* Freed slots and extents that wait for the grace period. */
#include <stdlib.h>
#include <string.h>
#include "common/base/system/clock.h"
#include "common/walk/tables/tables_internal.h"

#define DROPPED_AT_ONCE 2
/* Waiting for the kernel takes at most this part of the time. */
#define HURRY_PART 8

void tables_release_maps(struct tables *t, struct slabs_extent e)
{
	if (tables_extent_is_large(&e))
		t->large_words -= e.words;
	slabs_release(&t->slabs, e);
}

/* Waiting memory is still charged to its owner, since no other owner can use it yet. */
static void discharge(struct tables *t, const struct tables_waiting *w)
{
	if (w->what != TABLES_WAITING_EXTENT || w->owner == TABLES_NOBODY)
		return;
	tables_hold(t, w->owner, TABLES_WORDS, -(int64_t)w->extent.words);
	t->waiting_of[w->owner % TABLES_OWNERS] -= w->extent.words;
}

void tables_wait(struct tables *t, struct tables_waiting w)
{
	if (t->waiting_len == t->waiting_cap) {
		/* Reuse the front before growing. */
		if (t->waiting_head > t->waiting_cap / 2) {
			memmove(t->waiting, t->waiting + t->waiting_head,
				(t->waiting_len - t->waiting_head) * sizeof(*t->waiting));
			t->waiting_len -= t->waiting_head;
			t->waiting_head = 0;
		} else {
			size_t cap = t->waiting_cap ? t->waiting_cap * 2 : 64;
			struct tables_waiting *p = reallocarray(t->waiting, cap, sizeof(*p));

			if (!p) {
				/* Without memory for the entry, the extent is never used again.
				 * That is safe, and the size of the tables bounds the leak. */
				discharge(t, &w);
				return;
			}
			t->waiting = p;
			t->waiting_cap = cap;
		}
	}
	t->waiting[t->waiting_len++] = w;
	t->waiting_new++;
}

static void wait_extent(struct tables *t, struct slabs_extent e, uint32_t owner, bool mappings)
{
	if (!e.words)
		return;
	t->waiting_words += e.words;
	if (owner != TABLES_NOBODY)
		t->waiting_of[owner % TABLES_OWNERS] += e.words;
	tables_wait(t, (struct tables_waiting){ .what = TABLES_WAITING_EXTENT,
						.extent = e,
						.owner = owner,
						.mappings = mappings });
}

void tables_wait_extent(struct tables *t, struct slabs_extent e, uint32_t owner)
{
	wait_extent(t, e, owner, false);
}

void tables_wait_maps(struct tables *t, struct slabs_extent e, uint32_t owner)
{
	wait_extent(t, e, owner, true);
}

static void release(struct tables *t, const struct tables_waiting *w)
{
	if (w->what == TABLES_WAITING_RULE) {
		rules_reuse(&t->rules, w->number);
	} else if (w->what == TABLES_WAITING_SLOT) {
		t->free_slots[t->free_slot_count++] = (uint16_t)w->number;
	} else {
		t->waiting_words -= w->extent.words;
		discharge(t, w);
		if (w->mappings)
			tables_release_maps(t, w->extent);
		else
			slabs_release(&t->slabs, w->extent);
	}
}

void tables_release_waiting(struct tables *t)
{
	const uint64_t now_ns = t->now_ns;

	/* All samples up to now were drained. Memory that was freed since the last tick counts as
	 * freed now: the clock may have stood still, so it is not known how long ago that was. */
	for (; t->waiting_new; t->waiting_new--)
		t->waiting[t->waiting_len - t->waiting_new].since_ns = now_ns;
	while (t->waiting_head < t->waiting_len) {
		const struct tables_waiting *w = &t->waiting[t->waiting_head];

		if (now_ns - w->since_ns < TABLES_GRACE_NS && now_ns >= w->since_ns)
			break;
		release(t, w);
		t->waiting_head++;
	}
	if (t->waiting_head == t->waiting_len)
		t->waiting_head = t->waiting_len = 0;
}

bool tables_hurry(struct tables *t)
{
	const uint64_t began_ns = clock_mono_ns();
	size_t kept = t->waiting_head, kept_new = 0;

	if (!t->waiting_words || began_ns < t->hurry_ns || !slabs_await_walks(&t->slabs))
		return false;
	const uint64_t end_ns = clock_mono_ns();

	t->hurry_ns = end_ns + (HURRY_PART - 1) * (end_ns - began_ns);
	/* Samples that were not drained yet may name slots, but nothing else. */
	for (size_t i = t->waiting_head; i < t->waiting_len; i++) {
		if (t->waiting[i].what != TABLES_WAITING_SLOT) {
			release(t, &t->waiting[i]);
			continue;
		}
		kept_new += i >= t->waiting_len - t->waiting_new;
		t->waiting[kept++] = t->waiting[i];
	}
	t->waiting_len = kept;
	t->waiting_new = kept_new;
	return true;
}

/* Forgets what waits in a slab that is removed now. */
static void forget_waiting(struct tables *t, uint32_t slab)
{
	for (size_t i = t->waiting_head; i < t->waiting_len; i++) {
		struct tables_waiting *w = &t->waiting[i];

		if (w->what != TABLES_WAITING_EXTENT || !w->extent.words ||
		    w->extent.position >> TABLES_SLAB_WORDS_SHIFT != slab)
			continue;
		t->waiting_words -= w->extent.words;
		discharge(t, w);
		if (w->mappings && tables_extent_is_large(&w->extent))
			t->large_words -= w->extent.words;
		w->extent.words = 0;
	}
}

/* Gives closing slabs back at once if nothing in them is in use. The kernel frees a slab when no
 * walk reads it any more, and later walks do not find it. Only a few slabs per call, since each
 * waits for the kernel. */
void tables_drop_closing(struct tables *t)
{
	uint32_t words[TABLES_MAX_SLABS] = { 0 };
	int dropped = 0;

	for (size_t i = t->waiting_head; i < t->waiting_len; i++) {
		const struct tables_waiting *w = &t->waiting[i];

		if (w->what == TABLES_WAITING_EXTENT)
			words[w->extent.position >> TABLES_SLAB_WORDS_SHIFT] += w->extent.words;
	}
	for (uint32_t i = 0; i < t->slabs.top && dropped < DROPPED_AT_ONCE; i++) {
		if (!slabs_drop_closing(&t->slabs, i, words[i]))
			continue;
		forget_waiting(t, i);
		dropped++;
	}
}
