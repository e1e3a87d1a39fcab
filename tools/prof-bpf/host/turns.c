// SPDX-License-Identifier: Apache-2.0
#include "tools/prof-bpf/host/turns.h"

#include "common/base/clock.h"
#include "tools/prof-bpf/host/processes.h"
#include "tools/prof-bpf/host/publish.h"

#define AT_ONCE 64 /* processes that give way */

static bool is_over(uint64_t paid_ns, uint64_t now_ns)
{
	return paid_ns > now_ns;
}

static void pay(const struct host *h, uint64_t *paid_ns, uint64_t ns, uint64_t now_ns)
{
	const uint64_t saved = h->scanning ? TURNS_SAVED_AT_START_NS : TURNS_SAVED_NS,
		       least = now_ns > saved ? now_ns - saved : 0;

	*paid_ns = (*paid_ns > least ? *paid_ns : least) + ns;
}

bool turns_may(const struct host *h, const struct owner *w, uint64_t now_ns)
{
	if (is_over(w->maps_paid_ns, now_ns))
		return false;
	return !is_over(h->maps_paid_ns, now_ns) ||
	       owner_spent(w, OWNER_MAPS_CPU, now_ns) <= TURNS_LITTLE_NS;
}

void turns_spend(struct host *h, struct owner *w, uint64_t ns, uint64_t now_ns)
{
	pay(h, &w->maps_paid_ns, ns * TURNS_OWNER_PART, now_ns);
	pay(h, &h->maps_paid_ns, ns * TURNS_ALL_PART, now_ns);
	owner_spend(w, OWNER_MAPS_CPU, ns, now_ns);
}

struct turns_timer turns_begin(void)
{
	return (struct turns_timer){ .wall_ns = clock_mono_ns(),
				     .cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) };
}

void turns_end(struct host *h, struct owner *w, struct turns_timer since)
{
	const struct turns_timer now = turns_begin();
	const uint64_t wall = (now.wall_ns - since.wall_ns) / 4, cpu = now.cpu_ns - since.cpu_ns;

	turns_spend(h, w, wall > cpu ? wall : cpu, now.wall_ns);
}

uint64_t turns_delay(uint8_t *failures, uint64_t first_ns)
{
	const uint8_t n = *failures;

	*failures = n < 6 ? n + 1 : n;
	return first_ns << n;
}

/* Whether a's mappings go before b's. */
static bool goes_before(const struct process *a, const struct process *b)
{
	if (a->sampled != b->sampled)
		return !a->sampled;
	return a->maps->len > b->maps->len;
}

/* Drops the mappings of one process of this owner's. False: it has none. */
static bool drop_one(struct host *h, const struct owner *w, const struct process *but)
{
	struct process *p, *next, *first = NULL;

	HASH_ITER(hh, h->by_pid, p, next) {
		if (p != but && p->maps && p->maps->owner == w && !p->pub.end_ns &&
		    (!first || goes_before(p, first)))
			first = p;
	}
	if (!first)
		return false;
	process_drop_maps(h, first);
	return true;
}

bool turns_drop_mappings(struct host *h, const struct owner *w)
{
	return drop_one(h, w, NULL);
}

bool turns_drop_others_mappings(struct host *h, const struct owner *than)
{
	struct process *p, *next, *first = NULL;
	uint64_t most = than->held[OWNER_MAPPINGS];

	HASH_ITER(hh, h->by_pid, p, next) {
		const struct owner *w = p->maps ? p->maps->owner : NULL;
		const uint64_t held = w && !p->pub.end_ns ? w->held[OWNER_MAPPINGS] : 0;

		if (held > most || (first && held == most && goes_before(p, first))) {
			first = p;
			most = held;
		}
	}
	if (!first)
		return false;
	process_drop_maps(h, first);
	return true;
}

bool turns_keep_mappings(struct host *h, struct process *p, uint64_t more)
{
	struct owner *w = p->pub.owner;

	if (owners_held(h->owners, OWNER_MAPPINGS) + more <= h->all_mappings)
		return true;
	if (w->held[OWNER_MAPPINGS] + more >
	    owners_share(h->owners, w, OWNER_MAPPINGS, h->all_mappings))
		return false;
	while (owners_held(h->owners, OWNER_MAPPINGS) + more > h->all_mappings) {
		const struct owner *most = owners_largest(h->owners, OWNER_MAPPINGS);

		/* It may hold files alone, which others have mapped. */
		if (!most || most == w || !drop_one(h, most, p))
			break;
	}
	return true;
}

static bool is_before(const struct process *a, const struct process *b)
{
	return a->sampled_ns < b->sampled_ns;
}

/* Collects living processes of an owner: those whose last sample is longest ago, or that have
 * none. */
static unsigned oldest(struct host *h, const struct owner *w, uint32_t but_pid, bool published,
		       struct process *ret[static AT_ONCE])
{
	struct process *p, *next;
	unsigned n = 0;

	HASH_ITER(hh, h->by_pid, p, next) {
		unsigned at = n;

		if (p->pub.owner != w || p->pub.end_ns || p->pub.pid == but_pid ||
		    (published && !p->pub.generation))
			continue;
		while (at && is_before(p, ret[at - 1]))
			at--;
		if (at == AT_ONCE)
			continue;
		n += n < AT_ONCE;
		for (unsigned i = n - 1; i > at; i--)
			ret[i] = ret[i - 1];
		ret[at] = p;
	}
	return n;
}

void turns_forget_processes(struct host *h, uint32_t but_pid)
{
	struct process *p[AT_ONCE];
	struct owner *most = owners_largest(h->owners, OWNER_PROCESSES);
	const unsigned n = most && !h->config.only_selected ? oldest(h, most, but_pid, false, p)
							    : 0;

	if (!n)
		return;
	h->figures.limit += n;
	owner_refuse(most, OWNER_PROCESSES, n);
	for (unsigned i = 0; i < n; i++) {
		process_end(h, p[i], h->heard_ns);
		process_forget(h, p[i]);
	}
}

void turns_withdraw_processes(struct host *h)
{
	struct process *p[AT_ONCE];
	struct owner *most = owners_largest(h->owners, OWNER_PROCESSES);
	const unsigned n = most && !h->config.only_selected ? oldest(h, most, 0, true, p) : 0;

	if (n)
		owner_refuse(most, OWNER_PROCESSES, n);
	for (unsigned i = 0; i < n; i++) {
		publish_nothing(h, p[i]);
		p[i]->sampled = false;
	}
}
