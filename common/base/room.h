/* SPDX-License-Identifier: Apache-2.0 */
/* Room that owners share: how much of it each holds. When it is full, whoever holds most gives way
 * to who holds less. */
#ifndef COMMON_BASE_ROOM_H
#define COMMON_BASE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROOM_OWNERS 256 /* further ones count as one */

/* Zero-initialise. */
struct room {
	struct room_owner {
		uint64_t owner;
		size_t held;
	} at[ROOM_OWNERS], others;
	uint32_t len; /* owners that hold some */
	size_t held;  /* by all */
};

/* The owner takes n places (or bytes), or gives them back. */
void room_take(struct room *r, uint64_t owner, size_t n);
void room_give(struct room *r, uint64_t owner, size_t n);
/* What the owner holds. Owners without a place of their own hold what all such hold. */
size_t room_held(const struct room *r, uint64_t owner);
/* Whether the owner may take one more of a number of places: it holds less than what is free. So
 * there is always one for the next owner. */
bool room_admits(const struct room *r, uint64_t owner, size_t places);
/* Whether the owner holds less than the average of all owners. */
bool room_is_small(const struct room *r, uint64_t owner);
/* Finds the owner that gives way to this one: the one that holds most, if that is more. False:
 * nobody. */
bool room_gives_way(const struct room *r, uint64_t owner, uint64_t *ret);

#endif
