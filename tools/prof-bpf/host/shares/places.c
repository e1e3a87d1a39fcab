/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/shares/places.h"

#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/shares/eviction.h"

#define SWEEP_SOON_NS 3000000000ull /* between two sweeps, if processes found no place */
#define FORK_LATE_NS 2000000000ull  /* a fork's record may be this late */
#define WITHDRAWN_AT_ONCE 4	    /* times that some entries are withdrawn in a tick */

static bool has_share(const struct host *h, const struct owner *w)
{
	const uint64_t all = tables_process_places(h->config.tables);

	return w->held[OWNER_ENTRIES] >= owners_share(h->owners, w, OWNER_ENTRIES, all);
}

bool places_are_scarce(const struct host *h, const struct owner *w)
{
	return owners_held(h->owners, OWNER_ENTRIES) >= tables_process_places(h->config.tables) &&
	       has_share(h, w);
}

bool places_make(struct host *h, const struct owner *w)
{
	h->no_place = true;
	return eviction_withdraw_processes(h) && !has_share(h, w);
}

bool places_are_due(const struct host *h, const struct owner *w)
{
	return !h->config.only_selected && !has_share(h, w);
}

bool places_has_entry(const struct host *h, uint32_t pid)
{
	uint64_t start_ns;

	return (!h->no_place &&
		owners_held(h->owners, OWNER_ENTRIES) < tables_process_places(h->config.tables)) ||
	       tables_process_start(h->config.tables, pid, &start_ns);
}

struct sweep {
	struct host *host;
	uint64_t heard_start_ns; /* all forks of processes that started before this are known */
};

static bool stays(void *ctx, uint32_t pid, uint64_t start_ns)
{
	const struct sweep *s = ctx;
	struct host *h = s->host;
	struct process *p = process_find_alive(h, pid);
	struct procfs_stat st;

	if (p) {
		p->entered |= !p->pub.generation;
		process_charge_entry(h, p);
		return true;
	}
	if (start_ns >= s->heard_start_ns)
		return true;
	/* Without an entry it would not be sampled. */
	return h->config.only_selected &&
	       !process_says_gone(procfs_read_thread_stat(h->proc, pid, &st));
}

static void sweep(struct host *h, uint64_t now_ns)
{
	struct sweep s = { .host = h };
	uint64_t vague_ns;

	if (!h->sweep_ns)
		h->sweep_ns = now_ns + PLACES_SWEEP_NS;
	if (h->no_place && h->sweep_ns > now_ns + SWEEP_SOON_NS)
		h->sweep_ns = now_ns + SWEEP_SOON_NS;
	if (now_ns < h->sweep_ns)
		return;
	if (!h->sweeps)
		h->no_place = false;
	const uint64_t heard_ns = bootclock_at(&h->boot, h->heard_ns, &vague_ns);
	if (heard_ns > FORK_LATE_NS + vague_ns)
		s.heard_start_ns = heard_ns - FORK_LATE_NS - vague_ns;
	h->sweeps = tables_sweep(h->config.tables, stays, &s);
	if (!h->sweeps)
		h->sweep_ns = now_ns + PLACES_SWEEP_NS;
}

void places_tick(struct host *h, uint64_t now_ns)
{
	const uint64_t all = tables_process_places(h->config.tables);

	for (unsigned i = 0; i < WITHDRAWN_AT_ONCE && owners_held(h->owners, OWNER_ENTRIES) > all;
	     i++) {
		if (!eviction_withdraw_processes(h))
			break;
	}
	sweep(h, now_ns);
}
