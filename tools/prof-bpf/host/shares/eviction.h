/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: when the host is at a limit, the owner who holds most loses something. */
#ifndef PROF_BPF_HOST_SHARES_EVICTION_H
#define PROF_BPF_HOST_SHARES_EVICTION_H

#include <stdbool.h>
#include <stdint.h>

struct host;
struct owner;
struct process;

/* Returns the total of mappings up to which a process may get more. Large processes leave a 16th to
 * others: otherwise one of them could take so many that no small process of its owner gets any. */
uint64_t eviction_all_mappings(const struct host *h, bool large);
/* For a process with samples: if `more` mappings of it have no room, all processes without samples
 * give way, whoever owns them, first those of the owner who holds most. They lose nothing: their
 * mappings are read again at their first sample. */
void eviction_make_room(struct host *h, const struct process *p, uint64_t more);
/* Whether the process may keep `more` mappings, after eviction_make_room. If its owner holds less
 * than its share, others lose mappings: those of the owner who holds most, beginning with processes
 * without samples. */
bool eviction_keep_mappings(struct host *h, struct process *p, uint64_t more);

/* Forgets a process's mappings, and drops its entry. They are read again at its next sample. */
void eviction_drop_maps(struct host *h, struct process *p);
/* Drops the mappings of one process of this owner, in the same order. Returns false if it has
 * none. */
bool eviction_drop_mappings(struct host *h, const struct owner *w);
/* Drops the mappings of one process of the owner with most, if that owner holds more than `least`.
 * Returns false if no owner does. */
bool eviction_drop_largest_mappings(struct host *h, uint64_t least);
/* Forgets some processes because there are too many: processes of the owner who has most, but not
 * this pid. Those without samples go first, then those that were not sampled for longest. A run for
 * selected programs keeps these. */
void eviction_forget_processes(struct host *h, uint32_t but_pid);
/* Withdraws the entries of some processes from the tables, in the same order: those of the owner
 * who has most entries. They are published again at their next sample. Returns how many. A run for
 * selected programs keeps all, since it does not sample processes without an entry. */
unsigned eviction_withdraw_processes(struct host *h);

#endif
