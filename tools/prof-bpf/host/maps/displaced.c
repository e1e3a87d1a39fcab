/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/maps/displaced.h"

#include <stdlib.h>
#include "common/base/bytes/numbers.h"
#include "tools/prof-bpf/files/files.h"

struct part {
	uint64_t at, to;     /* user addresses */
	uint64_t start, end; /* file offsets */
	uint64_t first_ns;   /* from this time on it may be gone */
	uint64_t last_ns;    /* when something was last mapped there */
	uint32_t generation; /* the newest generation that still contains it */
	uint16_t slot;	     /* NO_SLOT: the file was never sampled, so no frame is in it */
};
#define NO_SLOT UINT16_MAX
/* Only the latest noted mappings are examined; a process may note any number. */
#define NOTED_MOST 32

struct displaced {
	unsigned n, next; /* next: index that is replaced next */
	struct part part[DISPLACED_MAX];
};

/* Whether both map the same bytes at the same place, as far as is known. */
static bool is_same(const struct map *a, const struct map *b)
{
	if (!a->backing || !b->backing || a->start - a->offset != b->start - b->offset)
		return false;
	return a->backing == b->backing ||
	       (a->backing->key.inode && a->backing->key.dev == b->backing->key.dev &&
		a->backing->key.inode == b->backing->key.inode);
}

/* Returns the slot of the file in samples. A file that is mapped again may have to be opened again,
 * and has no slot until then. */
static uint16_t slot_of(const struct files_backing *b)
{
	return !b ? 0 : b->file ? b->file->was_slot : b->was_slot;
}

/* Adds a part. Returns the generation of the part that it replaced, or 0. */
static uint32_t add(struct displaced *d, const struct part *add)
{
	uint32_t lost = 0;

	for (unsigned i = 0; i < d->n; i++) {
		const struct part *p = &d->part[i];

		if (p->slot == add->slot && p->generation == add->generation &&
		    p->start <= add->start && p->end >= add->end && p->at <= add->at &&
		    p->to >= add->to)
			return 0;
	}
	if (d->n == DISPLACED_MAX && d->part[d->next].slot != NO_SLOT)
		lost = d->part[d->next].generation;
	else if (d->n < DISPLACED_MAX)
		d->n++;
	d->part[d->next] = *add;
	d->next = (d->next + 1) % DISPLACED_MAX;
	return lost;
}

/* Whether it is known that [start, end) contains displaced mappings. */
static bool covers(const struct displaced *d, uint64_t start, uint64_t end)
{
	for (unsigned i = 0; d && i < d->n; i++) {
		if (d->part[i].at <= start && d->part[i].to >= end)
			return true;
	}
	return false;
}

/* Notes the part of m that `by` displaces. Returns as displaced_note does. */
static uint32_t displace(struct displaced **d, const struct map *m, const struct map *by,
			 const struct part *at)
{
	const uint16_t slot = slot_of(m->backing);
	const uint64_t start = numbers_larger(m->start, by->start),
		       end = numbers_smaller(m->end, by->end);

	if (is_same(m, by)) {
		if (slot)
			by->backing->was_slot = slot;
		return 0;
	}
	/* Anonymous code within a file's mapping is the file's text, moved to huge pages. */
	if (!by->backing && m->start < by->start && m->end > by->end)
		return 0;
	/* Without a slot, no sample was walked with the old mapping. But samples that wait for its
	 * rows must not be walked with the new one. */
	if (!slot && (!m->backing || covers(*d, start, end)))
		return 0;
	if (!*d)
		*d = calloc(1, sizeof(**d));
	if (!*d)
		return at->generation;

	struct part part = *at;

	part.start = m->offset + (start - m->start);
	part.end = m->offset + (end - m->start);
	part.at = start;
	part.to = end;
	part.slot = slot ? slot : NO_SLOT;
	return add(*d, &part);
}

uint32_t displaced_note(struct displaced **d, const struct maps *was, const struct map *by,
			uint64_t since_ns, uint64_t time_ns, uint32_t generation)
{
	const struct part at = { .first_ns = since_ns,
				 .last_ns = time_ns,
				 .generation = generation };
	uint32_t lost = 0;

	for (unsigned i = 0; *d && i < (*d)->n; i++) {
		struct part *p = &(*d)->part[i];

		if (by->start < p->to && by->end > p->at && time_ns > p->last_ns)
			p->last_ns = time_ns;
	}
	for (uint32_t i = maps_from(was, by->start); i < was->len && was->at[i].start < by->end;
	     i++) {
		const uint32_t r = displace(d, &was->at[i], by, &at);

		lost = r ? r : lost;
	}
	/* Mappings that arrived a moment ago are not in place yet. */
	for (uint32_t i = was->noted_len; i > 0 && was->noted_len - i < NOTED_MOST; i--) {
		const struct map *m = &was->noted[i - 1];

		if (m->start < by->end && m->end > by->start) {
			const uint32_t r = displace(d, m, by, &at);

			lost = r ? r : lost;
		}
	}
	return lost;
}

/* Whether the frame was walked with this part although the part was already gone. */
static bool is_in(const struct part *p, const struct sample *s, uint64_t frame)
{
	uint64_t at = frame & SAMPLE_FRAME_OFFSET_MASK;

	if (!(frame & SAMPLE_FRAME_EXACT))
		at--;
	return (sample_frame_slot(frame) >= SAMPLE_FRAME_TAKEN ? 0 : sample_frame_slot(frame)) ==
		       p->slot &&
	       at >= p->start && at < p->end && s->time_ns >= p->first_ns &&
	       (int32_t)(p->generation - s->generation) >= 0;
}

unsigned displaced_before(const struct displaced *d, const struct sample *s)
{
	const uint64_t *frames = sample_user_frames(s);

	for (unsigned i = 0; d && i < s->user_frames; i += sample_frame_words(frames[i])) {
		for (unsigned k = 0; k < d->n; k++) {
			if (is_in(&d->part[k], s, frames[i]))
				return i;
		}
	}
	return s->user_frames;
}

bool displaced_since(const struct displaced *d, uint64_t start, uint64_t end, uint64_t time_ns)
{
	for (unsigned i = 0; d && i < d->n; i++) {
		if (start < d->part[i].to && end > d->part[i].at && d->part[i].last_ns > time_ns)
			return true;
	}
	return false;
}

bool displaced_copy(const struct displaced *d, struct displaced **ret)
{
	struct displaced *mine = d ? malloc(sizeof(*mine)) : NULL;

	if (mine)
		*mine = *d;
	*ret = mine;
	return !d || mine;
}

void displaced_free(struct displaced *d)
{
	free(d);
}
