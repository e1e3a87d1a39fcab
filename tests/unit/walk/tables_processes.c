/* SPDX-License-Identifier: Apache-2.0 */
/* The map of processes: its places, and sweeps through it. The kernel's map is simulated. */
#include <bpf/bpf.h>
#include <errno.h>
#include "tests/unit/tables_fixture.h"

#define FD 1000 /* of the simulated map */
#define MAP_PLACES 1024u

struct slot {
	bool used;
	uint32_t pid;
	struct process_entry entry;
};
static struct slot map[MAP_PLACES];
static uint32_t most;	 /* entries that the map takes */
static int batch_result; /* of the next lookup; 0: what it finds */

static struct slot *find_slot(uint32_t pid, bool make)
{
	struct slot *unused = NULL;
	uint32_t n = 0;

	for (struct slot *s = map; s < map + MAP_PLACES; s++) {
		if (s->used && s->pid == pid)
			return s;
		n += s->used;
		unused = unused || s->used ? unused : s;
	}
	return make && n < most ? unused : NULL;
}

int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags);
int __wrap_bpf_map_delete_elem(int fd, const void *key);
int __wrap_bpf_map_lookup_batch(int fd, void *from, void *next, void *keys, void *values,
				__u32 *count, const struct bpf_map_batch_opts *opts);

int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const uint32_t pid = *(const uint32_t *)key;
	struct slot *s = find_slot(pid, true);

	cr_assert_eq(fd, FD);
	if (!s)
		return -E2BIG;
	*s = (struct slot){ .used = true, .pid = pid };
	memcpy(&s->entry, value, sizeof(s->entry));
	return 0;
}

int __wrap_bpf_map_delete_elem(int fd, const void *key)
{
	struct slot *s = find_slot(*(const uint32_t *)key, false);

	if (!s)
		return -ENOENT;
	s->used = false;
	return 0;
}

int __wrap_bpf_map_lookup_batch(int fd, void *from, void *next, void *keys, void *values,
				__u32 *count, const struct bpf_map_batch_opts *opts)
{
	uint32_t at = from ? *(uint32_t *)from : 0, n = 0;

	if (batch_result)
		return batch_result;
	for (; at < MAP_PLACES && n < *count; at++) {
		if (!map[at].used)
			continue;
		((uint32_t *)keys)[n] = map[at].pid;
		((struct process_entry *)values)[n++] = map[at].entry;
	}
	*(uint32_t *)next = at;
	*count = n;
	return at < MAP_PLACES ? 0 : -ENOENT;
}

static void set_up_map(void)
{
	struct tables_config c = memory_tables(TABLES_SLAB_BYTES);

	c.processes_fd = FD;
	c.max_processes = most = MAP_PLACES;
	memset(map, 0, sizeof(map));
	batch_result = 0;
	cr_assert_eq(tables_new(&c, &t), 0);
	tables_tick(t, 1);
}

TestSuite(tables_processes, .init = set_up_map, .fini = teardown);

static int set(uint32_t pid)
{
	const struct tables_mapping m = { .start = 0x1000, .end = 0x2000 };
	uint32_t generation;

	return tables_process_set(t, pid, 100 * (uint64_t)pid, 0, &m, 1, true, &generation);
}

/* The kernel's hook enters a child. */
static void hook(uint32_t pid)
{
	const struct process_entry e = { .start_ns = 100 * (uint64_t)pid };

	cr_assert_eq(__wrap_bpf_map_update_elem(FD, &pid, &e, BPF_ANY), 0);
}

Test(tables_processes, a_16th_of_the_map_is_left_to_the_hook)
{
	cr_assert_eq(tables_process_places(t), MAP_PLACES / 16 * 15);
	for (uint32_t pid = 1; pid <= MAP_PLACES / 16 * 15; pid++)
		cr_assert_eq(set(pid), 0);
	cr_assert_eq(set(5000), TABLES_NO_PLACE);
	/* A process that has its place is published again. */
	cr_assert_eq(set(5), 0);
	tables_process_drop(t, 7);
	cr_assert_eq(set(5000), 0);
}

Test(tables_processes, map_that_the_hook_filled_has_no_place)
{
	most = 100;
	for (uint32_t pid = 1; pid <= most; pid++)
		hook(pid);
	for (unsigned i = 0; i < 1000; i++)
		cr_assert_eq(set(5000), TABLES_NO_PLACE);
	/* Nor does it keep memory for those. */
	tables_process_drop(t, 7);
	cr_assert_eq(set(5000), 0);
	struct tables_figures f;
	tables_figures(t, &f);
	cr_assert_eq(f.processes, 1);
}

Test(tables_processes, tables_without_a_map_have_places_too)
{
	const struct tables_config c = memory_tables(TABLES_SLAB_BYTES);
	struct tables *other;

	cr_assert_eq(tables_new(&c, &other), 0);
	cr_assert_eq(tables_process_places(other), TABLES_MAX_PROCESSES / 16 * 15);
	cr_assert_not(tables_sweep(other, NULL, NULL));
	tables_free(other);
}

static unsigned shown;

static bool even_stays(void *ctx, uint32_t pid, uint64_t start_ns)
{
	cr_assert_eq(start_ns, 100 * (uint64_t)pid);
	shown++;
	return pid % 2 == 0;
}

Test(tables_processes, sweep_drops_what_does_not_stay_a_few_entries_at_a_time)
{
	unsigned calls = 0;

	cr_assert_eq(set(9), 0);
	for (uint32_t pid = 10; pid < 510; pid++)
		hook(pid);
	for (bool more = true; more; calls++) {
		const unsigned before = shown;

		more = tables_sweep(t, even_stays, NULL);
		cr_assert_leq(shown - before, TABLES_SWEPT);
	}
	cr_assert_eq(shown, 501);
	cr_assert_eq(calls, 4);
	for (uint32_t pid = 9; pid < 510; pid++)
		cr_assert_eq(find_slot(pid, false) != NULL, pid % 2 == 0);
	struct tables_figures f;
	tables_figures(t, &f);
	cr_assert_eq(f.processes, 0);
	/* The next sweep begins again. */
	shown = 0;
	while (tables_sweep(t, even_stays, NULL))
		;
	cr_assert_eq(shown, 250);
}

Test(tables_processes, sweep_that_fails_drops_nothing_and_begins_again)
{
	for (uint32_t pid = 1; pid <= 300; pid++)
		hook(pid);
	cr_assert(tables_sweep(t, even_stays, NULL));
	shown = 0;
	batch_result = -ENOSPC;
	cr_assert_not(tables_sweep(t, even_stays, NULL));
	cr_assert_eq(shown, 0);
	batch_result = 0;
	while (tables_sweep(t, even_stays, NULL))
		;
	cr_assert_eq(shown, 300 - TABLES_SWEPT / 2);
}
