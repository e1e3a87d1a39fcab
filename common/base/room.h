/* SPDX-License-Identifier: Apache-2.0 */
/* Room that several owners share, and how much of it each of them holds. When it is full, the owner
 * who holds most gives way to an owner who holds less. */
#ifndef COMMON_BASE_ROOM_H
#define COMMON_BASE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROOM_OWNERS 256 /* further owners count as one */

/* Zero-initialise. */
struct room {
	struct room_owner {
		uint64_t owner;
		size_t held;
	} at[ROOM_OWNERS], others;
	uint32_t len; /* owners that hold some */
	size_t held;  /* by all */
};

/* The owner takes n places (or bytes), or returns them. */
void room_take(struct room *r, uint64_t owner, size_t n);
void room_give(struct room *r, uint64_t owner, size_t n);
/* How much the owner holds. Owners beyond ROOM_OWNERS count as one, so for them this is what they
 * hold together. */
size_t room_held(const struct room *r, uint64_t owner);
/* Whether the owner may take one more of a number of places: it must hold fewer than are free. So
 * there is always one left for the next owner. */
bool room_admits(const struct room *r, uint64_t owner, size_t places);
/* Whether the owner holds less than the average of all owners. */
bool room_is_small(const struct room *r, uint64_t owner);
/* Finds the owner that gives way to this one: the owner who holds most, if that is more. Returns
 * false if there is none. */
bool room_gives_way(const struct room *r, uint64_t owner, uint64_t *ret);

#endif
