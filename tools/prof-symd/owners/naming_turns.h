/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: how much time it took to name each owner's programs (docs/fairness.md). Their files decide
 * how long that takes. An owner who used up an allowance comes after all others who have something
 * to name.
 */
#ifndef PROF_SYMD_OWNERS_NAMING_TURNS_H
#define PROF_SYMD_OWNERS_NAMING_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#define NAMING_TURNS_OWNERS 256
/* The allowance of all owners together. Spent time halves in NAMING_TURNS_HALF_NS, so an owner that
 * always spends a tenth of the time stays just within it. */
#define NAMING_TURNS_BURST_NS 200000000ull
#define NAMING_TURNS_HALF_NS 1400000000ull
#define NAMING_TURNS_NOBODY UINT64_MAX

/* Zero-initialise. If there are more owners at a time, those who spent least and have no samples
 * are forgotten. While all have samples, further owners are counted as one. */
struct naming_turns {
	struct naming_turn {
		uint64_t owner;		     /* as the stream's processes have it */
		uint64_t spent_ns, since_ns; /* spent_ns: what counted of it at since_ns */
		uint32_t queued;	     /* of its samples */
		uint64_t unnamed;	     /* frames that were left without names */
		uint64_t rests_until_ns;     /* its samples that wait are not looked at before */
	} at[NAMING_TURNS_OWNERS], others;
	uint32_t len;
	uint32_t queued, owners; /* of all owners; owners who have some */
};

/* The owner took this long. */
void naming_turns_spend(struct naming_turns *t, uint64_t owner, uint64_t ns, uint64_t now_ns);
/* The part of it that still counts. */
uint64_t naming_turns_spent(const struct naming_turns *t, uint64_t owner, uint64_t now_ns);
/* Whether the owner's allowance is used up: its share of the burst, divided among `owners`. */
bool naming_turns_over(const struct naming_turns *t, uint64_t owner, unsigned owners,
		       uint64_t now_ns);
/* A sample of the owner came into the queue, or left it. */
void naming_turns_enter(struct naming_turns *t, uint64_t owner, uint64_t now_ns);
void naming_turns_leave(struct naming_turns *t, uint64_t owner);
/* Whether samples of others are in the queue. */
bool naming_turns_others(const struct naming_turns *t, uint64_t owner);
/* A frame of the owner was left without a name. True: the first one. */
bool naming_turns_lose(struct naming_turns *t, uint64_t owner, uint64_t now_ns);
/* The owner's samples that wait are not looked at before until_ns; and that time, 0: at once. */
void naming_turns_rest(struct naming_turns *t, uint64_t owner, uint64_t until_ns, uint64_t now_ns);
uint64_t naming_turns_rests_until(const struct naming_turns *t, uint64_t owner);
/* The owner; NAMING_TURNS_NOBODY: it is one of those that are counted as one. */
uint64_t naming_turns_key(const struct naming_turns *t, uint64_t owner);

#endif
