/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/lookups/mappers.h"

#include <string.h>
#include "common/base/system/clock.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"

#define FIND_AMONG 8192 /* mappings; larger processes are not searched */
/* A search for a file looks at this many mappings of its owner and of each other owner; or at fewer
 * if its owner has used up its time. */
#define FIND_OWN 16384u
#define FIND_OTHERS 8192u
#define FIND_POOR 1024u

/* A search of the processes of all owners. */
struct search {
	struct host *h;
	const struct files_backing *backing;
	const struct file *file;
	struct owner *payer; /* of a search for a file; NULL: no owner */
	bool poor;	     /* the payer has used up its time */
	uint64_t began_ns;
};

static struct search search_begin(struct host *h, const struct files_backing *b,
				  const struct file *f)
{
	struct owner *payer = b ? NULL : f->owner ? f->owner : f->finder;
	const uint64_t now_ns = b ? 0 : clock_mono_ns();

	h->searches++;
	return (struct search){ .h = h,
				.backing = b,
				.file = f,
				.payer = payer,
				.poor = payer && !mapping_turns_may(h, payer, false, now_ns),
				.began_ns = now_ns };
}

static void search_end(const struct search *w)
{
	const uint64_t now_ns = w->payer ? clock_mono_ns() : 0;

	if (w->payer)
		mapping_turns_spend(w->h, w->payer, false, now_ns - w->began_ns, now_ns);
}

/* Whether the search may look at n more mappings of an owner. */
static bool search_may(const struct search *w, struct owner *of, size_t n)
{
	if (w->backing)
		return true;
	if (of->searched_in != w->h->searches) {
		of->searched_in = w->h->searches;
		of->search_left = w->poor ? FIND_POOR : of == w->payer ? FIND_OWN : FIND_OTHERS;
	}
	if (n > of->search_left)
		return false;
	of->search_left -= (uint32_t)n;
	return true;
}

bool mappers_maps_have(const struct map *at, size_t n, const struct files_backing *b,
		       const struct file *f, struct files_mapper *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (!at[i].backing || (b ? at[i].backing != b : at[i].backing->file != f))
			continue;
		ret->start = at[i].start;
		ret->end = at[i].end;
		return true;
	}
	return false;
}

/* Whether a living process has the file mapped, and where. */
static bool is_mapper(const struct search *w, const struct process *p, struct files_mapper *ret)
{
	if (p->pub.end_ns || !p->maps || p->maps->len > FIND_AMONG ||
	    !search_may(w, p->pub.owner, (size_t)p->maps->len + p->maps->noted_len) ||
	    !(mappers_maps_have(p->maps->at, p->maps->len, w->backing, w->file, ret) ||
	      mappers_maps_have(p->maps->noted, p->maps->noted_len, w->backing, w->file, ret)))
		return false;
	ret->process_id = p->pub.id;
	ret->pid = p->pub.pid;
	ret->owner = p->pub.owner;
	return true;
}

/* Returns how suitable a process is for a search; 0: not at all. */
static unsigned rank_of(const struct process *p, const struct files_mapper_search *s)
{
	const struct owner *owner = p->pub.owner;
	const struct file *f = s->file;
	bool tried = false;

	if (p->pub.end_ns ||
	    (!s->backing && !p->sampled && owner != (f->owner ? f->owner : f->finder)))
		return 0;
	for (unsigned i = 0; i < s->tried_count; i++) {
		if (s->tried[i].process_id == p->pub.id)
			return 0;
		tried |= s->tried[i].owner == owner;
	}
	if (tried && s->other_owner)
		return 0;
	return 1 + p->sampled + 2 * !tried;
}

static struct files_mapper find(const struct search *w, const struct files_mapper_search *s)
{
	struct files_mapper best = { 0 };
	unsigned best_rank = 0;
	uint64_t best_ns = 0;

	for (struct process *p = w->h->by_pid; p; p = p->hh.next) {
		const unsigned rank = rank_of(p, s);
		struct files_mapper m = { 0 };

		if (rank < best_rank || (rank == best_rank && p->sampled_ns <= best_ns) || !rank ||
		    !is_mapper(w, p, &m))
			continue;
		best = m;
		best_rank = rank;
		best_ns = p->sampled_ns;
		/* When a file is opened for the first time, it matters less whether the process was
		 * sampled. */
		if (s->backing && !s->tried_count)
			break;
	}
	return best;
}

struct files_mapper mappers_find(void *ctx, const struct files_mapper_search *s)
{
	const struct search w = search_begin(ctx, s->backing, s->file);
	const struct files_mapper ret = find(&w, s);

	search_end(&w);
	return ret;
}

/* Returns the kept list of a file; NULL: none, or a process of it no longer has the file mapped. */
static struct files_kept *kept_of(struct host *h, const struct file *f)
{
	struct files_kept *k = h->kept_mappers;

	while (k < h->kept_mappers + FILES_KEPT && k->file != f->pub.id)
		k++;
	if (k == h->kept_mappers + FILES_KEPT || clock_mono_ns() >= k->until_ns)
		return NULL;
	for (uint32_t i = 0; i < k->count; i++) {
		const struct process *p = process_find_alive(h, k->at[i].pid);
		const struct map *m = p && p->pub.id == k->at[i].process_id && p->maps
					      ? maps_find(p->maps, k->at[i].start)
					      : NULL;

		if (!m || !m->backing || m->backing->file != f)
			return NULL;
		k->at[i].owner = p->pub.owner;
	}
	return k;
}

static void keep(struct host *h, const struct file *f, const struct files_mapper *at, size_t n)
{
	struct files_kept *k = h->kept_mappers, *old = k;

	for (; k < h->kept_mappers + FILES_KEPT; k++) {
		if (k->file == f->pub.id) {
			old = k;
			break;
		}
		if (k->until_ns < old->until_ns)
			old = k;
	}
	*old = (struct files_kept){ .file = f->pub.id,
				    .count = (uint32_t)n,
				    .until_ns = clock_mono_ns() + FILES_KEPT_NS };
	memcpy(old->at, at, n * sizeof(*at));
}

/* Lists the processes anew. */
static size_t list(struct host *h, const struct file *f, struct files_mapper *ret)
{
	const struct files_mapper_search any = { .file = f };
	size_t n = 1;

	ret[0] = mappers_find(h, &any);
	if (!ret[0].pid)
		return 0;
	const struct search w = search_begin(h, NULL, f);
	for (struct process *p = h->by_pid; p && n < FILES_LISTED; p = p->hh.next) {
		struct files_mapper m = { 0 };
		bool known = !p->sampled;

		/* The first process may be listed twice, so that the numbers of the others stay the
		 * same. */
		for (size_t i = 1; i < n; i++)
			known |= ret[i].owner == p->pub.owner;
		if (!known && is_mapper(&w, p, &m))
			ret[n++] = m;
	}
	search_end(&w);
	return n;
}

size_t mappers_list(struct host *h, const struct file *f,
		    struct files_mapper ret[static FILES_LISTED])
{
	const struct files_kept *k = kept_of(h, f);

	if (k) {
		memcpy(ret, k->at, k->count * sizeof(*ret));
		return k->count;
	}
	const size_t n = list(h, f, ret);

	if (n)
		keep(h, f, ret, n);
	return n;
}
