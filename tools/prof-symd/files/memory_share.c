/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/files/memory_share.h"

#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/names/program/program.h"
#include "common/wire/peer/lastword.h"

#define MORE_STEP (8ull << 20)

static uint64_t heap_beyond(const struct memory_share *s)
{
	return s->heap > s->sure->dwarf ? s->heap - s->sure->dwarf : 0;
}

/* Returns the bytes that are currently granted beyond the share. */
static uint64_t granted(const struct memory_share *s)
{
	const uint64_t all = lastword_granted();

	return all > s->sure->symd ? all - s->sure->symd : 0;
}

void memory_share_init(struct memory_share *s, const struct budget *sure)
{
	*s = (struct memory_share){ .sure = sure, .heap = sure->dwarf };
}

static void hand_back(struct memory_share *s, uint64_t bytes, uint64_t now_ns)
{
	if (!s->more && !heap_beyond(s))
		return;
	if (bytes > s->sure->dwarf / 2)
		s->used_ns = now_ns;
	if (now_ns - s->used_ns < MEMORY_SHARE_IDLE_NS)
		return;
	s->more = 0;
	s->heap = s->sure->dwarf;
	program_set_heap(s->heap);
}

uint64_t memory_share_programs(struct memory_share *s, uint64_t others, uint64_t bytes,
			       uint64_t evicted, uint64_t now_ns)
{
	const struct budget *b = s->sure;
	const uint64_t all = b->programs + b->dwarf + b->generated + b->objects + b->definitions +
			     b->names;
	const uint64_t beyond = heap_beyond(s);
	uint64_t rest = others + b->programs < all ? all - others : b->programs;

	/* Programs that were closed may soon be needed again. So ask for more as long as more is
	 * granted. */
	if (evicted != s->evicted && s->more <= granted(s) && s->more < b->symd_most) {
		s->more += MORE_STEP;
		s->used_ns = now_ns;
	}
	s->evicted = evicted;
	hand_back(s, bytes, now_ns);
	lastword_want(b->symd + beyond + s->more);
	rest = numbers_smaller(rest, b->dwarf) + numbers_smaller(beyond + s->more, granted(s));
	/* Half of the rest, since programs may exceed their budget for a moment (filestore.h), and
	 * so may the allocator. But a file for which more was granted must fit. */
	rest /= 2;
	return beyond && rest < s->heap * 2 / 3 ? s->heap * 2 / 3 : rest;
}

uint64_t memory_share_heap(void *share, uint64_t heap)
{
	struct memory_share *s = share;
	const struct budget *b = s->sure;

	if (heap > b->dwarf_most)
		heap = b->dwarf_most;
	if (heap <= s->heap)
		return s->heap;
	/* Memory granted for programs goes to this file instead. */
	s->more = 0;
	lastword_want(b->symd + (heap - b->dwarf));
	s->used_ns = clock_mono_ns();
	heap = numbers_smaller(heap, b->dwarf + granted(s));
	if (heap > s->heap)
		s->heap = heap;
	return s->heap;
}
