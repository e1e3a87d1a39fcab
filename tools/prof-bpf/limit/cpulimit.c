/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit/cpulimit.h"

#include "common/wire/peer/lastword.h"

#define WINDOW_NS (CPULIMIT_STEP_NS * CPULIMIT_STEPS)
#define SECOND_STEPS (1000000000ull / CPULIMIT_STEP_NS)
#define SAMPLE_NS 100000ull /* cpu time that all tools may spend on a sample; used for `least` */
#define LEAST_PART 2	    /* part of the limit that these samples may use */
#define KEEP_FIRST (CPULIMIT_ALL / 64)
/* In the next step, more samples are kept by this part of the kept ones, or of `least`. */
#define KEEP_MORE 4

void cpulimit_init(struct cpulimit *c, unsigned percent, unsigned cpus)
{
	*c = (struct cpulimit){ .cpus = cpus };
	cpulimit_set(c, percent);
}

void cpulimit_set(struct cpulimit *c, unsigned percent)
{
	/* Without a limit, cpu time was not measured. */
	if (!c->limit_ns)
		c->last_ns = 0;
	c->calm = false;
	c->limit_ns = WINDOW_NS / 100 * percent * c->cpus;
	c->least = (uint32_t)(c->limit_ns / CPULIMIT_STEPS / LEAST_PART / SAMPLE_NS);
}

/* Returns how far x is between `from` and `to`, in parts of `all`. */
static uint64_t part(uint64_t x, uint64_t from, uint64_t to, uint64_t all)
{
	return x <= from ? 0 : x >= to ? all : (x - from) * all / (to - from);
}

void cpulimit_step(struct cpulimit *c, uint64_t used_ns)
{
	const uint64_t limit = c->limit_ns, limit_s = limit / CPULIMIT_STEPS * SECOND_STEPS;
	uint64_t used = 0, used_s = 0;

	c->used_ns[c->step++ % CPULIMIT_STEPS] = used_ns;
	for (unsigned i = 0; i < CPULIMIT_STEPS; i++)
		used += c->used_ns[i];
	for (unsigned i = 1; i <= SECOND_STEPS; i++)
		used_s += c->used_ns[(c->step + CPULIMIT_STEPS - i) % CPULIMIT_STEPS];
	c->calm = c->step >= CPULIMIT_STEPS && used < limit / 4;
	c->rest_ms = part(used, limit / 2, limit / 4 * 3,
			  LASTWORD_TICK_MS * (uint64_t)CPULIMIT_REST_ALL);

	uint64_t drop = part(used, limit / 4 * 3, limit, CPULIMIT_ALL);
	const uint64_t now = c->drop ? part(used_s, limit_s, 2 * limit_s, CPULIMIT_ALL) : 0,
		       kept = CPULIMIT_ALL - c->drop,
		       most = (kept > KEEP_FIRST ? kept : KEEP_FIRST) * (KEEP_MORE + 1) / KEEP_MORE;

	drop = drop > now ? drop : now;
	if (CPULIMIT_ALL - drop > most)
		drop = CPULIMIT_ALL - most;
	c->drop = (unsigned)drop;
}

bool cpulimit_run(struct cpulimit *c, struct meter *m, uint64_t now_ns)
{
	const bool first = !c->last_ns;
	const uint64_t pause_ns = CPULIMIT_STEP_NS * (c->calm ? CPULIMIT_CALM_STEPS : 1);
	uint64_t total[METER_TOOLS], used = 0;

	if (!c->limit_ns || now_ns < c->last_ns + pause_ns)
		return false;
	meter_cpu(m, now_ns, total);
	for (int i = 0; i < METER_TOOLS; i++) {
		used += total[i] - c->total_ns[i];
		c->total_ns[i] = total[i];
	}
	/* If the loop was late, the time counts for several steps. */
	for (; !first && now_ns >= c->last_ns + 2 * CPULIMIT_STEP_NS &&
	       now_ns - c->last_ns < WINDOW_NS;
	     c->last_ns += CPULIMIT_STEP_NS)
		cpulimit_step(c, 0);
	c->last_ns = now_ns;
	cpulimit_step(c, first ? 0 : used);
	return true;
}
