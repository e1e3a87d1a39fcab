/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: when the host is at a ceiling, the owner who holds most gives way. */
#ifndef PROF_BPF_HOST_SHARES_EVICTION_H
#define PROF_BPF_HOST_SHARES_EVICTION_H

#include <stdbool.h>
#include <stdint.h>

struct host;
struct owner;
struct process;

/* The total of mappings up to which a process may get more. Large processes leave a 16th to others:
 * otherwise one of them could take so many that no small process of its owner gets any. */
uint64_t eviction_all_mappings(const struct host *h, bool large);
/* Whether the process may keep `more` mappings. Makes room if its owner holds less than its share,
 * at the cost of the owner who holds most: processes without samples lose their mappings first. */
bool eviction_keep_mappings(struct host *h, struct process *p, uint64_t more);

/* Forgets a process's mappings, and drops its entry. They are read again at its next sample. */
void eviction_drop_maps(struct host *h, struct process *p);
/* Drops the mappings of one process of this owner's, in the same order. False: it has none. */
bool eviction_drop_mappings(struct host *h, const struct owner *w);
/* Drops one process's mappings of the owner with most, if that is more than `than` has. False: no
 * owner has. */
bool eviction_drop_others_mappings(struct host *h, const struct owner *than);
/* There are too many processes: forgets some of the owner who has most, but not this pid. Those
 * without samples go first, and then the longest not sampled. A run for chosen programs keeps
 * them. */
void eviction_forget_processes(struct host *h, uint32_t but_pid);
/* The tables have room for no more processes: withdraws some in the same order. */
void eviction_withdraw_processes(struct host *h);

#endif
