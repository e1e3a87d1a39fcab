/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places in the map of processes. The map has a fixed size, and every process of every user may
 * need a place in it.
 *
 * When few places are left, the owner with most entries loses those that were not sampled for
 * longest. Some places stay free for the kernel's hook on forks. The hook may enter a process that
 * prof-bpf does not know, because a record was lost. Sweeps find such entries: about once a minute,
 * a few entries per tick.
 */
#ifndef PROF_BPF_HOST_SHARES_PLACES_H
#define PROF_BPF_HOST_SHARES_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#define PLACES_SWEEP_NS 60000000000ull /* between two sweeps */

struct host;
struct owner;

/* Whether few places are left and this owner has its share of them. Then its processes get a place
 * when they are sampled, and not before. */
bool places_are_scarce(const struct host *h, const struct owner *w);
/* Withdraws some entries, since a process of this owner found no place. Returns whether some were
 * and the owner has less than its share of places: then try again at once. */
bool places_make(struct host *h, const struct owner *w);
/* Whether a process of this owner that found no place need not wait long: the owner has less than
 * its share, so others lose entries for it. */
bool places_are_due(const struct host *h, const struct owner *w);
/* Whether the kernel's hook entered a child whose parent had an entry. Without a check, if there
 * were places. */
bool places_has_entry(const struct host *h, uint32_t pid);
/* Keeps places free, and continues the sweep. */
void places_tick(struct host *h, uint64_t now_ns);

#endif
