// SPDX-License-Identifier: Apache-2.0
#include "tools/prof-bpf/host/shares/mapping_turns.h"

#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "tools/prof-bpf/host/processes/processes.h"

static bool is_over(uint64_t paid_ns, uint64_t now_ns)
{
	return paid_ns > now_ns;
}

static void pay(const struct host *h, uint64_t *paid_ns, uint64_t ns, uint64_t now_ns)
{
	owners_pay(paid_ns, ns,
		   h->scanning ? MAPPING_TURNS_SAVED_AT_START_NS : MAPPING_TURNS_SAVED_NS, now_ns);
}

bool mapping_turns_may(const struct host *h, const struct owner *w, bool large, uint64_t now_ns)
{
	if (is_over(w->maps_paid_ns, now_ns) && (large || is_over(w->small_paid_ns, now_ns)))
		return false;
	return !is_over(h->maps_paid_ns, now_ns) ||
	       owner_spent(w, OWNER_MAPS_CPU, now_ns) <= MAPPING_TURNS_LITTLE_NS;
}

void mapping_turns_spend(struct host *h, struct owner *w, bool large, uint64_t ns, uint64_t now_ns)
{
	if (!large && is_over(w->maps_paid_ns, now_ns))
		pay(h, &w->small_paid_ns, ns * MAPPING_TURNS_SMALL_PART, now_ns);
	else
		pay(h, &w->maps_paid_ns, ns * MAPPING_TURNS_OWNER_PART, now_ns);
	pay(h, &h->maps_paid_ns, ns * MAPPING_TURNS_ALL_PART, now_ns);
	owner_spend(w, OWNER_MAPS_CPU, ns, now_ns);
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
