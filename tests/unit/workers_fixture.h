/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the answers of workers that open and read for prof-bpf. */
#ifndef TESTS_UNIT_WORKERS_FIXTURE_H
#define TESTS_UNIT_WORKERS_FIXTURE_H

#include <criterion/criterion.h>
#include <poll.h>
#include "common/base/system/clock.h"
#include "tools/prof-bpf/open/workers/workerpool.h"

#define PATIENCE_NS 10000000000ull

/* Runs the pool until one answer is counted, which must be the only one. */
static inline void wait_for_answer(struct workerpool *pool, const unsigned *answers)
{
	const uint64_t end_ns = clock_mono_ns() + PATIENCE_NS;

	while (!*answers && clock_mono_ns() < end_ns) {
		struct pollfd p = { .fd = workerpool_fd(pool), .events = POLLIN };

		poll(&p, 1, 20);
		workerpool_run(pool, clock_mono_ns());
	}
	cr_assert_eq(*answers, 1);
}

#endif
