/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/gathering.h"

#include "common/base/bytes/numbers.h"
#include "tools/prof-bpf/owners/timebudget.h"

#define PERIOD_PART 5
#define MANY_NS 3000000ull	   /* if taking records takes longer, there are many */
#define KEEN_FILES_NS 200000000ull /* after a new file */
#define KEEN_MANY_NS 1000000000ull /* after many records */
#define TIME_PART 4 /* records take at most a quarter of the time between two timer ticks */
#define SAVED_NS 500000000ull

static void be_keen(struct gathering *g, uint64_t until_ns)
{
	g->keen_ns = numbers_larger(g->keen_ns, until_ns);
}

void gathering_begin(struct gathering *g, uint64_t now_ns, unsigned hz)
{
	uint64_t ns = GATHERING_LEAST_NS;

	if (hz && g->keen_ns <= now_ns)
		ns = numbers_larger(ns, 1000000000ull / PERIOD_PART / hz);
	g->due_ns = now_ns + numbers_smaller(ns, GATHERING_MOST_NS);
}

void gathering_new_file(struct gathering *g, uint64_t now_ns)
{
	be_keen(g, now_ns + KEEN_FILES_NS);
}

int gathering_patience_ms(const struct gathering *g, uint64_t now_ns)
{
	if (!g->due_ns)
		return -1;
	if (g->due_ns <= now_ns)
		return 0;
	return (int)(numbers_smaller(g->due_ns - now_ns, GATHERING_LOOK_NS) / 1000000 + 1);
}

bool gathering_is_due(const struct gathering *g, uint64_t now_ns, bool fills)
{
	return g->due_ns && (fills || now_ns >= g->due_ns);
}

void gathering_end(struct gathering *g, uint64_t began_ns, uint64_t now_ns)
{
	const uint64_t spent_ns = now_ns - began_ns;

	if (began_ns < g->due_ns || spent_ns > MANY_NS)
		be_keen(g, now_ns + KEEN_MANY_NS);
	g->due_ns = 0;
	timebudget_pay(&g->paid_ns, spent_ns * TIME_PART, SAVED_NS, now_ns);
	g->rests = !timebudget_covers(g->paid_ns, now_ns);
}

bool gathering_rested(struct gathering *g, uint64_t now_ns)
{
	if (!g->rests || !timebudget_covers(g->paid_ns, now_ns))
		return false;
	g->rests = false;
	return true;
}
