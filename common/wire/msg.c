/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every struct of the table is a row of 8-byte aligned members in the table's order. So the code
 * finds a field by stepping over the members before it; the asserts below verify the layout.
 * msgpack-c packs messages. We unpack them ourselves, because that library allocates as much as an
 * array header claims (8 GiB for five bytes). Lists are stored in the scratch, whose size comes
 * from the table, never from the message.
 */
#include "common/wire/msg.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <msgpack.h>
#include <stdlib.h>
#include "common/base/bytes/hash.h"
#include "common/base/command/log.h"

#define MSG_IDS 64	  /* above all ids in the table */
#define MSG_MAX_FIELDS 64 /* of any message, including messages that we do not know */
#define MSG_SKIP_DEPTH 16 /* how deep lists and maps may nest in a field that we do not know */

enum field_type { FIELD_U64, FIELD_STR, FIELD_BIN, FIELD_LIST };
struct field {
	const char *name;
	uint32_t max;
	uint8_t type; /* enum field_type */
};
struct shape {
	const char *name; /* NULL: no such id */
	const struct field *fields;
	uint32_t len;	   /* number of fields */
	uint32_t list_max; /* numbers in all its lists together */
	enum msg_way way;
};

/* clang-format off */
#define MSG_BEGIN(NAME, name, id, way) static const struct field fields_##name[] = {
#define U64(field) { #field, 0, FIELD_U64 },
#define STR(field, max) { #field, max, FIELD_STR },
#define BIN(field, max) { #field, max, FIELD_BIN },
#define LIST(field, max) { #field, max, FIELD_LIST },
#define MSG_END(name) };
#include "common/wire/messages.def"

#define MSG_BEGIN(NAME, name, id, way) enum { list_max_##name = 0
#define U64(field)
#define STR(field, max)
#define BIN(field, max)
#define LIST(field, max) + (max)
#define MSG_END(name) };
#include "common/wire/messages.def"

static const struct shape shapes[MSG_IDS] = {
#define MSG_BEGIN(NAME, name, id, way) \
	[id] = { #name, fields_##name, sizeof(fields_##name) / sizeof(struct field), \
		 list_max_##name, MSG_##way },
#define U64(field)
#define STR(field, max)
#define BIN(field, max)
#define LIST(field, max)
#define MSG_END(name)
#include "common/wire/messages.def"
};

#define MSG_BEGIN(NAME, name, id, way) \
	static_assert(id > 0 && id < MSG_IDS && sizeof(struct msg_##name) == 0
#define U64(field) + sizeof(uint64_t)
#define STR(field, max) + sizeof(struct str)
#define BIN(field, max) + sizeof(struct span)
#define LIST(field, max) + sizeof(struct msg_list)
#define MSG_END(name) , "the members follow each other without a hole");
#include "common/wire/messages.def"

/* A message's largest size: 2 bytes around it, 5 for the field count, 9 a number, 5 a header. */
#define MSG_BEGIN(NAME, name, id, way) \
	static_assert(sizeof(fields_##name) / sizeof(struct field) <= MSG_MAX_FIELDS && 2 + 5
#define U64(field) + 9
#define STR(field, max) + 5 + (max)
#define BIN(field, max) + 5 + (max)
#define LIST(field, max) + 5 + 9 * (max)
#define MSG_END(name) <= MSG_MAX_SIZE, "a message fits MSG_MAX_SIZE");
#include "common/wire/messages.def"
/* clang-format on */

static_assert(offsetof(struct msg, hello) % 8 == 0, "the union is aligned for every member");
static_assert(sizeof(struct str) % 8 == 0 && sizeof(struct span) % 8 == 0 &&
		      sizeof(struct msg_list) % 8 == 0,
	      "no member is padded apart");

static const struct shape *shape_of(uint64_t id)
{
	return id < MSG_IDS && shapes[id].name ? &shapes[id] : NULL;
}

bool msg_travels(enum msg_id id, enum msg_way way)
{
	const struct shape *shape = shape_of(id);

	return shape && (shape->way & way);
}

static size_t field_size(uint8_t type)
{
	switch (type) {
	case FIELD_STR:
		return sizeof(struct str);
	case FIELD_BIN:
		return sizeof(struct span);
	case FIELD_LIST:
		return sizeof(struct msg_list);
	default:
		return sizeof(uint64_t);
	}
}

/* --- the schema --- */

/* Before the schema had a number, hello.schema was a hash of the table. Those tables lack only some
 * fields of schema 1, at the ends of messages. */
static const uint64_t hashed_schemas[] = {
	0x12631516b92365e8,
	0xdefb21acbfe98a1a,
	0x3c3c8bebda8f882a,
	0x52a2f6537b87f9e9,
};

bool msg_reads(uint64_t schema)
{
	bool hashed = false;

	for (size_t i = 0; i < sizeof(hashed_schemas) / sizeof(hashed_schemas[0]); i++)
		hashed |= schema == hashed_schemas[i];
	return schema == MSG_SCHEMA || hashed;
}

/* --- the build --- */

uint64_t msg_build(void)
{
	uint64_t h = hash_bytes(HASH_START, PROFPIPE_VERSION, sizeof(PROFPIPE_VERSION));

	for (uint32_t id = 0; id < MSG_IDS; id++) {
		const struct shape *shape = &shapes[id];

		if (!shape->name)
			continue;
		h = hash_bytes(h, &id, sizeof(id));
		h = hash_bytes(h, shape->name, strlen(shape->name) + 1);
		for (uint32_t i = 0; i < shape->len; i++) {
			const struct field *f = &shape->fields[i];

			h = hash_bytes(h, f->name, strlen(f->name) + 1);
			h = hash_bytes(h, &f->type, sizeof(f->type));
			h = hash_bytes(h, &f->max, sizeof(f->max));
		}
	}
	return h;
}

/* --- encoding --- */

static inline int put_bytes(void *data, const char *bytes, size_t n)
{
	struct buf *b = data;

	if (b->cap - b->len < n) {
		int r = buf_reserve(b, n);

		if (r)
			return r;
	}
	if (n) {
		memcpy(b->data + b->len, bytes, n);
		b->len += n;
	}
	return 0;
}

static int put_field(msgpack_packer *p, const struct field *f, const void *at)
{
	int r;

	switch (f->type) {
	case FIELD_STR: {
		const struct str *s = at;
		struct str cut = str_cut(*s, f->max);

		r = msgpack_pack_str(p, cut.len);
		return r ? r : msgpack_pack_str_body(p, cut.data, cut.len);
	}
	case FIELD_BIN: {
		const struct span *s = at;

		if (s->len > f->max)
			return -E2BIG;
		r = msgpack_pack_bin(p, s->len);
		return r ? r : msgpack_pack_bin_body(p, s->data, s->len);
	}
	case FIELD_LIST: {
		const struct msg_list *l = at;

		if (l->len > f->max)
			return -E2BIG;
		r = msgpack_pack_array(p, l->len);
		for (uint32_t i = 0; i < l->len && !r; i++)
			r = msgpack_pack_uint64(p, l->data[i]);
		return r;
	}
	default:
		return msgpack_pack_uint64(p, *(const uint64_t *)at);
	}
}

/* Whether a missing field would be decoded to the same value. */
static bool is_empty(const struct field *f, const void *at)
{
	switch (f->type) {
	case FIELD_STR:
		return !((const struct str *)at)->len;
	case FIELD_BIN:
		return !((const struct span *)at)->len;
	case FIELD_LIST:
		return !((const struct msg_list *)at)->len;
	default:
		return !*(const uint64_t *)at;
	}
}

/* The number of fields that must be sent: empty fields at the end are omitted. */
static uint32_t count_used(const struct shape *shape, const uint8_t *at)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < shape->len; i++) {
		if (!is_empty(&shape->fields[i], at))
			used = i + 1;
		at += field_size(shape->fields[i].type);
	}
	return used;
}

int msg_encode(struct buf *b, const struct msg *m)
{
	const struct shape *shape = shape_of(m->id);
	const uint8_t *at = (const uint8_t *)&m->hello;
	size_t start = b->len;
	msgpack_packer p;

	assert(shape);

	const uint32_t used = count_used(shape, at);

	msgpack_packer_init(&p, b, put_bytes);
	int r = msgpack_pack_array(&p, 2);

	if (!r)
		r = msgpack_pack_uint64(&p, m->id);
	if (!r)
		r = msgpack_pack_array(&p, used);
	for (uint32_t i = 0; i < used && !r; i++) {
		r = put_field(&p, &shape->fields[i], at);
		at += field_size(shape->fields[i].type);
	}
	if (r)
		b->len = start;
	return r;
}

/* --- decoding --- */

enum { KIND_UINT, KIND_STR, KIND_BIN, KIND_ARRAY };
struct head {
	uint8_t kind;
	uint64_t n; /* the number, or a length in bytes or members */
};

/* Takes the header of a value: its type, and number or length. Returns 0, MSG_SHORT, or
 * MSG_MALFORMED for types that no field has (nil, booleans, negative numbers, floats, maps,
 * extensions). Source: msgpack specification, "Formats". */
static inline int take_head(struct span *in, struct head *ret)
{
	if (!in->len)
		return MSG_SHORT;
	const uint8_t tag = in->data[0];
	size_t width;

	if (tag < 0x80) {
		*ret = (struct head){ KIND_UINT, tag };
		width = 0;
	} else if ((tag & 0xf0) == 0x90) {
		*ret = (struct head){ KIND_ARRAY, tag & 0x0f };
		width = 0;
	} else if ((tag & 0xe0) == 0xa0) {
		*ret = (struct head){ KIND_STR, tag & 0x1f };
		width = 0;
	} else if (tag >= 0xcc && tag <= 0xcf) {
		ret->kind = KIND_UINT;
		width = (size_t)1 << (tag - 0xcc);
	} else if (tag >= 0xd9 && tag <= 0xdb) {
		ret->kind = KIND_STR;
		width = (size_t)1 << (tag - 0xd9);
	} else if (tag >= 0xc4 && tag <= 0xc6) {
		ret->kind = KIND_BIN;
		width = (size_t)1 << (tag - 0xc4);
	} else if (tag == 0xdc || tag == 0xdd) {
		ret->kind = KIND_ARRAY;
		width = tag == 0xdc ? 2 : 4;
	} else {
		return MSG_MALFORMED;
	}
	if (in->len - 1 < width)
		return MSG_SHORT;
	if (width) {
		uint64_t n = 0;

		for (size_t i = 1; i <= width; i++)
			n = n << 8 | in->data[i];
		ret->n = n;
	}
	in->data += 1 + width;
	in->len -= 1 + width;
	return 0;
}

static inline int take_bytes(struct span *in, uint64_t n, struct span *ret)
{
	return n <= in->len && span_take(in, (size_t)n, ret) ? 0 : MSG_SHORT;
}

static inline int take_uint(struct span *in, uint64_t *ret)
{
	struct head h;
	int r = take_head(in, &h);

	if (r)
		return r;
	if (h.kind != KIND_UINT)
		return MSG_MALFORMED;
	*ret = h.n;
	return 0;
}

/* What follows a tag: a length of `width` bytes, then `fixed` bytes, then as many bytes as the
 * length says, or `members` times as many values. */
struct form {
	uint8_t width, fixed, members;
};

/* The forms of the tags from 0xc0 on. Source: msgpack specification, "Formats". */
static const struct form forms[32] = {
	[0x04] = { 1, 0, 0 },  { 2, 0, 0 }, { 4, 0, 0 },	      /* bin */
	[0x07] = { 1, 1, 0 },  { 2, 1, 0 }, { 4, 1, 0 },	      /* ext */
	[0x0a] = { 0, 4, 0 },  { 0, 8, 0 },			      /* float */
	[0x0c] = { 0, 1, 0 },  { 0, 2, 0 }, { 0, 4, 0 }, { 0, 8, 0 }, /* uint */
	[0x10] = { 0, 1, 0 },  { 0, 2, 0 }, { 0, 4, 0 }, { 0, 8, 0 }, /* int */
	[0x14] = { 0, 2, 0 },  { 0, 3, 0 }, { 0, 5, 0 }, { 0, 9, 0 }, /* fixext */
	[0x18] = { 0, 17, 0 }, { 1, 0, 0 }, { 2, 0, 0 }, { 4, 0, 0 }, /* fixext, str */
	[0x1c] = { 2, 0, 1 },  { 4, 0, 1 },			      /* array */
	[0x1e] = { 2, 0, 2 },  { 4, 0, 2 },			      /* map */
};

/* Skips a value, except the values in it, whose number is *ret_members. */
static int skip_value(struct span *in, uint64_t *ret_members)
{
	struct form form = { 0 };
	struct span part;
	uint64_t n = 0;

	if (!in->len)
		return MSG_SHORT;
	const uint8_t tag = in->data[0];

	if (tag == 0xc1)
		return MSG_MALFORMED;
	(void)span_take(in, 1, &part);
	if (tag >= 0xc0 && tag < 0xe0) {
		form = forms[tag - 0xc0];
	} else if ((tag & 0xe0) == 0xa0) {
		n = tag & 0x1f; /* str */
	} else if ((tag & 0xe0) == 0x80) {
		form.members = tag & 0x10 ? 1 : 2; /* array, map */
		n = tag & 0x0f;
	}
	if (take_bytes(in, form.width, &part))
		return MSG_SHORT;
	for (size_t i = 0; i < form.width; i++)
		n = n << 8 | part.data[i];
	if (n > MSG_MAX_SIZE)
		return MSG_MALFORMED;
	*ret_members = n * form.members;
	return take_bytes(in, form.fixed + (form.members ? 0 : n), &part);
}

/* Skips a field that this build does not know. It may be any value within a message's limits. */
static int skip_field(struct span *in)
{
	uint64_t left[MSG_SKIP_DEPTH + 1] = { 1 }; /* values to skip, at each depth */
	size_t depth = 0;

	for (;;) {
		uint64_t members;

		while (depth && !left[depth])
			depth--;
		if (!left[depth])
			return 0;
		left[depth]--;
		const int r = skip_value(in, &members);

		if (r)
			return r;
		if (members && depth == MSG_SKIP_DEPTH)
			return MSG_MALFORMED;
		if (members)
			left[++depth] = members;
	}
}

static int take_list(struct span *in, uint64_t n, struct msg_scratch *scratch, struct msg_list *ret)
{
	uint64_t *to = scratch->data + scratch->len;

	for (uint64_t i = 0; i < n; i++) {
		int r = take_uint(in, &to[i]);

		if (r)
			return r;
	}
	*ret = (struct msg_list){ .data = to, .len = (uint32_t)n };
	scratch->len += n;
	return 0;
}

static inline int take_field(struct span *in, const struct field *f, struct msg_scratch *scratch,
			     void *at)
{
	static const uint8_t kinds[] = {
		[FIELD_U64] = KIND_UINT,
		[FIELD_STR] = KIND_STR,
		[FIELD_BIN] = KIND_BIN,
		[FIELD_LIST] = KIND_ARRAY,
	};
	struct span part;
	struct head h;
	int r = take_head(in, &h);

	if (r)
		return r;
	if (h.kind != kinds[f->type])
		return MSG_MALFORMED;
	if (f->type == FIELD_U64) {
		*(uint64_t *)at = h.n;
		return 0;
	}
	if (h.n > f->max)
		return MSG_MALFORMED;
	if (f->type == FIELD_LIST)
		return take_list(in, h.n, scratch, at);
	r = take_bytes(in, h.n, &part);
	if (r)
		return r;
	if (f->type == FIELD_STR)
		*(struct str *)at = (struct str){ .data = (const char *)part.data,
						  .len = (uint32_t)part.len };
	else
		*(struct span *)at = part;
	return 0;
}

/* Reserves room for all lists of one message at once, so that lists do not move while the message
 * is decoded. */
static int scratch_start(struct msg_scratch *s, size_t most)
{
	s->len = 0;
	if (most <= s->cap)
		return 0;
	uint64_t *data = realloc(s->data, most * sizeof(*data));

	if (!data)
		return -ENOMEM;
	s->data = data;
	s->cap = most;
	return 0;
}

/* Takes all fields. `shape` describes the known ones. */
static int take_fields(struct span *in, uint64_t len, const struct shape *shape,
		       struct msg_scratch *scratch, struct msg *m)
{
	const uint32_t known = shape ? shape->len : 0;
	uint8_t *at = (uint8_t *)&m->hello;

	scratch->skipped = len > known ? len - known : 0;
	for (uint64_t i = 0; i < known && i < len; i++) {
		const int r = take_field(in, &shape->fields[i], scratch, at);

		if (r)
			return r;
		at += field_size(shape->fields[i].type);
	}
	for (uint64_t i = known; i < len; i++) {
		const int r = skip_field(in);

		if (r)
			return r;
	}
	return 0;
}

int msg_decode(struct span *in, struct msg_scratch *scratch, struct msg *ret)
{
	struct span rest = *in;
	struct head outer, fields;
	uint64_t id;

	/* No valid message is larger, so do not wait for more bytes. */
	if (rest.len > MSG_MAX_SIZE)
		rest.len = MSG_MAX_SIZE;
	const struct span limited = rest;
	int r = take_head(&rest, &outer);

	if (!r && (outer.kind != KIND_ARRAY || outer.n != 2))
		return MSG_MALFORMED;
	if (!r)
		r = take_uint(&rest, &id);
	if (!r)
		r = take_head(&rest, &fields);
	if (!r &&
	    (fields.kind != KIND_ARRAY || fields.n > MSG_MAX_FIELDS || !id || id > UINT32_MAX))
		return MSG_MALFORMED;
	const struct shape *shape = r ? NULL : shape_of(id);
	struct msg m = { 0 };

	if (shape)
		r = scratch_start(scratch, shape->list_max);
	if (!r)
		r = take_fields(&rest, fields.n, shape, scratch, &m);
	if (r == MSG_SHORT && limited.len == MSG_MAX_SIZE)
		return MSG_MALFORMED;
	if (r)
		return r;
	in->data += limited.len - rest.len;
	in->len -= limited.len - rest.len;
	if (!shape)
		return MSG_UNKNOWN;
	m.id = (enum msg_id)id;
	*ret = m;
	return 0;
}

void msg_scratch_done(struct msg_scratch *s)
{
	free(s->data);
	*s = (struct msg_scratch){ 0 };
}
