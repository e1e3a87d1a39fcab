/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/processes/bootclock.h"

#include "common/base/system/clock.h"

/* Retry, since the thread may be interrupted between the two clocks. */
#define TRIES 5
#define CLOSE_NS 5000u
/* A smaller difference is not a suspend, since the clocks are read one after the other. */
#define SUSPEND_MIN_NS 10000000ll

void bootclock_note(struct bootclock *b, uint64_t mono_ns, uint64_t boot_ns)
{
	const int64_t offset_ns = (int64_t)(boot_ns - mono_ns);

	if (b->noted_ns && offset_ns > b->offset_ns + SUSPEND_MIN_NS) {
		b->before_ns = b->offset_ns;
		b->awake_ns = b->noted_ns;
		b->woken_ns = mono_ns;
	}
	b->offset_ns = offset_ns;
	b->noted_ns = mono_ns;
}

void bootclock_read(struct bootclock *b)
{
	uint64_t mono_ns = 0, boot_ns = 0, least_ns = UINT64_MAX;

	for (unsigned i = 0; i < TRIES && least_ns > CLOSE_NS; i++) {
		const uint64_t from_ns = clock_mono_ns(), at_ns = clock_boot_ns(),
			       took_ns = clock_mono_ns() - from_ns;

		if (took_ns >= least_ns)
			continue;
		least_ns = took_ns;
		mono_ns = from_ns + took_ns / 2;
		boot_ns = at_ns;
	}
	bootclock_note(b, mono_ns, boot_ns);
}

uint64_t bootclock_at(const struct bootclock *b, uint64_t mono_ns, uint64_t *ret_vague_ns)
{
	const bool after = mono_ns > b->awake_ns || !b->woken_ns;

	*ret_vague_ns = b->woken_ns && after && mono_ns <= b->woken_ns
				? (uint64_t)(b->offset_ns - b->before_ns)
				: 0;
	return mono_ns + (uint64_t)(after ? b->offset_ns : b->before_ns);
}
