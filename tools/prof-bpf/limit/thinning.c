/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit/thinning.h"

#include <string.h>
#include "bpf/mix.h"
#include "common/base/bytes/numbers.h"
#include "tools/prof-bpf/limit/cpulimit.h"
#include "tools/prof-bpf/owners/owners.h"

#define PLACES (sizeof(((struct thinning *)NULL)->places) / sizeof(uint16_t))
#define MEAN_PART 4 /* weight of the latest step in the mean */
#define BYTES_MOST (1ull << 32)

static size_t home(uint64_t key)
{
	return (size_t)(key * MIX_GOLDEN >> 32) % PLACES;
}

/* Returns the owner's entry in owners; the last one if there is no other. */
static struct thinning_owner *place_of(struct thinning *d, uint64_t key)
{
	size_t at = home(key);

	for (; d->places[at]; at = (at + 1) % PLACES) {
		struct thinning_owner *w = &d->owners[d->places[at] - 1];

		if (w->key == key)
			return w;
	}
	if (d->len == THINNING_OWNERS)
		return &d->owners[THINNING_OWNERS];
	d->owners[d->len].key = key;
	d->places[at] = (uint16_t)++d->len;
	return &d->owners[d->len - 1];
}

static uint64_t random_below(struct thinning *d, uint64_t n)
{
	d->random = d->random * 1664525 + 1013904223;
	return (uint64_t)d->random * n >> 32;
}

/* The cost of this many samples of an owner. */
static uint64_t cost_of(const struct thinning_owner *w, uint32_t samples)
{
	return (uint64_t)samples * (THINNING_UNIT + w->extra);
}

bool thinning_drops(struct thinning *d, uint32_t uid, uint32_t container)
{
	struct thinning_owner *w = place_of(d, (uint64_t)container << 32 | uid);

	w->count++;
	/* The owner may have more samples than before. */
	const uint64_t has = numbers_larger(w->mean, cost_of(w, w->count));
	const bool ret = d->active && has > d->share && random_below(d, has) >= d->share;

	w->kept += !ret;
	return ret;
}

/* Takes the cost of an owner's bytes in a step that ends. What came with dropped samples is not
 * known, so this is a mean over those that were kept. */
static void take_extra(struct thinning_owner *w, const struct owners *owners)
{
	const struct owner_key key = { .uid = (uint32_t)w->key, .container = w->key >> 32 };
	const struct owner *known = owners_find(owners, key);
	const uint64_t caused = known ? known->caused : 0,
		       bytes = numbers_smaller(numbers_less(caused, w->caused), BYTES_MOST);

	w->caused = caused;
	if (!w->kept)
		return;
	w->extra = w->extra - w->extra / MEAN_PART +
		   bytes * THINNING_UNIT / THINNING_BYTES / w->kept / MEAN_PART;
	w->kept = 0;
}

/* Forgets owners who have had no samples for some time. */
static void forget_idle(struct thinning *d)
{
	uint32_t kept = 0;

	memset(d->places, 0, sizeof(d->places));
	for (uint32_t i = 0; i < d->len; i++) {
		size_t at = home(d->owners[i].key);

		if (!d->owners[i].mean)
			continue;
		d->owners[kept] = d->owners[i];
		while (d->places[at])
			at = (at + 1) % PLACES;
		d->places[at] = (uint16_t)++kept;
	}
	memset(&d->owners[kept], 0, (d->len - kept) * sizeof(d->owners[0]));
	d->len = kept;
}

/* Returns how many samples each owner may keep of all. Owners with fewer samples leave the rest to
 * the others. */
static uint64_t share_of(const struct thinning *d, uint64_t all)
{
	uint64_t share = 0;

	for (;;) {
		uint64_t left = all, among = 0;

		for (uint32_t i = 0; i <= THINNING_OWNERS; i++) {
			const uint64_t has = d->owners[i].mean;

			if (has > share)
				among++;
			else
				left -= numbers_smaller(has, left);
		}
		if (!among || left / among <= share)
			return share;
		share = left / among;
	}
}

void thinning_step(struct thinning *d, unsigned drop, uint32_t least, const struct owners *owners)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i <= THINNING_OWNERS; i++) {
		struct thinning_owner *w = &d->owners[i];

		if (i < d->len)
			take_extra(w, owners);
		w->mean = w->mean - w->mean / MEAN_PART + cost_of(w, w->count) / MEAN_PART;
		/* A quarter of a small mean would never become zero. */
		if (w->mean < THINNING_UNIT / 16)
			w->mean = 0;
		w->count = 0;
		all += w->mean;
	}
	forget_idle(d);
	const uint64_t keep = numbers_larger(all / CPULIMIT_ALL * (CPULIMIT_ALL - drop),
					     (uint64_t)least * THINNING_UNIT);

	d->active = drop != 0;
	d->share = share_of(d, keep);
}
