/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit/throttle.h"

#include "common/base/bytes/numbers.h"
#include "common/base/command/log.h"
#include "common/wire/peer/lastword.h"
#include "tools/prof-bpf/owners/owners.h"
#include "tools/prof-bpf/peers/file_server.h"
#include "tools/prof-bpf/peers/row_server.h"

void throttle_init(struct throttle *t, unsigned percent, unsigned cpus)
{
	t->percent = percent;
	cpulimit_init(&t->limit, percent, cpus);
}

#define PACE_MOST 8ull /* then all owners together may use a fortieth of prof-bpf's time */

/* Sets the pace of prof-bpf's work for owners: slower, the longer the others sleep. */
static void pace(struct throttle *t, uint64_t ms)
{
	owners_set_pace(t->owners, (unsigned)numbers_smaller(1 + ms / LASTWORD_TICK_MS, PACE_MOST));
}

/* Sets how long prof-deltas and prof-symd sleep. */
static void rest(struct throttle *t, uint64_t ms)
{
	row_server_rest(t->row_server, ms, t->limit.limit_ns);
	if (t->file_server)
		file_server_rest(t->file_server, ms);
}

void throttle_run(struct throttle *t, struct meter *m, uint64_t now_ns)
{
	const struct cpulimit *c = &t->limit;

	if (!cpulimit_run(&t->limit, m, now_ns))
		return;
	rest(t, c->rest_ms);
	pace(t, c->rest_ms);
	thinning_step(&t->thinning, c->drop, c->least, t->owners);
	if (!c->drop || t->told)
		return;
	t->told = true;
	log_warning("--cpu-limit %u: the tools need more cpu time; samples are dropped and counted "
		    "as cpu-limit; raise the limit, or sample less often",
		    t->percent);
}

void throttle_set(struct throttle *t, unsigned percent)
{
	t->percent = percent;
	t->told = false;
	cpulimit_set(&t->limit, percent);
	if (!percent) {
		rest(t, 0);
		pace(t, 0);
	}
}

void throttle_end(struct throttle *t)
{
	rest(t, 0);
}

struct thinning *throttle_thinning(struct throttle *t)
{
	return t->percent ? &t->thinning : NULL;
}
