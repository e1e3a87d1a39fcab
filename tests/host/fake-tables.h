/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that only record the calls, for tests of the code that writes them. */
#ifndef TESTS_HOST_FAKE_TABLES_H
#define TESTS_HOST_FAKE_TABLES_H

#include "common/walk/tables/tables.h"

struct fake_process {
	uint32_t pid;
	uint64_t start_ns, heard_ns;
	struct tables_mapping *at; /* owned */
	size_t len;
	bool selected;
	unsigned sets;
};

struct fake_tables;
struct fake_tables *fake_tables_new(void);
void fake_tables_free(struct fake_tables *t);
static inline struct tables *fake_tables_as_tables(struct fake_tables *t)
{
	return (struct tables *)t;
}
/* The process as it was last set for a pid; NULL: it was never set, or was dropped. */
const struct fake_process *fake_tables_process(struct fake_tables *t, uint32_t pid);
size_t fake_tables_processes(struct fake_tables *t);
size_t fake_tables_slots(struct fake_tables *t);
/* The kernel's hook on forks enters a child. */
void fake_tables_enter(struct fake_tables *t, uint32_t pid);
/* Likewise, one that started at this time. */
void fake_tables_enter_at(struct fake_tables *t, uint32_t pid, uint64_t start_ns);
/* From now on there are this many places for processes. At first there is no limit. */
void fake_tables_set_places(struct fake_tables *t, uint32_t n);
/* How often a file was reported as no longer mapped. */
size_t fake_tables_unmapped(struct fake_tables *t);
/* The kernel's hook on forks has entered this start for every pid; 0: only what
 * fake_tables_enter did. */
void fake_tables_hook(struct fake_tables *t, uint64_t start_ns);
void fake_tables_touch(struct fake_tables *t, uint16_t slot, uint64_t time_ns);
/* From now on it takes this long to set a process. */
void fake_tables_slow(struct fake_tables *t, uint64_t ns);
/* From now on there is no room: TABLES_FULL for processes and files. */
void fake_tables_set_full(struct fake_tables *t, bool full);

#endif
