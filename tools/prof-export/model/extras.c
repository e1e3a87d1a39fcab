/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/extras.h"

#include <errno.h>

#define EXTRAS_MAPPED 16 /* bytes of an id in a map, on average */

static int take_source(struct extras *e, struct definitions *d, const struct msg_source *m)
{
	struct extras_source s = { .kind = m->kind, .period = m->period };

	if (strings_intern(&d->strings, &d->pool, m->event, &s.event) ||
	    strings_intern(&d->strings, &d->pool, m->unit, &s.unit) ||
	    !ARRAY_ROOM(&d->pool, &e->sources, 1))
		return -ENOBUFS;
	e->sources.data[e->sources.len] = s;
	return ids_set(&e->source_ids, &d->pool, m->id, (uint32_t)e->sources.len++);
}

static int take_label(struct extras *e, struct definitions *d, const struct msg_label *m)
{
	struct extras_label l = { .number = m->number };

	if (!m->key.len)
		return 0;
	if (strings_intern(&d->strings, &d->pool, m->key, &l.key) ||
	    strings_intern(&d->strings, &d->pool, m->value, &l.value) ||
	    !ARRAY_ROOM(&d->pool, &e->labels, 1))
		return -ENOBUFS;
	e->labels.data[e->labels.len] = l;
	return ids_set(&e->label_ids, &d->pool, m->id, (uint32_t)e->labels.len++);
}

/* Leaves out unknown labels. */
static int take_labels(struct extras *e, struct definitions *d, const struct msg_labels *m)
{
	const size_t at = e->lists.len;
	uint32_t n = 0;

	if (!ARRAY_ROOM(&d->pool, &e->lists, m->list.len + 1ull))
		return -ENOBUFS;
	for (uint32_t i = 0; i < m->list.len; i++) {
		const uint32_t label = ids_get(&e->label_ids, m->list.data[i]);

		if (label != TABLE_NONE)
			e->lists.data[at + ++n] = label;
	}
	e->lists.data[at] = n;
	e->lists.len += n + 1;
	return ids_set(&e->labels_ids, &d->pool, m->id, (uint32_t)at);
}

static bool is_zero(struct span s)
{
	uint8_t any = 0;

	for (size_t i = 0; i < s.len; i++)
		any |= s.data[i];
	return !any;
}

static int take_link(struct extras *e, struct definitions *d, const struct msg_link *m)
{
	struct extras_link l;

	if (m->trace.len != sizeof(l.trace) || m->span.len != sizeof(l.span) || is_zero(m->trace) ||
	    is_zero(m->span))
		return 0;
	if (!ARRAY_ROOM(&d->pool, &e->links, 1))
		return -ENOBUFS;
	memcpy(l.trace, m->trace.data, sizeof(l.trace));
	memcpy(l.span, m->span.data, sizeof(l.span));
	e->links.data[e->links.len] = l;
	return ids_set(&e->link_ids, &d->pool, m->id, (uint32_t)e->links.len++);
}

int extras_take(struct extras *e, struct definitions *d, const struct msg *m)
{
	switch (m->id) {
	case MSG_SOURCE:
		return take_source(e, d, &m->source);
	case MSG_LABEL:
		return take_label(e, d, &m->label);
	case MSG_LABELS:
		return take_labels(e, d, &m->labels);
	default:
		return take_link(e, d, &m->link);
	}
}

void extras_done(struct extras *e, struct pool *p)
{
	ids_done(&e->source_ids, p);
	ids_done(&e->label_ids, p);
	ids_done(&e->labels_ids, p);
	ids_done(&e->link_ids, p);
	ARRAY_FREE(p, &e->sources);
	ARRAY_FREE(p, &e->labels);
	ARRAY_FREE(p, &e->lists);
	ARRAY_FREE(p, &e->links);
}

size_t extras_weight(const struct extras *e)
{
	return (ids_len(&e->source_ids) + ids_len(&e->label_ids) + ids_len(&e->labels_ids) +
		ids_len(&e->link_ids)) *
		       EXTRAS_MAPPED +
	       e->sources.len * sizeof(*e->sources.data) + e->labels.len * sizeof(*e->labels.data) +
	       e->lists.len * sizeof(*e->lists.data) + e->links.len * sizeof(*e->links.data);
}

const uint32_t *extras_list(const struct extras *e, uint32_t list, uint32_t *ret_n)
{
	*ret_n = list == TABLE_NONE ? 0 : e->lists.data[list];
	return *ret_n ? &e->lists.data[list + 1] : NULL;
}
