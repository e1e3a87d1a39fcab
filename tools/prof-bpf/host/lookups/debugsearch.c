/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/lookups/debugsearch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "tools/prof-bpf/host/lookups/mappers.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/owners/owners.h"

#define ROOT_OF_HOST 1

struct root {
	uint32_t pid;	     /* 0: the host's root */
	struct owner *payer; /* holds a reference; NULL: no owner */
};

struct debug_search {
	struct host *host;
	opener_done *done;
	void *ctx;
	uint64_t ticket;
	struct opener_request q; /* its strings are in `text` */
	struct root roots[DEBUGSEARCH_ROOTS];
	size_t count, at;
	int status; /* the first status of earlier roots that is more than "not there" */
	struct debug_search *prev, *next;
	char text[];
};

static void search_free(struct debug_search *s)
{
	for (size_t i = 0; i < s->count; i++)
		owner_put(s->host->owners, s->roots[i].payer);
	free(s);
}

static void add_root(struct debug_search *s, uint32_t pid, struct owner *payer)
{
	s->roots[s->count++] = (struct root){ .pid = pid,
					      .payer = payer ? owner_get(payer) : NULL };
}

/* Returns the owner who is charged for the search below the host's root: among those who have the
 * file mapped, the one whose jobs make workers wait least. */
static struct owner *least_of(const struct files_mapper *m, size_t n)
{
	struct owner *least = NULL;

	for (size_t i = 0; i < n; i++) {
		struct owner *w = m[i].owner;

		if (!least || w->held[OWNER_OPENERS] < least->held[OWNER_OPENERS] ||
		    (w->held[OWNER_OPENERS] == least->held[OWNER_OPENERS] &&
		     w->held[OWNER_QUEUE] < least->held[OWNER_QUEUE]))
			least = w;
	}
	return least;
}

static void add_roots(struct debug_search *s, const struct file *f)
{
	struct files_mapper m[FILES_LISTED];
	const size_t n = mappers_list(s->host, f, m);

	static_assert(FILES_LISTED + 1 == DEBUGSEARCH_ROOTS,
		      "the last place is for the host's root");

	/* If there is no process, the host's root still has its own number. */
	add_root(s, n ? m[0].pid : 0, n ? m[0].owner : NULL);
	if (!n && s->at < ROOT_OF_HOST) {
		s->at = ROOT_OF_HOST;
		s->q.place = 0;
	}
	add_root(s, 0, n ? least_of(m, n) : f->owner);
	for (size_t i = 1; i < n; i++)
		add_root(s, m[i].pid, m[i].owner);
}

static struct debug_search *search_new(struct host *h, const struct file *f, struct span build_id,
				       struct str name, uint64_t place)
{
	const uint32_t path_len = f->pub.path_len;
	struct debug_search *s =
		calloc(1, sizeof(*s) + (size_t)path_len + 1 + name.len + 1 + build_id.len);

	if (!s)
		return NULL;
	char *path = s->text, *name_at = path + path_len + 1, *id_at = name_at + name.len + 1;

	memcpy(path, f->pub.path, path_len);
	if (name.len)
		memcpy(name_at, name.data, name.len);
	if (build_id.len)
		memcpy(id_at, build_id.data, build_id.len);
	s->host = h;
	s->q = (struct opener_request){
		.kind = !name.len      ? OPENER_BUILD_ID
			: build_id.len ? OPENER_ALT
				       : OPENER_DEBUGLINK,
		.sampled = true,
		.path = { .data = path, .len = path_len },
		.name = { .data = name_at, .len = name.len },
		.build_id = { .data = (const uint8_t *)id_at, .len = build_id.len },
		.dev = f->pub.dev,
		.owner = f->pub.uid,
		.place = (uint32_t)(place % DEBUGSEARCH_PLACES),
	};
	s->at = (size_t)(place / DEBUGSEARCH_PLACES);
	s->status = -ENOENT;
	add_roots(s, f);
	return s;
}

static void looked(void *ctx, const struct opener_result *r);

/* Looks below the next root. Returns 0; otherwise there is none, and the result is the reason. */
static int look(struct debug_search *s)
{
	for (; s->at < s->count; s->at++, s->q.place = 0) {
		s->q.pid = s->roots[s->at].pid;
		s->q.payer = s->roots[s->at].payer;
		const int r = opener_submit(s->host->config.opener, &s->q, looked, s, &s->ticket);

		if (r != -ENOBUFS)
			return r;
		if (s->status == -ENOENT)
			s->status = r;
	}
	return s->status;
}

static void looked(void *ctx, const struct opener_result *r)
{
	struct debug_search *s = ctx;
	struct opener_result result = *r;

	s->ticket = 0;
	if (!r->status) {
		result.place += (uint32_t)s->at * DEBUGSEARCH_PLACES;
	} else if (!opener_lacks_descriptors(r->status)) {
		if (s->status == -ENOENT)
			s->status = r->status;
		s->at++;
		s->q.place = 0;
		const int next = look(s);

		if (!next)
			return;
		result = (struct opener_result){ .status = next, .fd = -1 };
	}
	DL_DELETE(s->host->debug_searches, s);
	s->done(s->ctx, &result);
	search_free(s);
}

int debugsearch_open(struct host *h, struct host_file *f, struct span build_id, struct str name,
		     uint64_t place, opener_done *done, void *ctx)
{
	if (place >= DEBUGSEARCH_ROOTS * DEBUGSEARCH_PLACES)
		return -ENOENT;
	struct debug_search *s = search_new(h, (struct file *)f, build_id, name, place);

	if (!s)
		return -ENOMEM;
	s->done = done;
	s->ctx = ctx;
	const int r = look(s);

	if (r)
		search_free(s);
	else
		DL_APPEND(h->debug_searches, s);
	return r;
}

void debugsearch_done(struct host *h)
{
	struct debug_search *s, *next;

	DL_FOREACH_SAFE(h->debug_searches, s, next) {
		DL_DELETE(h->debug_searches, s);
		opener_cancel(h->config.opener, s->ticket);
		search_free(s);
	}
}
