/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/hurry.h"

#include "common/base/bytes/numbers.h"

bool hurry_begin(struct hurry *h)
{
	const bool any = h->new_files;

	h->new_files = false;
	if (any)
		h->turns = HURRY_TURNS;
	return any;
}

bool hurry_tick(struct hurry *h)
{
	if (!h->turns)
		return false;
	h->turns--;
	return h->turns > 0;
}

bool hurry_may(struct hurry *h, uint64_t now_ns, uint64_t next_ns, uint64_t soon_ns)
{
	if (h->paid_ns > now_ns + HURRY_BURST * HURRY_NS || next_ns <= soon_ns)
		return false;
	h->paid_ns = numbers_larger(h->paid_ns, now_ns) + HURRY_NS;
	return true;
}
