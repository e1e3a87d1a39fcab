/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/shares/mapping_turns.h"

#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/owners/turns.h"

static struct turns turns_of(const struct host *h)
{
	return (struct turns){
		.resource = OWNER_MAPS_CPU,
		.owner = { OWNER_BUDGET_MAPS, MAPPING_TURNS_OWNER_PART },
		.small = { OWNER_BUDGET_SMALL_MAPS, MAPPING_TURNS_SMALL_PART },
		.all_part = MAPPING_TURNS_ALL_PART,
		.pace = owners_pace(h->owners),
		.saved_ns = h->scanning ? MAPPING_TURNS_SAVED_AT_START_NS : MAPPING_TURNS_SAVED_NS,
		.little_ns = MAPPING_TURNS_LITTLE_NS,
	};
}

bool mapping_turns_may(const struct host *h, const struct owner *w, bool large, uint64_t now_ns)
{
	const struct turns t = turns_of(h);

	return turns_may(&t, w, !large, h->maps_paid_ns, 0, now_ns);
}

void mapping_turns_spend(struct host *h, struct owner *w, bool large, uint64_t ns, uint64_t now_ns)
{
	const struct turns t = turns_of(h);

	turns_spend(&t, w, !large, &h->maps_paid_ns, ns, now_ns);
}

struct mapping_turns_timer mapping_turns_begin(void)
{
	return (struct mapping_turns_timer){ .wall_ns = clock_mono_ns(),
					     .cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) };
}

void mapping_turns_end(struct host *h, struct owner *w, bool large,
		       struct mapping_turns_timer since)
{
	const struct mapping_turns_timer now = mapping_turns_begin();
	const uint64_t wall = (now.wall_ns - since.wall_ns) / 4, cpu = now.cpu_ns - since.cpu_ns;

	mapping_turns_spend(h, w, large, numbers_larger(wall, cpu), now.wall_ns);
}

bool mapping_turns_large(const struct process *p)
{
	return p->scanned_len > MAPPING_TURNS_LARGE ||
	       (p->maps && p->maps->len + p->maps->noted_len > MAPPING_TURNS_LARGE);
}

uint64_t mapping_turns_delay(uint8_t *failures, uint64_t first_ns)
{
	const uint8_t n = *failures;

	*failures = n < 6 ? n + 1 : n;
	return first_ns << n;
}
