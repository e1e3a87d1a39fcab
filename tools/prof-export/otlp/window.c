/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/window.h"

#include <errno.h>
#include <stdlib.h>
#include "common/base/bytes/numbers.h"
#include "tools/prof-export/model/definitions/epoch.h"
#include "tools/prof-export/model/label.h"
#include "tools/prof-export/otlp/arrange.h"
#include "tools/prof-export/otlp/framing.h"
#include "tools/prof-export/otlp/otlp.pb-c.h"
#include "tools/prof-export/otlp/resource.h"

/* Upper bound for the encoding around the bytes that a message contains, or for a timestamp. */
#define REQUEST_BYTES 64
#define RESOURCE_BYTES 320
#define PROFILE_BYTES 128
#define SAMPLE_BYTES 64
#define LABEL_BYTES 5
#define TICK_BYTES 8
#define VALUE_BYTES 10

int window_begin(struct window *w, struct pool *pool, size_t max, enum reporting_receiver receiver)
{
	*w = (struct window){ .pool = pool, .max = max, .size = REQUEST_BYTES, .source_count = 1 };
	int r = dictionary_begin(&w->dictionary, pool, max);

	locations_init(&w->locations, &w->dictionary, receiver);
	return r;
}

void window_done(struct window *w)
{
	struct pool *p = w->pool;

	if (!p)
		return;
	locations_done(&w->locations);
	dictionary_done(&w->dictionary);
	POOL_ARRAY_FREE(p, &w->resources);
	POOL_ARRAY_FREE(p, &w->packed);
	POOL_ARRAY_FREE(p, &w->samples);
	POOL_ARRAY_FREE(p, &w->ticks);
	POOL_ARRAY_FREE(p, &w->values);
	table_strings_done(&w->labels, p);
	table_ids_done(&w->label_lists, p);
	table_index_done(&w->process_index, p);
	table_index_done(&w->resource_index, p);
	table_index_done(&w->sample_index, p);
	buf_done(&w->text);
	*w = (struct window){ 0 };
}

void window_forget(struct window *w)
{
	if (!w->pool)
		return;
	locations_forget(&w->locations);
	table_ids_done(&w->label_lists, w->pool);
}

void window_widen(struct window *w, size_t max)
{
	w->max = max;
	w->dictionary.max = max > w->size ? max - w->size : 0;
}

/* Reserves n bytes of the request, which reduces the room of the dictionary. */
static int take_room(struct window *w, size_t n)
{
	if (w->max < w->size || n > w->max - w->size || w->dictionary.size > w->max - w->size - n)
		return -ENOBUFS;
	w->size += n;
	w->dictionary.max = w->max - w->size;
	return 0;
}

/* --- sources --- */

/* Adds the name s, or `other` if s is empty. */
static int add_name(struct window *w, struct str s, const char *other, uint32_t *ret)
{
	int r = label_escape(&w->text, s.len ? s : str_from(other));

	if (!r)
		r = dictionary_string(
			&w->dictionary,
			(struct str){ .data = (char *)w->text.data, .len = (uint32_t)w->text.len },
			ret);
	buf_reset(&w->text);
	return r;
}

static bool same_source(const struct window_source *a, const struct window_source *b)
{
	return a->shape == b->shape && a->type == b->type && a->unit == b->unit &&
	       a->period_type == b->period_type && a->period_unit == b->period_unit &&
	       a->period == b->period;
}

/* Finds or adds a source. -ENOBUFS: there are too many. */
static int put_source(struct window *w, const struct window_source *s, uint32_t *ret)
{
	uint32_t i = 0;

	while (i < w->source_count && !same_source(&w->sources[i], s))
		i++;
	if (i == WINDOW_SOURCES)
		return -ENOBUFS;
	if (i == w->source_count)
		w->sources[w->source_count++] = *s;
	*ret = i;
	return 0;
}

/* Names a source whose samples are counted. Each sample stands for a period of cpu time or of an
 * event. */
static int name_counted(struct window *w, bool cpu, struct str event, struct str unit,
			struct window_source *s)
{
	int r = add_name(w, STR_LIT("samples"), "", &s->type);

	if (!r)
		r = add_name(w, STR_LIT("count"), "", &s->unit);
	if (!r)
		r = add_name(w, cpu ? STR_LIT("cpu") : event, "events", &s->period_type);
	return r ? r : add_name(w, unit, cpu ? "nanoseconds" : "count", &s->period_unit);
}

/* Names a source whose samples have values of their own. Backends recognize off-cpu time by the
 * name of its type, and only if it has no period. */
static int name_valued(struct window *w, struct str event, struct str unit, bool off_cpu,
		       struct window_source *s)
{
	int r = add_name(w, off_cpu ? STR_LIT("off_cpu") : event, "events", &s->type);

	if (!r)
		r = add_name(w, unit, "count", &s->unit);
	s->period_type = off_cpu ? 0 : s->type;
	s->period_unit = off_cpu ? 0 : s->unit;
	s->period = off_cpu ? 0 : s->period ? s->period : 1;
	return r;
}

/* Finds the source of a sample, and the sample's value in it. */
static int get_source(struct window *w, const struct model *m, const struct model_sample *s,
		      uint32_t *ret, uint64_t *ret_value)
{
	const struct model_header *h = model_header(m);
	const bool cpu = !h->event.len || str_eq(h->unit, STR_LIT("nanoseconds"));
	struct window_source source = { .shape = s->count > 1 ? WINDOW_BOTH : WINDOW_TIMES };
	int r;

	*ret_value = s->count;
	if (s->source == MODEL_NONE) {
		w->period = w->period ? w->period : model_period(m);
		source.period = w->period;
		if (source.shape == WINDOW_TIMES && w->sources[0].type) {
			*ret = 0;
			return 0;
		}
		r = name_counted(w, cpu, h->event, cpu ? STR_LIT("nanoseconds") : h->unit, &source);
		if (!r && source.shape == WINDOW_TIMES) {
			w->sources[0] = source;
			*ret = 0;
			return 0;
		}
		return r ? r : put_source(w, &source, ret);
	}
	const struct annotations_source *from = &model_annotations(m)->sources.data[s->source];
	const struct str event = model_string(m, from->event), unit = model_string(m, from->unit);

	source.period = from->period;
	if (from->kind == MSG_SOURCE_CPU || from->kind == MSG_SOURCE_EVENTS) {
		r = name_counted(w, from->kind == MSG_SOURCE_CPU, event, unit, &source);
		source.period = source.period ? source.period : 1;
	} else {
		source.shape = WINDOW_BOTH;
		*ret_value = s->value;
		r = name_valued(w, event, unit, from->kind == MSG_SOURCE_OFF_CPU, &source);
	}
	return r ? r : put_source(w, &source, ret);
}

/* --- resources --- */

struct span window_packed(const struct window *w, uint32_t resource)
{
	const struct window_resource *r = &w->resources.data[resource];

	return (struct span){ .data = w->packed.data + r->at, .len = r->len };
}

static bool has_attributes(const struct window *w, uint32_t resource, struct span packed)
{
	const struct span known = window_packed(w, resource);

	return known.len == packed.len &&
	       (!packed.len || !memcmp(known.data, packed.data, packed.len));
}

/* Returns the first resource with these attributes, or TABLE_NONE. */
static uint32_t find_resource(const struct window *w, struct span packed)
{
	const uint32_t hash = table_hash(packed.data, packed.len);
	size_t cursor = SIZE_MAX;
	uint32_t i;

	do
		i = table_index_next(&w->resource_index, hash, &cursor);
	while (i != TABLE_NONE && !has_attributes(w, i, packed));
	return i;
}

/* Replaces the attributes of resource i. Returns 0, or -ENOBUFS, after which it keeps the old
 * ones. */
static int set_attributes(struct window *w, uint32_t i, struct span packed)
{
	struct window_resource *r = &w->resources.data[i];

	if (!POOL_ARRAY_ROOM(w->pool, &w->packed, packed.len + 1) || take_room(w, packed.len) ||
	    table_index_add(&w->resource_index, w->pool, table_hash(packed.data, packed.len), i))
		return -ENOBUFS;
	r->at = (uint32_t)w->packed.len;
	r->len = (uint32_t)packed.len;
	if (packed.len)
		memcpy(w->packed.data + w->packed.len, packed.data, packed.len);
	w->packed.len += packed.len;
	return 0;
}

static int add_resource(struct window *w, struct window_resource r, struct span packed,
			uint32_t *ret)
{
	if (!POOL_ARRAY_ROOM(w->pool, &w->resources, 1) || take_room(w, RESOURCE_BYTES))
		return -ENOBUFS;
	const uint32_t i = (uint32_t)w->resources.len;

	w->resources.data[i] = r;
	const int e = set_attributes(w, i, packed);

	if (!e) {
		w->resources.len++;
		*ret = i;
	}
	return e;
}

/* Finds or adds the resource of a process, by its attributes. */
static int get_resource(struct window *w, struct span packed, uint32_t *ret)
{
	*ret = find_resource(w, packed);
	return *ret != TABLE_NONE
		       ? 0
		       : add_resource(w, (struct window_resource){ .len = 0 }, packed, ret);
}

static uint32_t find_process(const struct window *w, const struct window_process *p)
{
	const uint32_t hash = table_hash(p, sizeof(*p));
	size_t cursor = SIZE_MAX;
	uint32_t i;

	do
		i = table_index_next(&w->process_index, hash, &cursor);
	while (i != TABLE_NONE && memcmp(&w->resources.data[i].process, p, sizeof(*p)) != 0);
	return i;
}

static struct window_process key_of(const struct epoch_process *p)
{
	return p ? (struct window_process){ p->pid, p->start_ns, p->execs }
		 : (struct window_process){ 0 };
}

static int get_process(struct window *w, const struct model *m, const struct epoch_process *p,
		       uint32_t *ret)
{
	const struct window_resource new = { .process = key_of(p) };

	*ret = find_process(w, &new.process);
	if (*ret != TABLE_NONE)
		return 0;
	int r = resource_process(&w->text, m, p);

	if (!r)
		r = add_resource(w, new, buf_span(&w->text), ret);
	buf_reset(&w->text);
	return r ? r
		 : table_index_add(&w->process_index, w->pool,
				   table_hash(&new.process, sizeof(new.process)), *ret);
}

void window_process(struct window *w, const struct model *m, const struct epoch_process *p)
{
	const struct window_process key = key_of(p);
	const uint32_t i = w->pool ? find_process(w, &key) : TABLE_NONE;

	if (i == TABLE_NONE)
		return;
	/* If there is no room, the resource keeps its old attributes. */
	if (!resource_process(&w->text, m, p) && !has_attributes(w, i, buf_span(&w->text)))
		(void)set_attributes(w, i, buf_span(&w->text));
	buf_reset(&w->text);
}

/* --- labels --- */

static struct str text_from(const struct window *w, size_t at)
{
	return (struct str){ .data = (const char *)w->text.data + at,
			     .len = (uint32_t)(w->text.len - at) };
}

/* Adds a label as an attribute. *ret is 0 if its key is one of those that each sample has
 * anyway. */
static int add_label(struct window *w, const struct model *m, const struct annotations_label *l,
		     uint32_t *ret)
{
	static const char *const ours[] = { "thread.name", "thread.id", "cpu.logical_number" };
	const struct str value = model_string(m, l->value);
	int r = label_escape(&w->text, model_string(m, l->key));
	bool is_ours = false;

	*ret = 0;
	for (size_t i = 0; !r && i < sizeof(ours) / sizeof(ours[0]); i++)
		is_ours |= str_eq(text_from(w, 0), str_from(ours[i]));
	const size_t at = w->text.len;

	if (!r)
		r = label_escape(&w->text, value);
	if (!r && !is_ours)
		r = dictionary_label(
			&w->dictionary,
			(struct str){ .data = (const char *)w->text.data, .len = (uint32_t)at },
			text_from(w, at), numbers_signed(l->number), ret);
	buf_reset(&w->text);
	return r;
}

static int compare_numbers(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Sorts a set of attributes and returns its number, from 1 on; 0: the set is empty. */
static int put_set(struct window *w, uint32_t *set, uint32_t n, uint32_t *ret)
{
	uint32_t number = 0;

	*ret = 0;
	if (!n)
		return 0;
	qsort(set, n, sizeof(*set), compare_numbers);
	const int r = table_strings_intern(
		&w->labels, w->pool,
		(struct str){ .data = (const char *)set, .len = (uint32_t)(n * sizeof(*set)) },
		&number);

	*ret = number + 1;
	return r;
}

/* Returns the number of the set of attributes for a list of labels. */
static int add_labels(struct window *w, const struct model *m, uint32_t list, uint32_t *ret)
{
	uint32_t set[WINDOW_LABELS], n, count = 0;
	const uint32_t *labels = annotations_list(model_annotations(m), list, &n);
	int r = 0;

	for (uint32_t i = 0; !r && i < n && count < WINDOW_LABELS; i++) {
		uint32_t attribute = 0, k = 0;

		r = add_label(w, m, &model_annotations(m)->labels.data[labels[i]], &attribute);
		/* If a key occurs more than once, its first label counts. */
		while (k < count && !dictionary_same_key(&w->dictionary, set[k], attribute))
			k++;
		if (!r && attribute && k == count)
			set[count++] = attribute;
	}
	return r ? r : put_set(w, set, count, ret);
}

static int get_labels(struct window *w, const struct model *m, uint32_t list, uint32_t *ret)
{
	const uint64_t key = list + 1ull;
	const uint32_t known = list == MODEL_NONE ? 0 : table_ids_get(&w->label_lists, key);

	*ret = known;
	if (known != TABLE_NONE)
		return 0;
	const int r = add_labels(w, m, list, ret);

	return r ? r : table_ids_add(&w->label_lists, w->pool, key, *ret);
}

uint32_t window_labels(const struct window *w, uint32_t set, uint32_t ret[static WINDOW_LABELS])
{
	const struct str s = set ? table_strings_get(&w->labels, set - 1) : (struct str){ 0 };

	if (s.len)
		memcpy(ret, s.data, s.len);
	return s.len / (uint32_t)sizeof(*ret);
}

static int get_link(struct window *w, const struct model *m, uint32_t link, uint32_t *ret)
{
	Otlp__Link l = OTLP__LINK__INIT;

	if (link == MODEL_NONE)
		return 0;
	struct annotations_link *from = &model_annotations(m)->links.data[link];

	l.trace_id = (ProtobufCBinaryData){ .data = from->trace, .len = sizeof(from->trace) };
	l.span_id = (ProtobufCBinaryData){ .data = from->span, .len = sizeof(from->span) };
	return dictionary_message(&w->dictionary, DICTIONARY_LINKS, &l.base, ret);
}

/* --- samples --- */

static int get_sample(struct window *w, const struct window_sample *key, uint32_t *ret)
{
	const uint32_t hash = table_hash(key, sizeof(*key));
	size_t cursor = SIZE_MAX;
	uint32_t i;

	for (i = table_index_next(&w->sample_index, hash, &cursor); i != TABLE_NONE;
	     i = table_index_next(&w->sample_index, hash, &cursor))
		if (!memcmp(&w->samples.data[i], key, sizeof(*key))) {
			*ret = i;
			return 0;
		}
	uint32_t labels[WINDOW_LABELS];
	int r = take_room(w, SAMPLE_BYTES + LABEL_BYTES * window_labels(w, key->labels, labels) +
				     (key->source ? PROFILE_BYTES : 0));

	if (r)
		return r;
	i = (uint32_t)w->samples.len;
	if (!POOL_ARRAY_ROOM(w->pool, &w->samples, 1) ||
	    table_index_add(&w->sample_index, w->pool, hash, i))
		return -ENOBUFS;
	w->samples.data[w->samples.len++] = *key;
	*ret = i;
	return 0;
}

static int add_tick(struct window *w, uint32_t sample, uint64_t time_ns, uint64_t value)
{
	const bool valued = w->sources[w->samples.data[sample].source].shape == WINDOW_BOTH;

	if (!POOL_ARRAY_ROOM(w->pool, &w->ticks, 1) ||
	    (valued && !POOL_ARRAY_ROOM(w->pool, &w->values, 1)) ||
	    take_room(w, TICK_BYTES + (valued ? VALUE_BYTES : 0)))
		return -ENOBUFS;
	w->ticks.data[w->ticks.len++] = (struct window_tick){ .time_ns = time_ns,
							      .sample = sample,
							      .value = (uint32_t)w->values.len };
	if (valued)
		w->values.data[w->values.len++] = value;
	return 0;
}

static int add_attributes(struct window *w, const struct model_sample *s,
			  uint32_t ret[static WINDOW_ATTRIBUTES])
{
	int r = 0;

	if (s->comm.len) {
		r = label_escape(&w->text, s->comm);
		if (!r)
			r = dictionary_text(&w->dictionary, "thread.name",
					    (struct str){ .data = (char *)w->text.data,
							  .len = (uint32_t)w->text.len },
					    &ret[0]);
		buf_reset(&w->text);
	}
	if (!r && s->process)
		r = dictionary_number(&w->dictionary, "thread.id", numbers_signed(s->tid), &ret[1]);
	return r ? r
		 : dictionary_number(&w->dictionary, "cpu.logical_number", numbers_signed(s->cpu),
				     &ret[2]);
}

int window_add(struct window *w, const struct model *m, const struct model_sample *s,
	       uint64_t time_ns, uint32_t most)
{
	struct window_sample key = { 0 };
	uint32_t sample;
	uint64_t value;
	int r = get_source(w, m, s, &key.source, &value);

	if (!r)
		r = get_process(w, m, s->process, &key.resource);
	if (!r)
		r = locations_stack(&w->locations, m, s, most, &key.stack);
	if (!r)
		r = add_attributes(w, s, key.attributes);
	if (!r)
		r = get_labels(w, m, s->labels, &key.labels);
	if (!r)
		r = get_link(w, m, s->link, &key.link);
	if (!r)
		r = get_sample(w, &key, &sample);
	if (!r)
		r = add_tick(w, sample, time_ns, value);
	return r;
}

int window_lose(struct window *w, const struct model *m, const char *reason, uint64_t n)
{
	struct window_sample s = { .value = numbers_u32(n) };
	struct window_source source = { .shape = WINDOW_VALUE };
	uint32_t sample;
	int r = resource_profiler(&w->text, m);

	if (!r)
		r = get_resource(w, buf_span(&w->text), &s.resource);
	buf_reset(&w->text);
	if (!r)
		r = name_valued(w, STR_LIT("lost"), STR_LIT("count"), false, &source);
	if (!r)
		r = put_source(w, &source, &s.source);
	char mark[64];
	const int len = snprintf(mark, sizeof(mark), "[lost: %s]", reason);

	if (!r)
		r = locations_mark(&w->locations,
				   (struct str){ .data = mark, .len = (uint32_t)len }, &s.stack);
	return r ? r : get_sample(w, &s, &sample);
}

/* --- parts --- */

static int copy_string(const struct window *w, struct window *part, struct dictionary_memo *memo,
		       uint32_t *string)
{
	return dictionary_copy(&part->dictionary, &w->dictionary, DICTIONARY_STRINGS, *string, memo,
			       string);
}

static int copy_source(const struct window *w, uint32_t from, struct window *part,
		       struct dictionary_memo *memo, uint32_t *ret)
{
	struct window_source s = w->sources[from];
	int r = copy_string(w, part, memo, &s.type);

	if (!r)
		r = copy_string(w, part, memo, &s.unit);
	if (!r)
		r = copy_string(w, part, memo, &s.period_type);
	if (!r)
		r = copy_string(w, part, memo, &s.period_unit);
	if (!r && from)
		return put_source(part, &s, ret);
	if (!r)
		part->sources[0] = s;
	*ret = 0;
	return r;
}

static int copy_attribute(const struct window *w, uint32_t from, struct window *part,
			  struct dictionary_memo *memo, uint32_t *ret)
{
	return dictionary_copy(&part->dictionary, &w->dictionary, DICTIONARY_ATTRIBUTES, from, memo,
			       ret);
}

static int copy_labels(const struct window *w, uint32_t from, struct window *part,
		       struct dictionary_memo *memo, uint32_t *ret)
{
	uint32_t set[WINDOW_LABELS];
	const uint32_t n = window_labels(w, from, set);
	int r = 0;

	for (uint32_t i = 0; !r && i < n; i++)
		r = copy_attribute(w, set[i], part, memo, &set[i]);
	return r ? r : put_set(part, set, n, ret);
}

static int copy_sample(const struct window *w, const struct window_sample *from,
		       struct window *part, struct dictionary_memo *memo, uint32_t *ret)
{
	struct window_sample s = { .value = from->value };
	int r = get_resource(part, window_packed(w, from->resource), &s.resource);

	if (!r)
		r = copy_source(w, from->source, part, memo, &s.source);
	if (!r)
		r = dictionary_copy(&part->dictionary, &w->dictionary, DICTIONARY_STACKS,
				    from->stack, memo, &s.stack);
	if (!r)
		r = dictionary_copy(&part->dictionary, &w->dictionary, DICTIONARY_LINKS, from->link,
				    memo, &s.link);
	for (int i = 0; !r && i < WINDOW_ATTRIBUTES; i++)
		r = copy_attribute(w, from->attributes[i], part, memo, &s.attributes[i]);
	if (!r)
		r = copy_labels(w, from->labels, part, memo, &s.labels);
	return r ? r : get_sample(part, &s, ret);
}

/* Copies the stacks of these ticks to the part. */
static int copy_stacks(const struct window *w, size_t from, size_t to, struct window *part,
		       struct dictionary_memo *memo)
{
	POOL_ARRAY(uint8_t) used = { 0 };
	const size_t n = dictionary_len(&w->dictionary, DICTIONARY_STACKS);
	int r = POOL_ARRAY_ROOM(part->pool, &used, n) ? 0 : -ENOBUFS;

	if (!r) {
		memset(used.data, 0, n);
		for (size_t i = from; i < to; i++)
			used.data[w->samples.data[w->ticks.data[i].sample].stack] = 1;
		r = arrange_stacks(&part->dictionary, &w->dictionary, used.data, memo);
	}
	POOL_ARRAY_FREE(part->pool, &used);
	return r;
}

int window_part(const struct window *w, size_t from, size_t to, struct window *part)
{
	struct dictionary_memo memo = { 0 };
	int r = copy_stacks(w, from, to, part, &memo);

	for (size_t i = from; !r && i < to; i++) {
		const struct window_tick *t = &w->ticks.data[i];
		uint32_t sample;

		r = copy_sample(w, &w->samples.data[t->sample], part, &memo, &sample);
		if (!r)
			r = add_tick(part, sample, t->time_ns,
				     t->value < w->values.len ? w->values.data[t->value] : 0);
	}
	dictionary_memo_done(&memo, part->pool);
	return r;
}
