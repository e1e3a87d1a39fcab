/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "common/base/system/clock.h"
#include "tests/host/fake-tables.h"

struct entry {
	struct fake_process p;
	uint32_t number; /* in the order in which they were made */
	UT_hash_handle hh;
};

struct fake_tables {
	struct entry *processes;
	uint8_t state[TABLES_MAX_FILES];
	uint64_t touched_ns[TABLES_MAX_FILES];
	size_t slots, unmapped;
	uint32_t generation;
	bool full;
	uint64_t hook_start_ns, set_ns;
	uint32_t places, next_number, swept;
};

struct fake_tables *fake_tables_new(void)
{
	struct fake_tables *t = calloc(1, sizeof(*t));

	if (t)
		t->places = UINT32_MAX;
	return t;
}

static struct entry *find(struct fake_tables *t, uint32_t pid)
{
	struct entry *e;

	HASH_FIND(hh, t->processes, &pid, sizeof(pid), e);
	return e;
}

void fake_tables_free(struct fake_tables *t)
{
	struct entry *e, *next;

	HASH_ITER(hh, t->processes, e, next)
		tables_process_drop((struct tables *)t, e->p.pid);
	free(t);
}

const struct fake_process *fake_tables_process(struct fake_tables *t, uint32_t pid)
{
	struct entry *e = find(t, pid);

	return e ? &e->p : NULL;
}

size_t fake_tables_processes(struct fake_tables *t)
{
	return HASH_COUNT(t->processes);
}

size_t fake_tables_slots(struct fake_tables *t)
{
	return t->slots;
}

void fake_tables_slow(struct fake_tables *t, uint64_t ns)
{
	t->set_ns = ns;
}

void fake_tables_set_full(struct fake_tables *t, bool full)
{
	t->full = full;
}

int tables_process_set(struct tables *tables, uint32_t pid, uint64_t start_ns, uint64_t heard_ns,
		       const struct tables_mapping *m, size_t n, bool selected,
		       uint32_t *ret_generation)
{
	struct fake_tables *t = (struct fake_tables *)tables;

	for (const uint64_t until_ns = clock_mono_ns() + t->set_ns; clock_mono_ns() < until_ns;)
		;
	if (t->full)
		return TABLES_FULL;
	for (size_t i = 0; i < n; i++) {
		/* The real tables rely on this. */
		if (m[i].start >= m[i].end || (i && m[i].start < m[i - 1].end))
			abort();
	}
	struct entry *e = find(t, pid);
	if (!e) {
		if (HASH_COUNT(t->processes) >= t->places)
			return TABLES_NO_PLACE;
		e = calloc(1, sizeof(*e));
		if (!e)
			return -ENOMEM;
		e->p.pid = pid;
		e->number = ++t->next_number;
		HASH_ADD(hh, t->processes, p.pid, sizeof(e->p.pid), e);
	}
	free(e->p.at);
	e->p.at = calloc(n + 1, sizeof(*m));
	if (!e->p.at)
		return -ENOMEM;
	if (n)
		memcpy(e->p.at, m, n * sizeof(*m));
	e->p.len = n;
	e->p.start_ns = start_ns;
	e->p.heard_ns = heard_ns;
	e->p.selected = selected;
	e->p.sets++;
	*ret_generation = ++t->generation;
	return 0;
}

void fake_tables_enter_at(struct fake_tables *t, uint32_t pid, uint64_t start_ns)
{
	uint32_t generation;

	(void)tables_process_set((struct tables *)t, pid, start_ns, 0, NULL, 0, false, &generation);
}

void fake_tables_enter(struct fake_tables *t, uint32_t pid)
{
	fake_tables_enter_at(t, pid, 0);
}

void fake_tables_set_places(struct fake_tables *t, uint32_t n)
{
	t->places = n;
}

void fake_tables_hook(struct fake_tables *t, uint64_t start_ns)
{
	t->hook_start_ns = start_ns;
}

bool tables_process_start(const struct tables *tables, uint32_t pid, uint64_t *ret_start_ns)
{
	struct fake_tables *t = (struct fake_tables *)tables;

	*ret_start_ns = t->hook_start_ns;
	return t->hook_start_ns != 0 || find(t, pid);
}

void tables_process_drop(struct tables *tables, uint32_t pid)
{
	struct fake_tables *t = (struct fake_tables *)tables;
	struct entry *e = find(t, pid);

	if (!e)
		return;
	HASH_DEL(t->processes, e);
	free(e->p.at);
	free(e);
}

int tables_file_new(struct tables *tables, uint16_t *ret_slot)
{
	struct fake_tables *t = (struct fake_tables *)tables;

	for (uint32_t i = TABLES_UNASKED + 1; i < TABLES_SLOTS && !t->full; i++) {
		if (t->state[i] == TABLES_FILE_FREE) {
			t->state[i] = TABLES_FILE_PENDING;
			t->slots++;
			*ret_slot = (uint16_t)i;
			return 0;
		}
	}
	return TABLES_FULL;
}

void tables_file_free(struct tables *tables, uint16_t slot)
{
	struct fake_tables *t = (struct fake_tables *)tables;

	if (t->state[slot] != TABLES_FILE_FREE)
		t->slots--;
	t->state[slot] = TABLES_FILE_FREE;
}

void tables_file_none(struct tables *tables, uint16_t slot)
{
	((struct fake_tables *)tables)->state[slot] = TABLES_FILE_NO_ROWS;
}

void tables_file_unmapped(struct tables *tables, uint16_t slot)
{
	((struct fake_tables *)tables)->unmapped++;
}

int tables_file_runtime(struct tables *tables, uint16_t slot, const struct runtime_config *c)
{
	return 0;
}

void tables_keep_ledger(struct tables *tables, const struct tables_ledger *l)
{
}

void tables_file_charge(struct tables *tables, uint16_t slot, uint32_t owner)
{
}

void tables_charge_mappings(struct tables *tables, uint32_t owner)
{
}

uint64_t tables_file_touched(const struct tables *tables, uint16_t slot)
{
	return ((const struct fake_tables *)tables)->touched_ns[slot];
}

void fake_tables_touch(struct fake_tables *t, uint16_t slot, uint64_t time_ns)
{
	t->touched_ns[slot] = time_ns;
}

uint32_t tables_free_slots(const struct tables *tables)
{
	return TABLES_SLOTS - 2 - (uint32_t)((const struct fake_tables *)tables)->slots;
}

uint32_t tables_process_places(const struct tables *tables)
{
	return ((const struct fake_tables *)tables)->places;
}

bool tables_sweep(struct tables *tables, bool (*stays)(void *ctx, uint32_t pid, uint64_t start_ns),
		  void *ctx)
{
	struct fake_tables *t = (struct fake_tables *)tables;
	struct entry *e, *next;
	unsigned n = 0;

	/* In the order in which they were made. */
	HASH_ITER(hh, t->processes, e, next) {
		if (e->number <= t->swept)
			continue;
		if (n++ == TABLES_SWEPT)
			return true;
		t->swept = e->number;
		if (!stays(ctx, e->p.pid, e->p.start_ns))
			tables_process_drop(tables, e->p.pid);
	}
	t->swept = 0;
	return false;
}

size_t fake_tables_unmapped(struct fake_tables *t)
{
	return t->unmapped;
}

void tables_file_full(struct tables *tables, uint16_t slot)
{
	((struct fake_tables *)tables)->state[slot] = TABLES_FILE_EVICTED;
}

void tables_file_pending(struct tables *tables, uint16_t slot)
{
	((struct fake_tables *)tables)->state[slot] = TABLES_FILE_PENDING;
}

enum file_state tables_file_state(const struct tables *tables, uint16_t slot)
{
	return ((const struct fake_tables *)tables)->state[slot];
}
