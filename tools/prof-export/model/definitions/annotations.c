/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/definitions/annotations.h"

#include <errno.h>

#define EXTRAS_MAPPED 16 /* bytes of an id in a map, on average */
/* A definition that is ignored: its id is known, but stands for nothing. */
#define IGNORED (TABLE_NONE - 1)

static int take_source(struct annotations *e, struct definitions *d, const struct msg_source *m)
{
	struct annotations_source s = { .kind = m->kind, .period = m->period };

	if (table_strings_intern(&d->strings, &d->pool, m->event, &s.event) ||
	    table_strings_intern(&d->strings, &d->pool, m->unit, &s.unit) ||
	    !POOL_ARRAY_ROOM(&d->pool, &e->sources, 1))
		return -ENOBUFS;
	e->sources.data[e->sources.len] = s;
	return table_ids_set(&e->source_ids, &d->pool, m->id, (uint32_t)e->sources.len++);
}

static int take_label(struct annotations *e, struct definitions *d, const struct msg_label *m)
{
	struct annotations_label l = { .number = m->number };

	if (!m->key.len)
		return table_ids_set(&e->label_ids, &d->pool, m->id, IGNORED);
	if (table_strings_intern(&d->strings, &d->pool, m->key, &l.key) ||
	    table_strings_intern(&d->strings, &d->pool, m->value, &l.value) ||
	    !POOL_ARRAY_ROOM(&d->pool, &e->labels, 1))
		return -ENOBUFS;
	e->labels.data[e->labels.len] = l;
	return table_ids_set(&e->label_ids, &d->pool, m->id, (uint32_t)e->labels.len++);
}

/* A list with an undefined label is undefined itself. */
static int take_labels(struct annotations *e, struct definitions *d, const struct msg_labels *m)
{
	const size_t at = e->lists.len;
	uint32_t n = 0;

	if (!POOL_ARRAY_ROOM(&d->pool, &e->lists, m->list.len + 1ull))
		return -ENOBUFS;
	for (uint32_t i = 0; i < m->list.len; i++) {
		const uint32_t label = table_ids_get(&e->label_ids, m->list.data[i]);

		if (label == TABLE_NONE)
			return 0;
		if (label != IGNORED)
			e->lists.data[at + ++n] = label;
	}
	e->lists.data[at] = n;
	e->lists.len += n + 1;
	return table_ids_set(&e->labels_ids, &d->pool, m->id, (uint32_t)at);
}

static bool is_zero(struct span s)
{
	uint8_t any = 0;

	for (size_t i = 0; i < s.len; i++)
		any |= s.data[i];
	return !any;
}

static int take_link(struct annotations *e, struct definitions *d, const struct msg_link *m)
{
	struct annotations_link l;

	if (m->trace.len != sizeof(l.trace) || m->span.len != sizeof(l.span) || is_zero(m->trace) ||
	    is_zero(m->span))
		return table_ids_set(&e->link_ids, &d->pool, m->id, IGNORED);
	if (!POOL_ARRAY_ROOM(&d->pool, &e->links, 1))
		return -ENOBUFS;
	memcpy(l.trace, m->trace.data, sizeof(l.trace));
	memcpy(l.span, m->span.data, sizeof(l.span));
	e->links.data[e->links.len] = l;
	return table_ids_set(&e->link_ids, &d->pool, m->id, (uint32_t)e->links.len++);
}

int annotations_take(struct annotations *e, struct definitions *d, const struct msg *m)
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

void annotations_done(struct annotations *e, struct pool *p)
{
	table_ids_done(&e->source_ids, p);
	table_ids_done(&e->label_ids, p);
	table_ids_done(&e->labels_ids, p);
	table_ids_done(&e->link_ids, p);
	POOL_ARRAY_FREE(p, &e->sources);
	POOL_ARRAY_FREE(p, &e->labels);
	POOL_ARRAY_FREE(p, &e->lists);
	POOL_ARRAY_FREE(p, &e->links);
}

size_t annotations_weight(const struct annotations *e)
{
	return (table_ids_len(&e->source_ids) + table_ids_len(&e->label_ids) +
		table_ids_len(&e->labels_ids) + table_ids_len(&e->link_ids)) *
		       EXTRAS_MAPPED +
	       e->sources.len * sizeof(*e->sources.data) + e->labels.len * sizeof(*e->labels.data) +
	       e->lists.len * sizeof(*e->lists.data) + e->links.len * sizeof(*e->links.data);
}

/* Finds one id; 0 and what is ignored are none. Returns whether it is defined. */
static bool find(const struct table_ids *ids, uint64_t id, uint32_t *ret)
{
	const uint32_t at = table_ids_get(ids, id);

	*ret = at == IGNORED ? MODEL_NONE : at;
	return !id || at != TABLE_NONE;
}

enum annotations_verdict annotations_find(const struct annotations *e, const struct msg_sample *s,
					  bool plain, struct annotations_found *ret)
{
	const bool source = find(&e->source_ids, s->source, &ret->source),
		   labels = find(&e->labels_ids, plain ? 0 : s->labels, &ret->labels),
		   link = find(&e->link_ids, plain ? 0 : s->link, &ret->link);

	return !source ? ANNOTATIONS_NO_SOURCE : labels && link ? 0 : ANNOTATIONS_NO_EXTRAS;
}

const uint32_t *annotations_list(const struct annotations *e, uint32_t list, uint32_t *ret_n)
{
	*ret_n = list == TABLE_NONE ? 0 : e->lists.data[list];
	return *ret_n ? &e->lists.data[list + 1] : NULL;
}
