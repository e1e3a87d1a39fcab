/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/window.h"

#include <errno.h>
#include "tools/prof-export/model/epoch.h"
#include "tools/prof-export/model/label.h"
#include "tools/prof-export/otlp/framing.h"
#include "tools/prof-export/otlp/resource.h"

/* At most what a message takes beside the bytes that it holds, and a timestamp. */
#define REQUEST_BYTES 64
#define RESOURCE_BYTES 320
#define SAMPLE_BYTES 64
#define TICK_BYTES 8

/* --- what samples count --- */

static int add_name(struct window *w, struct str s, uint32_t *ret)
{
	int r = label_escape(&w->resource, s);

	if (!r)
		r = dictionary_string(&w->dictionary,
				      (struct str){ .data = (char *)w->resource.data,
						    .len = (uint32_t)w->resource.len },
				      ret);
	buf_reset(&w->resource);
	return r;
}

/* As pprof has it: cpu time, or the stream's own event. */
static int add_types(struct window *w, const struct model *m)
{
	const struct model_header *h = model_header(m);
	const bool cpu = !h->event.len || str_eq(h->unit, STR_LIT("nanoseconds"));
	int r = add_name(w, STR_LIT("samples"), &w->types.samples);

	if (!r)
		r = add_name(w, STR_LIT("count"), &w->types.count);
	if (!r)
		r = add_name(w, cpu ? STR_LIT("cpu") : h->event, &w->types.event);
	if (!r)
		r = add_name(w, cpu ? STR_LIT("nanoseconds") : h->unit, &w->types.unit);
	return r;
}

int window_begin(struct window *w, struct pool *pool, size_t max, enum reporting_receiver receiver,
		 const struct model *m)
{
	*w = (struct window){ .pool = pool, .max = max, .size = REQUEST_BYTES };
	int r = dictionary_begin(&w->dictionary, pool, max);

	locations_init(&w->locations, &w->dictionary, receiver);
	w->period = model_period(m);
	return r;
}

void window_done(struct window *w)
{
	struct pool *p = w->pool;

	if (!p)
		return;
	locations_done(&w->locations);
	dictionary_done(&w->dictionary);
	ARRAY_FREE(p, &w->processes);
	ARRAY_FREE(p, &w->resources);
	ARRAY_FREE(p, &w->packed);
	ARRAY_FREE(p, &w->samples);
	ARRAY_FREE(p, &w->ticks);
	index_done(&w->process_index, p);
	index_done(&w->resource_index, p);
	index_done(&w->sample_index, p);
	buf_done(&w->resource);
	*w = (struct window){ 0 };
}

void window_forget(struct window *w)
{
	if (w->pool)
		locations_forget(&w->locations);
}

void window_widen(struct window *w, size_t max)
{
	w->max = max;
	w->dictionary.max = max > w->size ? max - w->size : 0;
}

/* Takes n bytes of the request. What the dictionary may still take shrinks by them. */
static int take_room(struct window *w, size_t n)
{
	if (w->max < w->size || n > w->max - w->size || w->dictionary.size > w->max - w->size - n)
		return -ENOBUFS;
	w->size += n;
	w->dictionary.max = w->max - w->size;
	return 0;
}

/* --- resources --- */

struct span window_packed(const struct window *w, uint32_t resource)
{
	const uint32_t from = resource ? w->resources.data[resource - 1].packed_end : 0;

	return (struct span){ .data = w->packed.data + from,
			      .len = w->resources.data[resource].packed_end - from };
}

static uint32_t hash_resource(struct span packed, bool lost)
{
	return table_hash(packed.data, packed.len) ^ lost;
}

static bool same_resource(const struct window *w, uint32_t i, struct span packed, bool lost)
{
	const struct span known = window_packed(w, i);

	return known.len == packed.len && w->resources.data[i].lost == lost &&
	       (!packed.len || !memcmp(known.data, packed.data, packed.len));
}

static int get_resource(struct window *w, struct span packed, bool lost, uint32_t *ret)
{
	const uint32_t hash = hash_resource(packed, lost);
	size_t cursor = SIZE_MAX;
	uint32_t i;

	while ((i = index_next(&w->resource_index, hash, &cursor)) != TABLE_NONE)
		if (same_resource(w, i, packed, lost)) {
			*ret = i;
			return 0;
		}
	int r = take_room(w, RESOURCE_BYTES + packed.len);

	if (r)
		return r;
	i = (uint32_t)w->resources.len;
	if (!ARRAY_ROOM(w->pool, &w->resources, 1) ||
	    !ARRAY_ROOM(w->pool, &w->packed, packed.len + 1) ||
	    index_add(&w->resource_index, w->pool, hash, i))
		return -ENOBUFS;
	if (packed.len)
		memcpy(w->packed.data + w->packed.len, packed.data, packed.len);
	w->packed.len += packed.len;
	w->resources.data[w->resources.len++] =
		(struct window_resource){ .lost = lost, .packed_end = (uint32_t)w->packed.len };
	*ret = i;
	return 0;
}

/* Its attributes are made once a window. */
static int get_process(struct window *w, const struct model *m, const struct epoch_process *p,
		       uint32_t *ret)
{
	const uint64_t key[] = { p ? p->pid : 0, p ? p->start_ns : 0, p ? p->execs : 0 };
	const uint32_t hash = table_hash(key, sizeof(key));
	size_t cursor = SIZE_MAX;
	uint32_t i;

	while ((i = index_next(&w->process_index, hash, &cursor)) != TABLE_NONE) {
		const struct window_process *known = &w->processes.data[i];

		if (known->pid != key[0] || known->start_ns != key[1] || known->execs != key[2])
			continue;
		*ret = known->resource;
		return 0;
	}
	i = (uint32_t)w->processes.len;
	if (!ARRAY_ROOM(w->pool, &w->processes, 1))
		return -ENOBUFS;
	int r = resource_process(&w->resource, m, p);

	if (!r)
		r = get_resource(w, buf_span(&w->resource), false, ret);
	buf_reset(&w->resource);
	if (!r)
		r = index_add(&w->process_index, w->pool, hash, i);
	if (!r)
		w->processes.data[w->processes.len++] = (struct window_process){ key[0], key[1],
										 key[2], *ret };
	return r;
}

/* --- samples --- */

static int get_sample(struct window *w, const struct window_sample *key, uint32_t *ret)
{
	const uint32_t hash = table_hash(key, sizeof(*key));
	size_t cursor = SIZE_MAX;
	uint32_t i;

	while ((i = index_next(&w->sample_index, hash, &cursor)) != TABLE_NONE)
		if (!memcmp(&w->samples.data[i], key, sizeof(*key))) {
			*ret = i;
			return 0;
		}
	int r = take_room(w, SAMPLE_BYTES);

	if (r)
		return r;
	i = (uint32_t)w->samples.len;
	if (!ARRAY_ROOM(w->pool, &w->samples, 1) || index_add(&w->sample_index, w->pool, hash, i))
		return -ENOBUFS;
	w->samples.data[w->samples.len++] = *key;
	*ret = i;
	return 0;
}

static int add_tick(struct window *w, uint32_t sample, uint64_t time_ns)
{
	if (!ARRAY_ROOM(w->pool, &w->ticks, 1) || take_room(w, TICK_BYTES))
		return -ENOBUFS;
	w->ticks.data[w->ticks.len++] = (struct window_tick){ .time_ns = time_ns,
							      .sample = sample };
	return 0;
}

static int64_t clamp(uint64_t n)
{
	return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

static int add_attributes(struct window *w, const struct model_sample *s,
			  uint32_t ret[static WINDOW_ATTRIBUTES])
{
	int r = 0;

	if (s->comm.len) {
		r = label_escape(&w->resource, s->comm);
		if (!r)
			r = dictionary_text(&w->dictionary, "thread.name",
					    (struct str){ .data = (char *)w->resource.data,
							  .len = (uint32_t)w->resource.len },
					    &ret[0]);
		buf_reset(&w->resource);
	}
	if (!r && s->process)
		r = dictionary_number(&w->dictionary, "thread.id", clamp(s->tid), &ret[1]);
	return r ? r
		 : dictionary_number(&w->dictionary, "cpu.logical_number", clamp(s->cpu), &ret[2]);
}

int window_add(struct window *w, const struct model *m, const struct model_sample *s,
	       uint64_t time_ns, uint32_t most)
{
	struct window_sample key = { 0 };
	uint32_t sample;
	int r = w->types.samples ? 0 : add_types(w, m);

	if (!r)
		r = get_process(w, m, s->process, &key.resource);
	if (!r)
		r = locations_stack(&w->locations, m, s, most, &key.stack);
	if (!r)
		r = add_attributes(w, s, key.attributes);
	if (!r)
		r = get_sample(w, &key, &sample);
	if (!r)
		r = add_tick(w, sample, time_ns);
	w->orphans |= r != 0;
	return r;
}

int window_lose(struct window *w, const struct model *m, const char *reason, uint64_t n)
{
	struct window_sample s = { .value = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX };
	uint32_t sample;
	int r = resource_profiler(&w->resource, m);

	if (!r)
		r = get_resource(w, buf_span(&w->resource), true, &s.resource);
	buf_reset(&w->resource);
	if (!r)
		r = add_name(w, STR_LIT("lost"), &w->types.lost);
	if (!r)
		r = add_name(w, STR_LIT("count"), &w->types.count);
	char mark[64];
	const int len = snprintf(mark, sizeof(mark), "[lost: %s]", reason);

	if (!r)
		r = locations_mark(&w->locations,
				   (struct str){ .data = mark, .len = (uint32_t)len }, &s.stack);
	return r ? r : get_sample(w, &s, &sample);
}

/* --- parts --- */

static int copy_sample(const struct window *w, const struct window_sample *from,
		       struct window *part, struct idmap *memo, uint32_t *ret)
{
	struct window_sample s = { .value = from->value };
	int r = get_resource(part, window_packed(w, from->resource),
			     w->resources.data[from->resource].lost, &s.resource);

	if (!r)
		r = dictionary_copy(&part->dictionary, &w->dictionary, DICTIONARY_STACKS,
				    from->stack, memo, &s.stack);
	for (int i = 0; !r && i < WINDOW_ATTRIBUTES; i++)
		r = dictionary_copy(&part->dictionary, &w->dictionary, DICTIONARY_ATTRIBUTES,
				    from->attributes[i], memo, &s.attributes[i]);
	return r ? r : get_sample(part, &s, ret);
}

int window_part(const struct window *w, size_t from, size_t to, struct window *part)
{
	const uint32_t types[] = { w->types.samples, w->types.count, w->types.event,
				   w->types.unit };
	uint32_t *const of_part[] = { &part->types.samples, &part->types.count, &part->types.event,
				      &part->types.unit };
	struct idmap memo = { 0 };
	int r = 0;

	part->period = w->period;
	for (size_t i = 0; !r && i < sizeof(types) / sizeof(types[0]); i++)
		r = dictionary_copy(&part->dictionary, &w->dictionary, DICTIONARY_STRINGS, types[i],
				    &memo, of_part[i]);
	for (size_t i = from; !r && i < to; i++) {
		const struct window_tick *t = &w->ticks.data[i];
		uint32_t sample;

		r = copy_sample(w, &w->samples.data[t->sample], part, &memo, &sample);
		if (!r)
			r = add_tick(part, sample, t->time_ns);
	}
	idmap_done(&memo, part->pool);
	return r;
}
