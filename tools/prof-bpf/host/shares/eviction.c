/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/shares/eviction.h"

#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "tools/prof-bpf/host/processes/entries.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"

#define AT_ONCE 64	 /* processes that are evicted at once */
#define LEFT_BY_LARGE 16 /* large processes leave this part of all mappings */
/* After a search for unsampled processes that found too few, there is none for this long. */
#define SEARCH_NS 100000000ull

void eviction_drop_maps(struct host *h, struct process *p)
{
	process_cancel_reading(p);
	maps_put(p->maps);
	p->maps = NULL;
	entry_drop(h, p);
	p->sampled = false;
	p->wants_maps = false;
	p->dropped = true;
}

static void drop_maps(struct host *h, struct process *p)
{
	h->figures.limit++;
	owner_refuse(p->pub.owner, OWNER_MAPPINGS, 1);
	eviction_drop_maps(h, p);
	p->rescan_ns = clock_mono_ns() +
		       mapping_turns_delay(&p->read_failures, PROCESSES_RESCAN_NS);
}

/* Returns the owner that mappings of a living process are charged to, also those of a current
 * reading, which hold files as the others do. NULL: it has none. */
static const struct owner *holder(const struct process *p)
{
	if (p->pub.end_ns)
		return NULL;
	if (p->maps)
		return p->maps->owner;
	return p->reading ? p->pub.owner : NULL;
}

static size_t mappings_of(const struct process *p)
{
	return (p->maps ? p->maps->len : 0) + (p->reading ? p->reading->count : 0);
}

/* Whether a's mappings are evicted before b's. */
static bool goes_before(const struct process *a, const struct process *b)
{
	if (a->sampled != b->sampled)
		return !a->sampled;
	return mappings_of(a) > mappings_of(b);
}

/* Drops the mappings of one process of this owner, but not of `but`. Returns false if it has
 * none. */
static bool drop_one(struct host *h, const struct owner *w, const struct process *but)
{
	struct process *p, *next, *first = NULL;

	HASH_ITER(hh, h->by_pid, p, next) {
		if (p != but && holder(p) == w && (!first || goes_before(p, first)))
			first = p;
	}
	if (!first)
		return false;
	drop_maps(h, first);
	return true;
}

bool eviction_drop_mappings(struct host *h, const struct owner *w)
{
	return drop_one(h, w, NULL);
}

bool eviction_drop_largest_mappings(struct host *h, uint64_t least)
{
	struct process *p, *next, *first = NULL;
	uint64_t most = least;

	HASH_ITER(hh, h->by_pid, p, next) {
		const struct owner *w = holder(p);
		const uint64_t held = w ? w->held[OWNER_MAPPINGS] : 0;

		if (held > most || (first && held == most && goes_before(p, first))) {
			first = p;
			most = held;
		}
	}
	if (!first)
		return false;
	drop_maps(h, first);
	return true;
}

uint64_t eviction_all_mappings(const struct host *h, bool large)
{
	return h->all_mappings - (large ? h->all_mappings / LEFT_BY_LARGE : 0);
}

static bool has_room(const struct host *h, uint64_t more, uint64_t all)
{
	return owners_held(h->owners, OWNER_MAPPINGS) + more <= all;
}

/* Drops mappings of processes without samples until there is room: of w, or of anybody if it is
 * NULL. */
static void drop_unsampled(struct host *h, const struct owner *w, uint64_t more, uint64_t all)
{
	struct process *p, *next;

	HASH_ITER(hh, h->by_pid, p, next) {
		if (has_room(h, more, all))
			return;
		if (p->sampled || !p->maps || p->pub.end_ns || (w && p->maps->owner != w))
			continue;
		h->figures.limit++;
		eviction_drop_maps(h, p);
	}
}

void eviction_make_room(struct host *h, const struct process *p, uint64_t more)
{
	const uint64_t all = eviction_all_mappings(h, mapping_turns_large(p));

	if (!p->sampled || has_room(h, more, all))
		return;
	const uint64_t now_ns = clock_mono_ns();

	if (now_ns < h->no_unsampled_ns)
		return;
	/* A search visits all processes, so it makes room for many records of mappings. */
	const uint64_t some = numbers_larger(more, MAPPING_TURNS_LARGE);
	const struct owner *most = owners_largest(h->owners, OWNER_MAPPINGS);

	if (most)
		drop_unsampled(h, most, some, all);
	drop_unsampled(h, NULL, some, all);
	if (!has_room(h, some, all))
		h->no_unsampled_ns = now_ns + SEARCH_NS;
}

bool eviction_keep_mappings(struct host *h, struct process *p, uint64_t more)
{
	const uint64_t all = eviction_all_mappings(h, mapping_turns_large(p));
	struct owner *w = p->pub.owner;

	eviction_make_room(h, p, more);
	if (has_room(h, more, all))
		return true;
	if (w->held[OWNER_MAPPINGS] + more > owners_share(h->owners, w, OWNER_MAPPINGS, all))
		return false;
	while (owners_held(h->owners, OWNER_MAPPINGS) + more > h->all_mappings) {
		const struct owner *most = owners_largest(h->owners, OWNER_MAPPINGS);

		/* The owner may hold only files, which others have mapped. */
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
static unsigned oldest(struct host *h, const struct owner *w, uint32_t but_pid, bool placed,
		       struct process *ret[static AT_ONCE])
{
	struct process *p, *next;
	unsigned n = 0;

	HASH_ITER(hh, h->by_pid, p, next) {
		unsigned at = n;

		if (p->pub.owner != w || p->pub.end_ns || p->pub.pid == but_pid ||
		    (placed && !p->placed))
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

void eviction_forget_processes(struct host *h, uint32_t but_pid)
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

unsigned eviction_withdraw_processes(struct host *h)
{
	struct process *p[AT_ONCE];
	struct owner *most = h->config.only_selected ? NULL
						     : owners_largest(h->owners, OWNER_ENTRIES);
	const unsigned n = most ? oldest(h, most, 0, true, p) : 0;

	if (n)
		owner_refuse(most, OWNER_ENTRIES, n);
	for (unsigned i = 0; i < n; i++) {
		entry_drop(h, p[i]);
		p[i]->sampled = false;
	}
	return n;
}
