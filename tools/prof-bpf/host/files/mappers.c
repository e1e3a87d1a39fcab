/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/files/mappers.h"

#include "tools/prof-bpf/host/processes/processes.h"

#define FIND_AMONG 8192 /* mappings; larger processes are not searched */

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
static bool is_mapper(const struct process *p, const struct files_backing *b, const struct file *f,
		      struct files_mapper *ret)
{
	if (p->pub.end_ns || !p->maps || p->maps->len > FIND_AMONG ||
	    !(mappers_maps_have(p->maps->at, p->maps->len, b, f, ret) ||
	      mappers_maps_have(p->maps->noted, p->maps->noted_len, b, f, ret)))
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

struct files_mapper mappers_find(void *ctx, const struct files_mapper_search *s)
{
	const struct host *h = ctx;
	struct files_mapper best = { 0 };
	unsigned best_rank = 0;
	uint64_t best_ns = 0;

	for (struct process *p = h->by_pid; p; p = p->hh.next) {
		const unsigned rank = rank_of(p, s);
		struct files_mapper m = { 0 };

		if (rank < best_rank || (rank == best_rank && p->sampled_ns <= best_ns) || !rank ||
		    !is_mapper(p, s->backing, s->file, &m))
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

size_t mappers_list(struct host *h, const struct file *f, struct files_mapper *ret, size_t most)
{
	const struct files_mapper_search any = { .file = f };
	size_t n = 0;

	ret[0] = mappers_find(h, &any);
	if (!ret[0].pid)
		return 0;
	n = 1;
	for (struct process *p = h->by_pid; p && n < most; p = p->hh.next) {
		struct files_mapper m = { 0 };
		bool known = !p->sampled;

		/* The first process may be listed twice, so that the numbers of the others stay the
		 * same. */
		for (size_t i = 1; i < n; i++)
			known |= ret[i].owner == p->pub.owner;
		if (!known && is_mapper(p, NULL, f, &m))
			ret[n++] = m;
	}
	return n;
}
