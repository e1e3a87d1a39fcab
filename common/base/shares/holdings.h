/* SPDX-License-Identifier: Apache-2.0 */
/* Holdings: how much each owner holds of the room that they share. When it is full, the owner who
 * holds most gives way to an owner who holds less. */
#ifndef COMMON_BASE_SHARES_HOLDINGS_H
#define COMMON_BASE_SHARES_HOLDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOLDINGS_OWNERS 256 /* further owners count as one */

/* Zero-initialise. */
struct holdings {
	struct holdings_owner {
		uint64_t owner;
		size_t held;
	} at[HOLDINGS_OWNERS], others;
	uint32_t len; /* owners that hold some */
	size_t held;  /* by all */
};

/* The owner takes n places (or bytes), or returns them. */
void holdings_take(struct holdings *r, uint64_t owner, size_t n);
void holdings_give(struct holdings *r, uint64_t owner, size_t n);
/* How much the owner holds. Owners beyond HOLDINGS_OWNERS count as one, so for them this is what
 * they hold together. */
size_t holdings_of(const struct holdings *r, uint64_t owner);
/* Whether the owner may take one more of a number of places: it must hold fewer than are free. So
 * there is always one left for the next owner. */
bool holdings_admits(const struct holdings *r, uint64_t owner, size_t places);
/* Whether the owner holds less than the average of all owners. */
bool holdings_is_small(const struct holdings *r, uint64_t owner);
/* Finds the owner that gives way to this one: the owner who holds most, if that is more. Returns
 * false if there is none. */
bool holdings_gives_way(const struct holdings *r, uint64_t owner, uint64_t *ret);

#endif
