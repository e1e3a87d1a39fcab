/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: how much time the naming of each user's programs took. Their files decide how long that
 * is. A user who used up an allowance comes after all others who have something to name.
 */
#ifndef PROF_SYMD_STREAM_TURNS_H
#define PROF_SYMD_STREAM_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#define TURNS_USERS 64
#define TURNS_BURST_NS 200000000ull /* at once for all users together; of each 1,000: */
#define TURNS_PERMILLE 100
#define TURNS_NOBODY UINT32_MAX

/* Of more users at a time, the one that was heard of last is forgotten first. */
struct turns {
	struct turn {
		uint32_t user;
		bool used;
		uint64_t spent_ns, since_ns; /* spent_ns: as of since_ns, less what was earned */
		uint32_t queued;	     /* of its samples */
		uint64_t unnamed;	     /* frames that were left without names */
	} at[TURNS_USERS];
	uint32_t queued, users; /* of all users; users who have some */
};

/* The user took so long. */
void turns_spend(struct turns *t, uint32_t user, uint64_t ns, uint64_t now_ns);
/* What of it still counts. */
uint64_t turns_spent(const struct turns *t, uint32_t user, uint64_t now_ns);
/* Whether the user's allowance is used up: its share of the burst, if there are so many users. */
bool turns_over(const struct turns *t, uint32_t user, unsigned users, uint64_t now_ns);
/* A sample of the user came into the queue, or left it. */
void turns_enter(struct turns *t, uint32_t user, uint64_t now_ns);
void turns_leave(struct turns *t, uint32_t user);
/* Whether samples of others are in the queue. */
bool turns_others(const struct turns *t, uint32_t user);
/* A frame of the user was left without a name. True: the first one. */
bool turns_lose(struct turns *t, uint32_t user, uint64_t now_ns);

#endif
