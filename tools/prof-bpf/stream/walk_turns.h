/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns choose the owner whose deferred walks prof-bpf does next (deferred.h).
 *
 * Owners take turns by the rules of turns.h. The samples of an owner that has used up its part wait
 * while those of others are walked.
 */
#ifndef PROF_BPF_STREAM_WALK_TURNS_H
#define PROF_BPF_STREAM_WALK_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#define WALK_TURNS_OWNER_PART 10 /* one owner's walks take at most a tenth of the time */
#define WALK_TURNS_ALL_PART 5
#define WALK_TURNS_SAVED_NS 10000000000ull /* unused time accumulates up to this */
/* The last walk of a sample may be done this much ahead of the time that pays for it. */
#define WALK_TURNS_DEBT_NS 5000000000ull
/* An owner who recently spent no more than this never waits for the others. */
#define WALK_TURNS_LITTLE_NS 20000000ull
#define WALK_TURNS_TICK_NS 10000000ull /* for all walks in one tick */

struct owner;
struct owners;

/* All zero at first. */
struct walk_turns {
	const struct owners *owners; /* borrowed; NULL: all samples have no owner */
	uint64_t paid_ns;	     /* when the common part covers the walks so far */
	uint64_t tick_ns;	     /* time of the walks in this tick */
};

/* A clock for measuring walks: the cpu time of this thread. */
uint64_t walk_turns_clock(void);
/* Whether a sample of the owner may be walked now. w: NULL for no owner, who always may. */
bool walk_turns_may(const struct walk_turns *t, const struct owner *w, uint64_t now_ns);
/* The same for the last walk of a sample, which cannot wait. */
bool walk_turns_may_last(const struct walk_turns *t, const struct owner *w, uint64_t now_ns);
/* Charges this much time to the owner. */
void walk_turns_spend(struct walk_turns *t, struct owner *w, uint64_t ns, uint64_t now_ns);
/* Begins a tick. */
void walk_turns_tick(struct walk_turns *t);
/* Whether the time for walks in this tick is over. */
bool walk_turns_tick_is_over(const struct walk_turns *t);

#endif
