/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/children/restarts.h"

#include "common/base/bytes/numbers.h"

#define SHORT_NS 1000000000ull /* a shorter life adds to the streak */
#define LONG_NS 60000000000ull /* a life this long ends the streak */
#define FIRST_NS 100000000ull  /* wait before the second restart; doubled each time */
#define STREAK_COUNTED 16      /* the wait has reached its maximum long before */
#define LONGEST_NS 5000000000ull
#define FOR_EVER_NS 400000000ull

bool restarts_plan(struct restarts *r, uint64_t now_ns, uint64_t lived_ns, unsigned most)
{
	/* An attacker who crashes such a tool again and again must not keep it away for long. */
	const uint64_t longest_ns = most == RESTARTS_FOR_EVER ? FOR_EVER_NS : LONGEST_NS;
	uint64_t wait_ns;

	r->due_ns = 0;
	if (lived_ns >= LONG_NS)
		r->streak = 0;
	else if (lived_ns >= SHORT_NS)
		r->streak /= 2;
	else if (r->streak >= most)
		return false;
	else if (r->streak < STREAK_COUNTED)
		r->streak++;
	wait_ns = r->streak > 1 ? FIRST_NS << (r->streak - 2) : 0;
	r->due_ns = now_ns + numbers_smaller(wait_ns, longest_ns);
	r->count++;
	return true;
}
