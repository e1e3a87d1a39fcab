/* SPDX-License-Identifier: Apache-2.0 */
#include "common/walk/tables/tables_internal.h"

#include <errno.h>
#include <stdlib.h>
#include "bpf/walk/env.h"

#define SLABS_TICK_NS 1000000000u
#define LOWERED_NS 8000000000ull /* after the limit was lowered, it rises slowly for this long */
#define RAISE_NS 2000000000ull	 /* it may rise after higher limits were set for this long */
#define FEW_COUNT 16 /* weight of a sample if its owner holds less than half of its share */

int tables_new(const struct tables_config *c, struct tables **ret)
{
	struct tables *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->config = *c;
	t->next_slot = TABLES_UNASKED + 1;
	t->state = calloc(TABLES_MAX_FILES, sizeof(*t->state));
	t->free_slots = calloc(TABLES_MAX_FILES, sizeof(*t->free_slots));
	int r = t->state && t->free_slots ? 0 : -ENOMEM;
	if (!r)
		r = array_init(&t->files, c->files_fd,
			       sizeof(struct file_entry) * TABLES_MAX_FILES);
	if (!r)
		r = array_reach(&t->files, (TABLES_UNASKED + 1) * sizeof(struct file_entry));
	if (!r)
		r = rules_init(&t->rules, c->rules_fd);
	size_t slabs = c->max_bytes / TABLES_SLAB_BYTES;
	slabs = slabs < 1 ? 1 : slabs > TABLES_MAX_SLABS ? TABLES_MAX_SLABS : slabs;
	if (!r)
		r = slabs_init(&t->slabs, c->slabs_fd, (uint32_t)slabs);
	if (r) {
		tables_free(t);
		return r;
	}
	tables_file_set_state(t, TABLES_UNASKED, TABLES_FILE_PENDING);
	*ret = t;
	return 0;
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	slabs_done(&t->slabs);
	for (uint32_t i = 1; t->state && i < t->next_slot; i++) {
		incoming_free(t->state[i].in);
		free(t->state[i].extents.data);
		free(t->state[i].rules);
		free(t->state[i].runtime);
	}
	struct table_process *p, *p_next;
	HASH_ITER(hh, t->processes, p, p_next) {
		HASH_DEL(t->processes, p);
		free(p);
	}
	array_done(&t->files);
	rules_done(&t->rules);
	free(t->victims);
	free(t->walk_maps);
	free(t->waiting);
	free(t->state);
	free(t->free_slots);
	free(t);
}

static bool is_closing(const struct tables *t, const struct table_file *f)
{
	for (size_t i = 0; i < f->extents.len; i++) {
		if (slabs_closing(&t->slabs, f->extents.data[i]))
			return true;
	}
	return false;
}

/* Whether the owner of a file holds less than half of its share. */
static bool has_few(const struct tables *t, uint32_t owner, uint64_t share)
{
	const struct tables_ledger *l = t->ledger;

	return l && l->held(l->ctx, owner, TABLES_WORDS) < share / 2;
}

/* Chooses the slab to close when there are too many: the one whose files have the fewest recent
 * samples. Slabs with a runtime's config stay, since processes refer to its position. Returns -1 if
 * none can be closed. */
static int vacated(const struct tables *t)
{
	uint64_t samples[TABLES_MAX_SLABS] = { 0 };
	bool stays[TABLES_MAX_SLABS] = { false };
	const uint64_t share = t->ledger ? t->ledger->share(t->ledger->ctx, TABLES_NOBODY,
							    TABLES_WORDS, tables_all_words(t))
					 : 0;
	int ret = -1;

	for (uint32_t i = 1; i < t->next_slot; i++) {
		const struct table_file *f = &t->state[i];

		for (size_t k = 0; k < f->extents.len; k++)
			samples[f->extents.data[k].position >> TABLES_SLAB_WORDS_SHIFT] +=
				(has_few(t, f->owner, share) ? FEW_COUNT : 1u) *
				tables_file_score(f, t->now_ns);
		if (f->runtime)
			stays[f->runtime_extent.position >> TABLES_SLAB_WORDS_SHIFT] = true;
	}
	for (uint32_t i = 0; i < t->slabs.top; i++) {
		if (t->slabs.slot[i].data && !t->slabs.slot[i].closing && !stays[i] &&
		    (ret < 0 || samples[i] <= samples[ret]))
			ret = (int)i;
	}
	return ret;
}

/* Closes the slabs above the limit: evicts the rows in them and moves the mappings. Rows that are
 * still arriving are evicted once they are complete. */
static void hand_back(struct tables *t)
{
	while (slabs_excess(&t->slabs)) {
		const int slab = vacated(t);

		if (slab < 0)
			break;
		slabs_close(&t->slabs, (uint32_t)slab);
	}
	if (!t->slabs.closing)
		return;
	for (uint32_t i = 1; i < t->next_slot; i++) {
		if (t->state[i].state == TABLES_FILE_READY && is_closing(t, &t->state[i]))
			tables_file_evict(t, (uint16_t)i);
	}
	tables_move_processes(t);
	tables_drop_closing(t);
}

void tables_tick(struct tables *t, uint64_t now_ns)
{
	t->now_ns = now_ns;
	t->sorted = false;
	tables_release_waiting(t);
	/* Other tools wait for this memory, so do it at each tick. */
	hand_back(t);
	if (now_ns < t->slabs_ns + SLABS_TICK_NS && now_ns >= t->slabs_ns)
		return;
	t->slabs_ns = now_ns;
	tables_keep_room(t);
	slabs_tick(&t->slabs);
}

void tables_keep_ledger(struct tables *t, const struct tables_ledger *l)
{
	t->ledger = l;
}

void tables_charge_mappings(struct tables *t, uint32_t owner)
{
	t->maps_owner = owner;
}

/* If the limit rises, rows that did not fit need not wait for evicted memory. */
static void set_limit(struct tables *t, uint32_t slabs)
{
	const bool rises = slabs > t->slabs.max;

	slabs_limit(&t->slabs, slabs);
	if (!rises)
		return;
	for (uint32_t i = 1; i < t->next_slot; i++) {
		if (t->state[i].state == TABLES_FILE_EVICTED && !t->state[i].lacks_rules)
			t->state[i].again_ns = t->now_ns;
	}
}

/* Each time a slab is removed and added again, the rows in it are lost. So after the limit was
 * lowered, it rises only to the lowest value that was requested for some time. */
void tables_limit(struct tables *t, size_t max_bytes)
{
	const uint32_t slabs = max_bytes / TABLES_SLAB_BYTES < TABLES_MAX_SLABS
				       ? (uint32_t)(max_bytes / TABLES_SLAB_BYTES)
				       : TABLES_MAX_SLABS;

	if (slabs < t->slabs.max) {
		/* If the lower limit still leaves space for another slab, it may rise again at
		 * once. */
		if ((uint64_t)slabs * TABLES_SLAB_BYTES <= t->slabs.bytes)
			t->lowered_ns = t->now_ns;
	} else if (t->lowered_ns && t->now_ns - t->lowered_ns < LOWERED_NS) {
		if (slabs < t->raise_to || !t->raise_ns)
			t->raise_to = slabs;
		t->raise_ns = t->raise_ns ? t->raise_ns : t->now_ns;
		if (t->now_ns - t->raise_ns < RAISE_NS)
			return;
		t->raise_ns = 0;
		set_limit(t, t->raise_to);
		return;
	}
	t->raise_ns = 0;
	set_limit(t, slabs);
}

void tables_figures(const struct tables *t, struct tables_figures *ret)
{
	*ret = t->figures;
	ret->rules = t->rules.count;
	ret->bytes = t->slabs.bytes;
	ret->bytes_used = t->slabs.bytes_used;
}

/* Returns a slab, for a walk in user space. Number TABLES_MAX_SLABS is not in the map: it holds the
 * mappings of the current walk. */
static const struct slab *walk_slab(void *ctx, uint32_t position, uint32_t words)
{
	struct tables *t = ctx;
	uint32_t i = position >> TABLES_SLAB_WORDS_SHIFT;

	if (i == TABLES_MAX_SLABS)
		return t->walk_maps;
	if (i >= t->slabs.top || !t->slabs.slot[i].data)
		return NULL;
	uint32_t *at = slabs_at(&t->slabs, position, words);
	return at ? (const struct slab *)(at - (position & (TABLES_SLAB_WORDS - 1))) : NULL;
}

void tables_env(struct tables *t, struct env *ret)
{
	ret->slab = walk_slab;
	ret->tables = t;
	ret->files = t->files.data;
	ret->rules = t->rules.array.data;
}
