/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of processes, and the runtimes in their files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include "bpf/runtime.h"
#include "common/walk/tables/tables_internal.h"

/* Parts of all memory that large arrays may take: those of recently sampled processes, and those of
 * idle ones. If a large array is published repeatedly, several copies exist until the grace periods
 * end. */
#define LARGE_PART 2
#define LARGE_IDLE_PART 8

/* This part of the map of processes is left to the kernel's hook. */
#define HOOK_PART 16

/* Takes an extent for mappings of p (NULL: of a new process). A small array can have any rows
 * evicted. Large arrays get a limited part of the memory, and can have rows evicted only if their
 * process was sampled recently. */
static int maps_take(struct tables *t, const struct table_process *p, uint32_t words,
		     struct slabs_extent *ret)
{
	const bool idle = !p || !p->touched_ns || t->now_ns > p->touched_ns + TABLES_IDLE_NS;
	const uint64_t most = tables_all_words(t) / (idle ? LARGE_IDLE_PART : LARGE_PART);
	struct tables_taker by = { .worth = TABLES_WORTH_ANY,
				   .all = words,
				   .owner = t->maps_owner };

	if (words >= TABLES_LARGE_WORDS) {
		if (t->large_words + words > most)
			return TABLES_FULL;
		by.spare = tables_spare_words(t);
		by.worth = idle ? 0 : TABLES_WORTH_ANY;
	}
	const int r = tables_take(t, words, by, ret);

	if (!r && tables_extent_is_large(ret))
		t->large_words += ret->words;
	return r;
}

/* The runtimes of a process. They are stored as runtime_entry[] after its mappings. */
struct runtimes_found {
	struct runtime_entry entry[TABLES_PROCESS_RUNTIMES_MAX];
	uint32_t takes[TABLES_PROCESS_RUNTIMES_MAX]; /* enum runtime_takes */
	uint32_t count;
};

/* Returns a bit mask of the runtimes that take over frames in a mapping. */
static uint32_t takers_of(const struct tables_mapping *m, const struct runtimes_found *r)
{
	uint32_t takers = 0;

	for (uint32_t k = 0; k < r->count; k++) {
		if ((!m->slot && r->takes[k] & RUNTIME_TAKES_GENERATED) ||
		    (m->slot == r->entry[k].slot && r->takes[k] & RUNTIME_TAKES_LOOP))
			takers |= 1u << k;
		if (!m->slot && r->takes[k] & RUNTIME_RULES_GENERATED)
			takers |= 1u << (TABLES_MAP_RULER + k);
	}
	return takers;
}

/* Writes mappings, and the runtimes after them. */
static void put_maps(struct map_entry *to, const struct tables_mapping *m, size_t n,
		     const struct runtimes_found *r)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (struct map_entry){ .start = m[i].start,
					    .end = m[i].end,
					    .bias = m[i].start - m[i].offset,
					    .slot = m[i].slot,
					    .takers = takers_of(&m[i], r) };
	memcpy(to + n, r->entry, r->count * sizeof(r->entry[0]));
}

/* Returns the position of a config in its extent. The kernel reads a config as a unit, so it begins
 * at a multiple of its size. */
static uint32_t config_position(struct slabs_extent e)
{
	return (e.position + RUNTIME_CONFIG_WORDS - 1) & ~(RUNTIME_CONFIG_WORDS - 1);
}

int tables_file_runtime(struct tables *t, uint16_t slot, const struct runtime_config *c)
{
	struct slabs_extent e;
	struct runtime_config *copy;
	uint32_t *to;

	if (!tables_slot_live(t, slot))
		return -EINVAL;
	int r = tables_take(t, 2 * RUNTIME_CONFIG_WORDS,
			    (struct tables_taker){ .worth = TABLES_WORTH_ANY,
						   .all = 2 * RUNTIME_CONFIG_WORDS,
						   .owner = t->state[slot].owner },
			    &e);
	if (r)
		return r;
	to = slabs_at(&t->slabs, config_position(e), RUNTIME_CONFIG_WORDS);
	copy = malloc(sizeof(*copy));
	if (!to || !copy) {
		slabs_release(&t->slabs, e);
		free(copy);
		return -ENOMEM;
	}
	memcpy(to, c, sizeof(*c));
	*copy = *c;
	tables_file_drop_runtime(t, slot);
	t->state[slot].runtime = copy;
	t->state[slot].runtime_extent = e;
	return 0;
}

const struct runtime_config *tables_runtime(const struct tables *t, uint16_t slot)
{
	return tables_slot_live(t, slot) ? t->state[slot].runtime : NULL;
}

/* Finds the distinct runtimes in the files of mappings. */
static void find_runtimes(const struct tables *t, const struct tables_mapping *m, size_t n,
			  struct runtimes_found *ret)
{
	ret->count = 0;
	for (size_t i = 0; i < n && ret->count < TABLES_PROCESS_RUNTIMES_MAX; i++) {
		const struct table_file *f = &t->state[m[i].slot];
		bool again = false;

		if (!m[i].slot || !f->runtime)
			continue;
		for (uint32_t j = 0; j < ret->count; j++)
			again |= ret->entry[j].config == config_position(f->runtime_extent);
		if (again)
			continue;
		ret->takes[ret->count] = f->runtime->takes;
		ret->entry[ret->count++] = (struct runtime_entry){
			.base = m[i].start - m[i].offset,
			.config = config_position(f->runtime_extent),
			.runtime = f->runtime->runtime,
			.slot = m[i].slot,
		};
	}
}

uint32_t tables_process_places(const struct tables *t)
{
	const uint32_t all = t->config.max_processes ? t->config.max_processes
						     : TABLES_MAX_PROCESSES;

	return all - all / HOOK_PART;
}

static void drop_maps(struct tables *t, struct table_process *p)
{
	tables_wait_maps(t, p->maps, p->owner);
	p->maps = (struct slabs_extent){ 0 };
}

int tables_process_set(struct tables *t, uint32_t pid, uint64_t start_ns, uint64_t heard_ns,
		       const struct tables_mapping *m, size_t n, bool selected,
		       uint32_t *ret_generation)
{
	struct runtimes_found runtimes;
	struct table_process *p;
	struct slabs_extent e = { 0 };

	if (n > TABLES_MAX_MAPPINGS)
		return TABLES_FULL;
	find_runtimes(t, m, n, &runtimes);
	HASH_FIND(hh, t->processes, &pid, sizeof(pid), p);
	if (!p && HASH_CNT(hh, t->processes) >= tables_process_places(t))
		return TABLES_NO_PLACE;
	if (n) {
		int r = maps_take(t, p, (uint32_t)(n + runtimes.count) * 8, &e);

		if (r)
			return r;
		struct map_entry *to = (struct map_entry *)slabs_at(&t->slabs, e.position, e.words);
		if (!to) {
			tables_release_maps(t, e);
			return -ENOMEM;
		}
		put_maps(to, m, n, &runtimes);
	}
	struct process_entry entry = {
		.start_ns = start_ns,
		.heard_ns = heard_ns,
		.maps = e.position,
		.map_count = (uint32_t)n,
		.flags = (selected ? TABLES_PROCESS_SELECTED : 0) |
			 runtimes.count << TABLES_PROCESS_RUNTIMES_SHIFT,
	};
	t->generation = t->generation == UINT32_MAX ? 1 : t->generation + 1;
	entry.generation = t->generation;
	if (t->config.processes_fd >= 0) {
		int r = bpf_map_update_elem(t->config.processes_fd, &pid, &entry, BPF_ANY);

		if (r < 0) {
			tables_release_maps(t, e);
			return r == -E2BIG ? TABLES_NO_PLACE : r;
		}
	}
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p) {
			tables_wait_maps(t, e, TABLES_NOBODY);
			return -ENOMEM;
		}
		p->pid = pid;
		HASH_ADD(hh, t->processes, pid, sizeof(p->pid), p);
		t->figures.processes++;
	} else {
		drop_maps(t, p);
	}
	p->entry = entry;
	p->maps = e;
	p->owner = t->maps_owner;
	tables_hold(t, p->owner, TABLES_WORDS, e.words);
	*ret_generation = entry.generation;
	return 0;
}

void tables_process_touch(struct tables *t, uint32_t pid, uint64_t now_ns)
{
	struct table_process *p;

	HASH_FIND(hh, t->processes, &pid, sizeof(pid), p);
	if (p)
		p->touched_ns = now_ns;
}

bool tables_process_start(const struct tables *t, uint32_t pid, uint64_t *ret_start_ns)
{
	struct process_entry entry;

	if (t->config.processes_fd < 0 ||
	    bpf_map_lookup_elem(t->config.processes_fd, &pid, &entry) != 0)
		return false;
	*ret_start_ns = entry.start_ns;
	return true;
}

void tables_process_drop(struct tables *t, uint32_t pid)
{
	struct table_process *p;

	/* The kernel's hook may have added a child that user space never published. */
	if (t->config.processes_fd >= 0)
		(void)bpf_map_delete_elem(t->config.processes_fd, &pid);
	HASH_FIND(hh, t->processes, &pid, sizeof(pid), p);
	if (!p)
		return;
	HASH_DEL(t->processes, p);
	drop_maps(t, p);
	free(p);
	t->figures.processes--;
}

bool tables_sweep(struct tables *t, bool (*stays)(void *ctx, uint32_t pid, uint64_t start_ns),
		  void *ctx)
{
	struct process_entry entry[TABLES_SWEPT];
	uint32_t pid[TABLES_SWEPT], n = TABLES_SWEPT, next = 0;
	/* Unlike the next key, the place in the map stays valid when an entry is dropped. */
	const int r = t->config.processes_fd < 0
			      ? -ENOENT
			      : bpf_map_lookup_batch(t->config.processes_fd,
						     t->sweeps ? &t->sweep_at : NULL, &next, pid,
						     entry, &n, NULL);

	/* -ENOENT: these were the last ones. */
	if (t->config.processes_fd < 0 || (r && r != -ENOENT))
		n = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!stays(ctx, pid[i], entry[i].start_ns))
			tables_process_drop(t, pid[i]);
	}
	t->sweep_at = next;
	t->sweeps = !r;
	return t->sweeps;
}

/* The old copies stay for walks that read them at the moment. */
void tables_move_processes(struct tables *t)
{
	struct table_process *p, *next;

	HASH_ITER(hh, t->processes, p, next) {
		struct slabs_extent e;

		t->maps_owner = p->owner;
		if (!p->maps.words || !slabs_closing(&t->slabs, p->maps) ||
		    maps_take(t, p, p->maps.words, &e))
			continue;
		const uint32_t *from = slabs_at(&t->slabs, p->maps.position, p->maps.words);
		uint32_t *copy = malloc(p->maps.words * sizeof(*copy)), *to = NULL;

		if (from && copy) {
			memcpy(copy, from, p->maps.words * sizeof(*copy));
			to = slabs_at(&t->slabs, e.position, e.words);
		}
		if (to) {
			struct process_entry entry = p->entry;

			memcpy(to, copy, p->maps.words * sizeof(*copy));
			entry.maps = e.position;
			if (t->config.processes_fd >= 0 &&
			    bpf_map_update_elem(t->config.processes_fd, &p->pid, &entry, BPF_EXIST))
				to = NULL;
			else
				p->entry = entry;
		}
		free(copy);
		/* From now on the new copy is charged, and not the old one. */
		tables_wait_maps(t, to ? p->maps : e, TABLES_NOBODY);
		if (to)
			p->maps = e;
	}
}

int tables_walk_maps(struct tables *t, const struct tables_mapping *m, size_t n,
		     struct process_entry *ret)
{
	if (n > TABLES_MAX_MAPPINGS)
		return TABLES_FULL;
	/* Untouched pages cost nothing, and usually only a few are written. */
	if (!t->walk_maps)
		t->walk_maps = calloc(1, TABLES_SLAB_BYTES);
	if (!t->walk_maps)
		return -ENOMEM;
	struct runtimes_found runtimes;

	find_runtimes(t, m, n, &runtimes);
	put_maps((struct map_entry *)t->walk_maps, m, n, &runtimes);
	*ret = (struct process_entry){ .maps = TABLES_MAX_SLABS << TABLES_SLAB_WORDS_SHIFT,
				       .map_count = (uint32_t)n,
				       .generation = 1,
				       .flags = runtimes.count << TABLES_PROCESS_RUNTIMES_SHIFT };
	return 0;
}
