/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: how much time it took to name each owner's programs (docs/fairness.md). The contents of
 * their files decide how long that takes. An owner who has used up an allowance must wait for all
 * others who have something to name.
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
#define NAMING_TURNS_SLOW_NS 10000000000ull /* how long an owner counts as slow */
#define NAMING_TURNS_NOBODY UINT64_MAX

/* Zero-initialise. If there are more owners at a time, those who spent least and have no samples
 * are forgotten. If all have samples, further owners share one entry. */
struct naming_turns {
	struct naming_turn {
		uint64_t owner;		     /* as in the stream's processes */
		uint64_t spent_ns, since_ns; /* spent_ns: the part that still counted at since_ns */
		uint32_t queued;	     /* number of its samples in the queue */
		uint64_t unnamed;	     /* number of frames that were left without names */
		uint64_t paused_until_ns;    /* by the cpu limit */
		uint64_t slow_until_ns;	     /* it counts as slow before this */
		uint64_t rests_until_ns;     /* its waiting samples are not looked at before this
					      * time */
	} at[NAMING_TURNS_OWNERS + 1];	     /* the last one is that of further owners */
	uint32_t len;
	uint32_t queued, owners; /* of all owners: their samples; owners who have some */
};

/* Charges this much time to the owner. */
void naming_turns_spend(struct naming_turns *t, uint64_t owner, uint64_t ns, uint64_t now_ns);
/* Returns the part of the spent time that still counts. */
uint64_t naming_turns_spent(const struct naming_turns *t, uint64_t owner, uint64_t now_ns);
/* The owner's programs must not be named for this long, after all its earlier pauses. A pause ends
 * within NAMING_TURNS_PAUSE_NS. */
#define NAMING_TURNS_PAUSE_NS 1000000000ull
void naming_turns_pause(struct naming_turns *t, uint64_t owner, uint64_t ns, uint64_t now_ns);
/* Returns the end of the owner's pause; 0: it has none. */
uint64_t naming_turns_paused_until(const struct naming_turns *t, uint64_t owner);
/* Returns how much of a pause the owner's work needs, of `parts`: all of it if no other owner spent
 * more, and less if others did. */
unsigned naming_turns_rest_part(const struct naming_turns *t, uint64_t owner, unsigned parts,
				uint64_t now_ns);
/* Whether the owner's allowance is used up. It is the owner's share of the burst, divided among
 * `owners`. */
bool naming_turns_over(const struct naming_turns *t, uint64_t owner, unsigned owners,
		       uint64_t now_ns);
/* A lookup for this owner took long. For a while the owner counts as slow. */
void naming_turns_note_slow(struct naming_turns *t, uint64_t owner, uint64_t now_ns);
bool naming_turns_was_slow(const struct naming_turns *t, uint64_t owner, uint64_t now_ns);
/* Call these when a sample of the owner enters or leaves the queue. */
void naming_turns_enter(struct naming_turns *t, uint64_t owner, uint64_t now_ns);
void naming_turns_leave(struct naming_turns *t, uint64_t owner);
/* Whether the queue has samples of other owners. */
bool naming_turns_others(const struct naming_turns *t, uint64_t owner);
/* Counts a frame of the owner that was left without a name. Returns true for the first one. */
bool naming_turns_lose(struct naming_turns *t, uint64_t owner, uint64_t now_ns);
/* Makes the owner's waiting samples rest until until_ns. naming_turns_rests_until returns that
 * time; 0: they do not rest. */
void naming_turns_rest(struct naming_turns *t, uint64_t owner, uint64_t until_ns, uint64_t now_ns);
uint64_t naming_turns_rests_until(const struct naming_turns *t, uint64_t owner);
/* Returns the owner; NAMING_TURNS_NOBODY: it is one of those that share an entry. */
uint64_t naming_turns_key(const struct naming_turns *t, uint64_t owner);

#endif
