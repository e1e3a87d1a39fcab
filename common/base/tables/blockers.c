/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/tables/blockers.h"

#include "common/base/bytes/numbers.h"

#define BLOCK_BITS 16

uint32_t blockers_user(uint32_t uid)
{
	return uid >> BLOCK_BITS ? uid & ~((1u << BLOCK_BITS) - 1) : uid;
}

void blockers_note(struct blockers *b, uint32_t uid, uint64_t now_ns)
{
	const uint32_t user = blockers_user(uid);
	struct blocker *to = &b->at[0];

	for (unsigned i = 0; i < b->len; i++) {
		struct blocker *at = &b->at[i];

		if (at->user == user) {
			to = at;
			break;
		}
		if (at->until_ns < to->until_ns)
			to = at;
	}
	if (to->user != user || !to->rest_ns) {
		if (b->len < BLOCKERS_MAX)
			to = &b->at[b->len++];
		*to = (struct blocker){ .user = user };
	}
	/* Another time soon after the last one makes the rest longer. */
	to->rest_ns = to->rest_ns && now_ns < to->until_ns + to->rest_ns
			      ? numbers_smaller(2 * to->rest_ns, BLOCKERS_LONGEST_NS)
			      : BLOCKERS_REST_NS;
	to->until_ns = now_ns + to->rest_ns;
}

bool blockers_has(const struct blockers *b, uint32_t uid, uint64_t now_ns)
{
	const uint32_t user = blockers_user(uid);

	for (unsigned i = 0; i < b->len; i++)
		if (b->at[i].user == user && now_ns < b->at[i].until_ns)
			return true;
	return false;
}
