/* SPDX-License-Identifier: Apache-2.0 */
/* Room that owners share: how much of it each holds. When it is full, the owner who holds most
 * gives way to one who holds less. */
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
/* How much the owner holds. Owners beyond ROOM_OWNERS count as one: this is how much they hold
 * together. */
size_t room_held(const struct room *r, uint64_t owner);
/* Whether the owner may take one more of a number of places: it holds fewer than are free. So there
 * is always one for the next owner. */
bool room_admits(const struct room *r, uint64_t owner, size_t places);
/* Whether the owner holds less than the average of all owners. */
bool room_is_small(const struct room *r, uint64_t owner);
/* Finds the owner that gives way to this one: the one that holds most, if that is more. False:
 * nobody. */
bool room_gives_way(const struct room *r, uint64_t owner, uint64_t *ret);

#endif
