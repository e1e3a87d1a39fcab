/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/request.h"

#include <errno.h>
#include <zlib.h>
#include "common/base/bytes/numbers.h"
#include "tools/prof-export/otlp/framing.h"
#include "tools/prof-export/otlp/otlp.pb-c.h"

/* The numbers of repeated fields and of fields that contain them. */
enum {
	REQUEST_RESOURCE_PROFILES = 1,
	REQUEST_DICTIONARY = 2,
	RESOURCE_PROFILES_RESOURCE = 1,
	RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	RESOURCE_PROFILES_SCHEMA_URL = 3,
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_PROFILES_PROFILES = 2,
	PROFILE_SAMPLES = 2,
};

/* Parameters of zlib. Its default level takes a third more time and saves less than 1 %. A lower
 * GZIP_MEMORY makes blocks shorter, so that each of the tables gets codes of its own. Requests are
 * 4 % smaller than with the default of 8. */
#define GZIP_LEVEL 5
#define GZIP_WINDOW (15 + 16) /* 16: with the header of gzip */
#define GZIP_MEMORY 6

/* The schema of the attributes' names. */
#define SCHEMA_URL "https://opentelemetry.io/schemas/1.37.0"

void request_room_done(struct request_room *r)
{
	buf_done(&r->plain);
	buf_done(&r->gzip);
	buf_done(&r->profiles);
}

/* The order in which a window is packed: samples by profile, and timestamps by sample. A profile is
 * a pair of a resource and a source. */
struct order {
	POOL_ARRAY(uint32_t) samples; /* indices of samples, sorted by profile */
	/* By profile: index of its first sample; one more element at the end. */
	POOL_ARRAY(uint32_t) sample_of;
	/* Indices of ticks, sorted by sample, then in the order in which they came. */
	POOL_ARRAY(uint32_t) ticks;
	/* By sample: index of its first tick; one more element at the end. */
	POOL_ARRAY(uint32_t) time_of;
};

struct request_writer {
	const struct window *w;
	const struct request_times *t;
	struct pool *pool;
	struct request_room *room;
	struct order order;
	POOL_ARRAY(uint64_t) times; /* times of one sample */
	POOL_ARRAY(int64_t) values;
	int error;
};

#define ZEROS(pool, array, n) \
	({ \
		const bool room_ = POOL_ARRAY_ROOM(pool, array, n); \
		if (room_) { \
			memset((array)->data, 0, (n) * sizeof(*(array)->data)); \
			(array)->len = (n); \
		} \
		room_; \
	})

/* Turns counts into start indices. The count of key k is at k + 1. */
static void add_up(uint32_t *counts, size_t n)
{
	for (size_t i = 1; i < n; i++)
		counts[i] += counts[i - 1];
}

static uint32_t profile_of(const struct window *w, const struct window_sample *s)
{
	return s->resource * w->source_count + s->source;
}

/* Sorts both by counting. While items are placed, entry k + 1 is the index for the next item of key
 * k. Afterwards, entry k is the index of the first item of key k. */
static int sort(struct order *o, const struct window *w, struct pool *pool)
{
	const size_t profiles = w->resources.len * w->source_count, samples = w->samples.len,
		     ticks = w->ticks.len;

	if (!ZEROS(pool, &o->samples, samples + 1) || !ZEROS(pool, &o->sample_of, profiles + 2) ||
	    !ZEROS(pool, &o->ticks, ticks + 1) || !ZEROS(pool, &o->time_of, samples + 2))
		return -ENOBUFS;
	for (size_t i = 0; i < samples; i++)
		o->sample_of.data[profile_of(w, &w->samples.data[i]) + 2]++;
	for (size_t i = 0; i < ticks; i++)
		o->time_of.data[w->ticks.data[i].sample + 2]++;
	add_up(o->sample_of.data, profiles + 2);
	add_up(o->time_of.data, samples + 2);
	for (size_t i = 0; i < samples; i++)
		o->samples.data[o->sample_of.data[profile_of(w, &w->samples.data[i]) + 1]++] =
			(uint32_t)i;
	for (size_t i = 0; i < ticks; i++)
		o->ticks.data[o->time_of.data[w->ticks.data[i].sample + 1]++] = (uint32_t)i;
	return 0;
}

static void order_done(struct order *o, struct pool *p)
{
	POOL_ARRAY_FREE(p, &o->samples);
	POOL_ARRAY_FREE(p, &o->sample_of);
	POOL_ARRAY_FREE(p, &o->ticks);
	POOL_ARRAY_FREE(p, &o->time_of);
}

/* --- bytes --- */

static void put_head(struct request_writer *w, struct buf *b, unsigned field, size_t n)
{
	if (!w->error)
		w->error = framing_put_head(b, field, n);
}

static void put_bytes(struct request_writer *w, struct buf *b, struct span s)
{
	if (!w->error)
		w->error = buf_append(b, s.data, s.len);
}

static void put_field(struct request_writer *w, struct buf *b, unsigned field, struct span s)
{
	put_head(w, b, field, s.len);
	put_bytes(w, b, s);
}

static void put_message(struct request_writer *w, struct buf *b, const ProtobufCMessage *m)
{
	const size_t n = protobuf_c_message_get_packed_size(m);

	if (!w->error)
		w->error = buf_reserve(b, n);
	if (!w->error)
		b->len += protobuf_c_message_pack(m, b->data + b->len);
}

/* --- profiles --- */

static uint64_t wall(const struct request_writer *w, uint64_t mono_ns)
{
	return mono_ns + w->t->wall_offset_ns;
}

/* Collects the timestamps of sample i and their values. Returns their number. */
static size_t collect(struct request_writer *w, uint32_t i)
{
	const uint32_t from = w->order.time_of.data[i], n = w->order.time_of.data[i + 1] - from;

	w->times.len = w->values.len = 0;
	if (!w->error && (!POOL_ARRAY_ROOM(w->pool, &w->times, n + 1u) ||
			  !POOL_ARRAY_ROOM(w->pool, &w->values, n + 1u)))
		w->error = -ENOBUFS;
	for (uint32_t k = 0; !w->error && k < n; k++) {
		const struct window_tick *t = &w->w->ticks.data[w->order.ticks.data[from + k]];

		w->times.data[k] = wall(w, t->time_ns);
		w->values.data[k] = t->value < w->w->values.len
					    ? numbers_signed(w->w->values.data[t->value])
					    : 0;
	}
	return n;
}

static void put_sample(struct request_writer *w, uint32_t i)
{
	const struct window_sample *from = &w->w->samples.data[i];
	const enum window_shape shape = w->w->sources[from->source].shape;
	uint32_t labels[WINDOW_LABELS];
	const uint32_t n = window_labels(w->w, from->labels, labels);
	Otlp__Sample s = OTLP__SAMPLE__INIT;
	int32_t attributes[WINDOW_ATTRIBUTES + WINDOW_LABELS];
	int64_t value = from->value;

	s.stack_index = (int32_t)from->stack;
	s.link_index = (int32_t)from->link;
	s.attribute_indices = attributes;
	for (int k = 0; k < WINDOW_ATTRIBUTES; k++)
		if (from->attributes[k])
			attributes[s.n_attribute_indices++] = (int32_t)from->attributes[k];
	for (uint32_t k = 0; k < n; k++)
		attributes[s.n_attribute_indices++] = (int32_t)labels[k];
	s.n_timestamps_unix_nano = collect(w, i);
	s.timestamps_unix_nano = w->times.data;
	s.n_values = shape == WINDOW_BOTH ? s.n_timestamps_unix_nano : shape == WINDOW_VALUE;
	s.values = shape == WINDOW_BOTH ? w->values.data : &value;
	if (w->error)
		return;
	put_head(w, &w->room->profiles, PROFILE_SAMPLES, otlp__sample__get_packed_size(&s));
	put_message(w, &w->room->profiles, &s.base);
}

/* Always writes the type of the period, even if it has no name: a backend refuses profiles without
 * it. */
static void put_profile_head(struct request_writer *w, const struct window_source *from)
{
	Otlp__ValueType counted = OTLP__VALUE_TYPE__INIT, period = OTLP__VALUE_TYPE__INIT;
	Otlp__Profile p = OTLP__PROFILE__INIT;

	counted.type_strindex = (int32_t)from->type;
	counted.unit_strindex = (int32_t)from->unit;
	period.type_strindex = (int32_t)from->period_type;
	period.unit_strindex = (int32_t)from->period_unit;
	p.sample_type = &counted;
	p.period_type = &period;
	p.period = numbers_signed(from->period);
	p.time_unix_nano = wall(w, w->t->begin_ns);
	p.duration_nano = w->t->end_ns - w->t->begin_ns;
	put_message(w, &w->room->profiles, &p.base);
}

/* Appends profile i and its header to the profiles of its resource. */
static void put_profile(struct request_writer *w, uint32_t i)
{
	const uint32_t from = w->order.sample_of.data[i], to = w->order.sample_of.data[i + 1];
	struct buf *b = &w->room->profiles;
	const size_t at = b->len;

	if (from == to)
		return;
	put_profile_head(w, &w->w->sources[i % w->w->source_count]);
	for (uint32_t k = from; k < to; k++)
		put_sample(w, w->order.samples.data[k]);
	if (!w->error)
		w->error = framing_insert_head(b, at, SCOPE_PROFILES_PROFILES);
}

static void put_resource(struct request_writer *w, uint32_t i)
{
	static const char version[] = PROFPIPE_VERSION;
	static uint8_t name[] = "profpipe";
	const struct span packed = window_packed(w->w, i),
			  url = { .data = (const uint8_t *)SCHEMA_URL,
				  .len = sizeof(SCHEMA_URL) - 1 };
	struct buf *plain = &w->room->plain;
	Otlp__Scope scope = OTLP__SCOPE__INIT;

	buf_reset(&w->room->profiles);
	for (uint32_t k = 0; k < w->w->source_count; k++)
		put_profile(w, i * w->w->source_count + k);
	scope.name = (ProtobufCBinaryData){ .data = name, .len = sizeof(name) - 1 };
	scope.version = (ProtobufCBinaryData){ .data = (uint8_t *)version,
					       .len = sizeof(version) - 1 };

	const size_t scope_size = otlp__scope__get_packed_size(&scope),
		     profiles_size = framing_size(scope_size) + w->room->profiles.len;

	put_head(w, plain, REQUEST_RESOURCE_PROFILES,
		 framing_size(packed.len) + framing_size(profiles_size) + framing_size(url.len));
	put_field(w, plain, RESOURCE_PROFILES_RESOURCE, packed);
	put_head(w, plain, RESOURCE_PROFILES_SCOPE_PROFILES, profiles_size);
	put_head(w, plain, SCOPE_PROFILES_SCOPE, scope_size);
	put_message(w, plain, &scope.base);
	put_bytes(w, plain, buf_span(&w->room->profiles));
	put_field(w, plain, RESOURCE_PROFILES_SCHEMA_URL, url);
}

static void put_dictionary(struct request_writer *w)
{
	const struct dictionary *d = &w->w->dictionary;

	put_head(w, &w->room->plain, REQUEST_DICTIONARY, d->size);
	for (unsigned t = DICTIONARY_MAPPINGS; t < DICTIONARY_TABLES; t++) {
		const size_t n = dictionary_len(d, t);

		for (uint32_t i = 0; !w->error && i < n; i++)
			put_field(w, &w->room->plain, t, dictionary_get(d, t, i));
	}
}

int request_pack(const struct window *w, const struct request_times *t, struct pool *pool,
		 struct request_room *room, struct request *ret)
{
	struct request_writer writer = { .w = w, .t = t, .pool = pool, .room = room };

	buf_reset(&room->plain);
	writer.error = sort(&writer.order, w, pool);
	for (uint32_t i = 0; !writer.error && i < w->resources.len; i++)
		put_resource(&writer, i);
	put_dictionary(&writer);
	order_done(&writer.order, pool);
	POOL_ARRAY_FREE(pool, &writer.times);
	POOL_ARRAY_FREE(pool, &writer.values);
	if (!writer.error)
		*ret = (struct request){ .plain = buf_span(&room->plain), .samples = w->ticks.len };
	return writer.error;
}

int request_gzip(struct request_room *room, struct request *ret)
{
	z_stream z = { 0 };

	buf_reset(&room->gzip);
	if (buf_reserve(&room->gzip, REQUEST_PACKED_MAX) ||
	    deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	z.next_in = (uint8_t *)ret->plain.data;
	z.avail_in = (uInt)ret->plain.len;
	z.next_out = room->gzip.data;
	z.avail_out = REQUEST_PACKED_MAX;
	const bool whole = deflate(&z, Z_FINISH) == Z_STREAM_END;

	room->gzip.len = z.total_out;
	deflateEnd(&z);
	if (!whole)
		return REQUEST_TOO_LARGE;
	ret->gzip = buf_span(&room->gzip);
	return 0;
}
