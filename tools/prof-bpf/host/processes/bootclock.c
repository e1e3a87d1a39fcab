/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/processes/bootclock.h"

#include "common/base/system/clock.h"

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
	const struct clock_moment now = clock_moment_now();

	bootclock_note(b, now.mono_ns, now.boot_ns);
}

uint64_t bootclock_at(const struct bootclock *b, uint64_t mono_ns, uint64_t *ret_vague_ns)
{
	const bool after = mono_ns > b->awake_ns || !b->woken_ns;

	*ret_vague_ns = b->woken_ns && after && mono_ns <= b->woken_ns
				? (uint64_t)(b->offset_ns - b->before_ns)
				: 0;
	return mono_ns + (uint64_t)(after ? b->offset_ns : b->before_ns);
}
