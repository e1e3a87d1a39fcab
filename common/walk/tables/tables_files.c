/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of files: their states, their recent samples, and what they hold. */
#include <stdlib.h>
#include "common/walk/tables/tables_internal.h"

/* In nanoseconds: scores are halved every 4 s. */
#define SCORE_SHIFT 32
#define UNMAPPED_SHIFT 4

void tables_file_charge(struct tables *t, uint16_t slot, uint32_t owner)
{
	if (!tables_slot_live(t, slot))
		return;
	struct table_file *f = &t->state[slot];

	tables_hold(t, f->owner, TABLES_WORDS, -(int64_t)f->held);
	f->owner = owner;
	tables_hold(t, owner, TABLES_WORDS, (int64_t)f->held);
}

uint32_t tables_free_slots(const struct tables *t)
{
	return t->free_slot_count + (TABLES_SLOTS - t->next_slot);
}

uint64_t tables_file_touched(const struct tables *t, uint16_t slot)
{
	return tables_slot_live(t, slot) ? t->state[slot].touched_ns : 0;
}

/* Drops a file's rules. Returns how many of them no file uses any more. */
static uint32_t drop_rules(struct tables *t, struct table_file *f)
{
	uint32_t freed = 0;

	for (uint32_t i = 0; i < f->rule_count; i++) {
		uint32_t owner;

		if (!rules_drop(&t->rules, f->rules[i], &owner))
			continue;
		tables_hold(t, owner, TABLES_RULES, -1);
		tables_wait(t, (struct tables_waiting){ .what = TABLES_WAITING_RULE,
							.number = f->rules[i] });
		freed++;
	}
	free(f->rules);
	f->rules = NULL;
	f->rule_count = 0;
	return freed;
}

uint32_t tables_file_drop_rows(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	uint64_t waits = 0;

	for (size_t i = 0; i < f->extents.len; i++) {
		tables_wait_extent(t, f->extents.data[i], f->owner);
		waits += f->extents.data[i].words;
	}
	free(f->extents.data);
	f->extents = (struct slabs_extents){ 0 };
	/* f->held may exceed what waits: an extent that was taken could not be recorded for lack of
	 * memory. */
	tables_hold(t, f->owner, TABLES_WORDS, -(int64_t)(f->held - waits));
	f->held = 0;
	t->figures.rows -= f->rows;
	f->rows = 0;
	return drop_rules(t, f);
}

void tables_file_set_state(struct tables *t, uint16_t slot, enum file_state state)
{
	t->state[slot].state = (uint8_t)state;
	t->sorted &= state != TABLES_FILE_READY;
	__atomic_store_n(&tables_file_at(t, slot)->state, (uint32_t)state, __ATOMIC_RELEASE);
}

void tables_file_drop_incoming(struct tables *t, uint16_t slot)
{
	incoming_free(t->state[slot].in);
	t->state[slot].in = NULL;
}

void tables_file_drop_runtime(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	if (!f->runtime)
		return;
	tables_wait_extent(t, f->runtime_extent, TABLES_NOBODY);
	free(f->runtime);
	f->runtime = NULL;
}

uint32_t tables_file_score(const struct table_file *f, uint64_t now_ns)
{
	const uint64_t period = now_ns >> SCORE_SHIFT,
		       age = period > f->scored_at ? period - f->scored_at : 0;

	return age < 32 ? f->score >> age >> (f->unmapped ? UNMAPPED_SHIFT : 0) : 0;
}

bool tables_file_is_idle(const struct tables *t, const struct table_file *f)
{
	return f->unmapped ||
	       (t->now_ns > f->touched_ns && t->now_ns - f->touched_ns > TABLES_IDLE_NS);
}

int tables_file_new(struct tables *t, uint16_t *ret_slot)
{
	uint16_t slot;

	if (t->free_slot_count)
		slot = t->free_slots[--t->free_slot_count];
	else if (t->next_slot < TABLES_SLOTS)
		slot = (uint16_t)t->next_slot++;
	else
		return TABLES_FULL;
	int r = array_reach(&t->files, (slot + 1) * sizeof(struct file_entry));
	if (r) {
		t->free_slots[t->free_slot_count++] = slot;
		return r;
	}
	t->state[slot] = (struct table_file){ .touched_ns = t->now_ns, .serial = ++t->serial };
	tables_file_set_state(t, slot, TABLES_FILE_PENDING);
	t->figures.files++;
	*ret_slot = slot;
	return 0;
}

void tables_file_free(struct tables *t, uint16_t slot)
{
	if (!tables_slot_live(t, slot))
		return;
	tables_file_set_state(t, slot, TABLES_FILE_FREE);
	tables_file_drop_incoming(t, slot);
	tables_file_drop_rows(t, slot);
	tables_file_drop_runtime(t, slot);
	t->figures.files--;
	tables_wait(t, (struct tables_waiting){ .what = TABLES_WAITING_SLOT, .number = slot });
}

void tables_file_none(struct tables *t, uint16_t slot)
{
	if (!tables_slot_live(t, slot))
		return;
	tables_file_set_state(t, slot, TABLES_FILE_NO_ROWS);
	t->state[slot].lacking = t->state[slot].displaced = false;
	t->state[slot].resting = t->state[slot].lacks_rules = false;
	tables_file_drop_incoming(t, slot);
	tables_file_drop_rows(t, slot);
}

void tables_file_touch(struct tables *t, uint16_t slot, uint64_t now_ns)
{
	if (!tables_slot_live(t, slot))
		return;
	struct table_file *f = &t->state[slot];

	if (f->touched_ns == now_ns)
		return; /* another frame of the same sample */
	f->unmapped = false;
	f->score = tables_file_score(f, now_ns) + 1;
	f->scored_at = now_ns >> SCORE_SHIFT > f->scored_at ? now_ns >> SCORE_SHIFT : f->scored_at;
	f->touched_ns = now_ns;
}

void tables_file_unmapped(struct tables *t, uint16_t slot)
{
	if (tables_slot_live(t, slot))
		t->state[slot].unmapped = true;
}

uint32_t tables_file_serial(const struct tables *t, uint16_t slot)
{
	return tables_slot_live(t, slot) ? t->state[slot].serial : 0;
}

uint32_t tables_file_samples(const struct tables *t, uint16_t slot)
{
	return tables_slot_live(t, slot) ? tables_file_score(&t->state[slot], t->now_ns) : 0;
}

enum file_state tables_file_state(const struct tables *t, uint16_t slot)
{
	return tables_slot_live(t, slot) ? t->state[slot].state : TABLES_FILE_FREE;
}

bool tables_file_lacks(const struct tables *t, uint16_t slot)
{
	return tables_slot_live(t, slot) && t->state[slot].lacking;
}

bool tables_file_lacks_rules(const struct tables *t, uint16_t slot)
{
	return tables_file_lacks(t, slot) && t->state[slot].lacks_rules;
}

void tables_file_pending(struct tables *t, uint16_t slot)
{
	if (tables_slot_live(t, slot) && (t->state[slot].state == TABLES_FILE_EVICTED ||
					  t->state[slot].state == TABLES_FILE_NO_ROWS))
		tables_file_set_state(t, slot, TABLES_FILE_PENDING);
}

uint32_t tables_file_evict(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	/* If the file runs again, its samples wait for rows as those of a new file do, so no stack
	 * is truncated. */
	f->resting = tables_file_is_idle(t, f);
	f->lacking = f->displaced = !f->resting;
	tables_file_set_state(t, slot, f->resting ? TABLES_FILE_PENDING : TABLES_FILE_EVICTED);
	f->again_ns = f->resting ? t->now_ns : t->now_ns + TABLES_AGAIN_NS;
	f->lacks_rules = false;
	t->figures.evictions++;
	t->round++;
	return tables_file_drop_rows(t, slot);
}

void tables_file_full(struct tables *t, uint16_t slot)
{
	if (!tables_slot_live(t, slot))
		return;
	struct table_file *f = &t->state[slot];
	const bool lacks_rules = f->lacks_rules, displaced = f->displaced;

	tables_file_none(t, slot);
	f->lacks_rules = lacks_rules;
	f->displaced = displaced;
	tables_file_set_state(t, slot, TABLES_FILE_EVICTED);
	f->lacking = true;
	f->resting = false;
	f->again_ns = t->now_ns + TABLES_AGAIN_NS +
		      (t->slabs.map_fd >= 0 ? 0 : TABLES_GRACE_NS); /* tables_hurry */
}
