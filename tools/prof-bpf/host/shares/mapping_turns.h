/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns choose the owner whose mappings prof-bpf reads and publishes next.
 *
 * Mappings cost time, and a user can make any number of them. The same holds for searches among the
 * mappings (mappers.h), and for processes without a leader (recheck.h). So owners take turns, by
 * the rules of turns.h. Small processes have a part of their own: otherwise short-lived ones would
 * never have mappings beside a large one.
 */
#ifndef PROF_BPF_HOST_SHARES_MAPPING_TURNS_H
#define PROF_BPF_HOST_SHARES_MAPPING_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#define MAPPING_TURNS_OWNER_PART 10 /* one owner's mappings take at most a tenth of the time, */
#define MAPPING_TURNS_SMALL_PART 20 /* and then those of its small processes a twentieth */
#define MAPPING_TURNS_ALL_PART 5
/* Unused time accumulates up to the first value, or up to the second while prof-bpf reads all
 * processes at its start. */
#define MAPPING_TURNS_SAVED_NS 2000000000ull
#define MAPPING_TURNS_SAVED_AT_START_NS 10000000000ull
/* An owner who recently spent no more than this never waits for the others. */
#define MAPPING_TURNS_LITTLE_NS 20000000ull
#define MAPPING_TURNS_LARGE 1024u	 /* mappings; processes with more come last */
#define MAPPING_TURNS_TICK_NS 5000000ull /* for large processes in one tick */
/* For small processes in one tick: of one owner, and of all. */
#define MAPPING_TURNS_OWNER_TICK_NS 10000000ull
#define MAPPING_TURNS_SMALL_TICK_NS 20000000ull
#define MAPPING_TURNS_RECORD_NS 200u /* assumed time for a record of a mapping */
#define MAPPING_TURNS_GATHER_NS 100u /* assumed time for a mapping that a deferred walk needs */

struct host;
struct owner;
struct process;

/* Whether the owner may spend time now. large: on a large process. */
bool mapping_turns_may(const struct host *h, const struct owner *w, bool large, uint64_t now_ns);
/* Measures the time spent. Time in which prof-bpf sleeps counts a quarter: on a busy host that
 * costs others little, but a process may keep its mappings locked. */
struct mapping_turns_timer {
	uint64_t wall_ns, cpu_ns;
};
struct mapping_turns_timer mapping_turns_begin(void);
void mapping_turns_end(struct host *h, struct owner *w, bool large,
		       struct mapping_turns_timer since);
/* Charges this much time to the owner. */
void mapping_turns_spend(struct host *h, struct owner *w, bool large, uint64_t ns, uint64_t now_ns);
/* Whether the process has more than MAPPING_TURNS_LARGE mappings. */
bool mapping_turns_large(const struct process *p);
/* Returns a delay that doubles with each failure, and counts this failure. */
uint64_t mapping_turns_delay(uint8_t *failures, uint64_t first_ns);

#endif
