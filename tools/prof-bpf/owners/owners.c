/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/owners/owners.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>
#include "common/base/shares/fairshare.h"
#include "common/cell/deploy.h"
#include "tools/prof-bpf/owners/subids.h"

#define OTHERS 0 /* number of the owner that stands for all owners without an entry */

struct owners {
	struct owner others;
	struct owner *by_key, *unused;
	struct owner *numbered[OWNERS_MAX];
	uint32_t count;
	unsigned pace;
	const struct subids *subids; /* borrowed; NULL: none */
	uint64_t held[OWNER_RESOURCES];
};

int owners_new(struct owners **ret)
{
	struct owners *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->others.key = (struct owner_key){ .uid = UINT32_MAX, .container = UINT32_MAX };
	o->others.processes = 1;
	o->numbered[OTHERS] = &o->others;
	o->count = 1;
	o->pace = 1;
	*ret = o;
	return 0;
}

static void forget(struct owners *o, struct owner *w)
{
	HASH_DEL(o->by_key, w);
	DL_DELETE(o->unused, w);
	o->numbered[w->number] = NULL;
	o->count--;
	free(w);
}

void owners_free(struct owners *o)
{
	struct owner *w, *next;

	if (!o)
		return;
	HASH_ITER(hh, o->by_key, w, next) {
		HASH_DEL(o->by_key, w);
		free(w);
	}
	free(o);
}

const char *owner_text(const struct owner *w, char to[static OWNER_TEXT])
{
	const int n = snprintf(to, OWNER_TEXT,
			       deploy_is_tool(w->key.uid) ? "profpipe (user %u)" : "user %u",
			       (unsigned)w->key.uid);

	if (w->key.container)
		snprintf(to + n, (size_t)(OWNER_TEXT - n), " (container %u)",
			 (unsigned)w->key.container);
	return to;
}

struct owner *owner_get(struct owner *w)
{
	w->processes++;
	return w;
}

/* Makes an owner. It replaces an owner that nothing refers to and that holds nothing; until then,
 * that owner's spent time is kept. */
static struct owner *owner_new(struct owners *o, struct owner_key key)
{
	if (o->count == OWNERS_MAX && o->unused)
		forget(o, o->unused);
	struct owner *w = o->count < OWNERS_MAX ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return NULL;
	w->key = key;
	for (w->number = OTHERS + 1; o->numbered[w->number];)
		w->number++;
	o->numbered[w->number] = w;
	o->count++;
	HASH_ADD(hh, o->by_key, key, sizeof(w->key), w);
	return w;
}

void owners_fold(struct owners *o, const struct subids *s)
{
	o->subids = s;
}

struct owner_key owners_key(const struct owners *o, struct owner_key key)
{
	if (o->subids)
		key.uid = subids_owner(o->subids, key.uid);
	return key;
}

struct owner *owners_get(struct owners *o, struct owner_key key)
{
	struct owner *w;

	key = owners_key(o, key);
	HASH_FIND(hh, o->by_key, &key, sizeof(key), w);
	if (!w)
		w = owner_new(o, key);
	else if (!w->processes)
		DL_DELETE(o->unused, w);
	return owner_get(w ? w : &o->others);
}

const struct owner *owners_find(const struct owners *o, struct owner_key key)
{
	const struct owner *w;

	key = owners_key(o, key);
	HASH_FIND(hh, o->by_key, &key, sizeof(key), w);
	return w;
}

void owner_put(struct owners *o, struct owner *w)
{
	if (w && --w->processes == 0)
		DL_APPEND(o->unused, w);
}

struct owner *owners_numbered(const struct owners *o, uint32_t number)
{
	return number < OWNERS_MAX ? o->numbered[number] : NULL;
}

/* Each holding counts as a reference, so that the owner is not forgotten. */
void owner_hold(struct owners *o, struct owner *w, enum owner_resource t, uint64_t n)
{
	if (!n)
		return;
	if (!w->held[t]) {
		if (!w->processes)
			DL_DELETE(o->unused, w);
		w->processes++;
	}
	w->held[t] += n;
	o->held[t] += n;
}

void owner_release(struct owners *o, struct owner *w, enum owner_resource t, uint64_t n)
{
	if (n > w->held[t])
		n = w->held[t];
	if (!n)
		return;
	w->held[t] -= n;
	o->held[t] -= n;
	if (!w->held[t])
		owner_put(o, w);
}

uint64_t owners_held(const struct owners *o, enum owner_resource t)
{
	return o->held[t];
}

/* --- what is spent --- */

static uint64_t halved(uint64_t spent, uint64_t periods)
{
	return periods < 64 ? spent >> periods : 0;
}

void owner_spend(struct owner *w, enum owner_resource t, uint64_t ns, uint64_t now_ns)
{
	const uint64_t period = now_ns / OWNERS_HALVED_NS;

	for (unsigned i = 0; i < OWNER_RESOURCES && period > w->period; i++)
		w->spent_ns[i] = halved(w->spent_ns[i], period - w->period);
	if (period > w->period)
		w->period = period;
	w->spent_ns[t] += ns;
}

uint64_t owner_spent(const struct owner *w, enum owner_resource t, uint64_t now_ns)
{
	const uint64_t period = now_ns / OWNERS_HALVED_NS;

	return halved(w->spent_ns[t], period > w->period ? period - w->period : 0);
}

void owners_set_pace(struct owners *o, unsigned pace)
{
	o->pace = pace;
}

unsigned owners_pace(const struct owners *o)
{
	return o->pace;
}

void owner_refuse(struct owner *w, enum owner_resource t, uint64_t n)
{
	w->refused[t] += n;
}

/* --- losses --- */

void owners_lose(struct owners *o, struct owner_key key, enum owner_loss l)
{
	struct owner *w = owners_get(o, key);

	w->lost[l]++;
	owner_put(o, w);
}

void owners_tell_losses(struct owners *o,
			void (*tell)(void *ctx, const struct owner *w, enum owner_loss l,
				     uint64_t n),
			void *ctx)
{
	for (uint32_t i = 0, seen = 0; i < OWNERS_MAX && seen < o->count; i++) {
		struct owner *w = o->numbered[i];

		seen += w != NULL;
		for (unsigned l = 0; w && l < OWNER_LOSSES; l++) {
			const uint64_t n = w->lost[l];

			w->lost[l] = 0;
			if (n)
				tell(ctx, w, (enum owner_loss)l, n);
		}
	}
}

/* --- shares --- */

void owners_each(const struct owners *o, void (*fn)(void *ctx, const struct owner *w), void *ctx)
{
	for (uint32_t i = 0, seen = 0; i < OWNERS_MAX && seen < o->count; i++) {
		if (!o->numbered[i])
			continue;
		seen++;
		fn(ctx, o->numbered[i]);
	}
}

uint64_t owners_share(const struct owners *o, const struct owner *taker, enum owner_resource t,
		      uint64_t all)
{
	struct fairshare f = { .all = all, .taker = taker != NULL };

	do
		for (const struct owner *w = &o->others; w;
		     w = w == &o->others ? o->by_key : w->hh.next)
			if (w != taker)
				fairshare_show(&f, w->held[t]);
	while (fairshare_grows(&f));
	return f.share;
}

struct owner *owners_largest(const struct owners *o, enum owner_resource t)
{
	struct owner *most = NULL;

	for (uint32_t i = 0, seen = 0; i < OWNERS_MAX && seen < o->count; i++) {
		struct owner *w = o->numbered[i];

		seen += w != NULL;
		if (w && w->held[t] && (!most || w->held[t] > most->held[t]))
			most = w;
	}
	return most;
}
