/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/dictionary.h"

#include <errno.h>
#include "tools/prof-export/otlp/framing.h"
#include "tools/prof-export/otlp/otlp.pb-c.h"

void dictionary_done(struct dictionary *d)
{
	for (unsigned t = DICTIONARY_MAPPINGS; d->pool && t < DICTIONARY_TABLES; t++) {
		POOL_ARRAY_FREE(d->pool, &d->tables[t].bytes);
		POOL_ARRAY_FREE(d->pool, &d->tables[t].ends);
		table_index_done(&d->tables[t].index, d->pool);
	}
	if (d->pool)
		POOL_ARRAY_FREE(d->pool, &d->scratch);
	*d = (struct dictionary){ 0 };
}

size_t dictionary_len(const struct dictionary *d, enum dictionary_table table)
{
	return d->tables[table].ends.len;
}

struct span dictionary_get(const struct dictionary *d, enum dictionary_table table, uint32_t i)
{
	const struct dictionary_entries *e = &d->tables[table];
	const uint32_t from = i ? e->ends.data[i - 1] : 0;

	return (struct span){ .data = e->bytes.data + from, .len = e->ends.data[i] - from };
}

static int add(struct dictionary *d, enum dictionary_table table, struct span entry, uint32_t *ret)
{
	struct dictionary_entries *e = &d->tables[table];
	const uint32_t hash = table_hash(entry.data, entry.len);
	const size_t size = framing_size(entry.len);
	size_t cursor = SIZE_MAX;
	uint32_t i;

	for (i = table_index_next(&e->index, hash, &cursor); i != TABLE_NONE;
	     i = table_index_next(&e->index, hash, &cursor)) {
		const struct span known = dictionary_get(d, table, i);

		if (known.len == entry.len &&
		    (!entry.len || !memcmp(known.data, entry.data, entry.len))) {
			*ret = i;
			return 0;
		}
	}
	i = (uint32_t)e->ends.len;
	/* Allocate one more byte, so that even an empty table has an address. */
	if (size > d->max - d->size || !POOL_ARRAY_ROOM(d->pool, &e->bytes, entry.len + 1) ||
	    !POOL_ARRAY_ROOM(d->pool, &e->ends, 1) || table_index_add(&e->index, d->pool, hash, i))
		return -ENOBUFS;
	if (entry.len)
		memcpy(e->bytes.data + e->bytes.len, entry.data, entry.len);
	e->bytes.len += entry.len;
	e->ends.data[e->ends.len++] = (uint32_t)e->bytes.len;
	d->size += size;
	*ret = i;
	return 0;
}

int dictionary_begin(struct dictionary *d, struct pool *pool, size_t max)
{
	uint32_t empty;
	int r = 0;

	*d = (struct dictionary){ .pool = pool, .max = max };
	for (unsigned t = DICTIONARY_MAPPINGS; !r && t < DICTIONARY_TABLES; t++)
		r = add(d, t, (struct span){ 0 }, &empty);
	return r;
}

int dictionary_message(struct dictionary *d, enum dictionary_table table, const ProtobufCMessage *m,
		       uint32_t *ret)
{
	const size_t n = protobuf_c_message_get_packed_size(m);

	if (!POOL_ARRAY_ROOM(d->pool, &d->scratch, n + 1))
		return -ENOBUFS;
	protobuf_c_message_pack(m, d->scratch.data);
	return add(d, table, (struct span){ .data = d->scratch.data, .len = n }, ret);
}

int dictionary_string(struct dictionary *d, struct str s, uint32_t *ret)
{
	return add(d, DICTIONARY_STRINGS,
		   (struct span){ .data = (const uint8_t *)s.data, .len = s.len }, ret);
}

static int add_attribute(struct dictionary *d, uint32_t key, Otlp__AnyValue *value, uint32_t *ret)
{
	Otlp__KeyValueAndUnit a = OTLP__KEY_VALUE_AND_UNIT__INIT;

	a.key_strindex = (int32_t)key;
	a.value = value;
	return dictionary_message(d, DICTIONARY_ATTRIBUTES, &a.base, ret);
}

static int add_text(struct dictionary *d, uint32_t key, struct str value, uint32_t *ret)
{
	Otlp__AnyValue v;

	otlp__any_value__init(&v);
	v.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	v.string_value = (ProtobufCBinaryData){ .data = (uint8_t *)value.data, .len = value.len };
	return add_attribute(d, key, &v, ret);
}

static int add_number(struct dictionary *d, uint32_t key, int64_t value, uint32_t *ret)
{
	Otlp__AnyValue v;

	otlp__any_value__init(&v);
	v.value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
	v.int_value = value;
	return add_attribute(d, key, &v, ret);
}

/* Gives the string of a constant key. */
static int get_key(struct dictionary *d, const char *key, uint32_t *ret)
{
	unsigned i = 0;

	while (i < DICTIONARY_KEYS && d->keys[i].text && d->keys[i].text != key)
		i++;
	if (i < DICTIONARY_KEYS && d->keys[i].text) {
		*ret = d->keys[i].string;
		return 0;
	}
	const int r = dictionary_string(d, str_from(key), ret);

	if (!r && i < DICTIONARY_KEYS)
		d->keys[i] = (struct dictionary_key){ .text = key, .string = *ret };
	return r;
}

int dictionary_text(struct dictionary *d, const char *key, struct str value, uint32_t *ret)
{
	uint32_t string;
	const int r = get_key(d, key, &string);

	return r ? r : add_text(d, string, value, ret);
}

int dictionary_number(struct dictionary *d, const char *key, int64_t value, uint32_t *ret)
{
	uint32_t string;
	const int r = get_key(d, key, &string);

	return r ? r : add_number(d, string, value, ret);
}

int dictionary_label(struct dictionary *d, struct str key, struct str text, int64_t number,
		     uint32_t *ret)
{
	uint32_t string;
	const int r = dictionary_string(d, key, &string);

	if (r)
		return r;
	return text.len ? add_text(d, string, text, ret) : add_number(d, string, number, ret);
}

/* The encoded number of the key, which is an attribute's first field. */
static struct span key_bytes(struct span attribute)
{
	size_t n = 1;

	while (n < attribute.len && attribute.data[n] & 0x80)
		n++;
	return (struct span){ .data = attribute.data, .len = n + 1 };
}

bool dictionary_same_key(const struct dictionary *d, uint32_t a, uint32_t b)
{
	if (!a || !b)
		return false;
	const struct span one = key_bytes(dictionary_get(d, DICTIONARY_ATTRIBUTES, a)),
			  two = key_bytes(dictionary_get(d, DICTIONARY_ATTRIBUTES, b));

	return one.len == two.len && !memcmp(one.data, two.data, one.len);
}

/* --- copies --- */

struct copy {
	struct dictionary *to;
	const struct dictionary *from;
	struct dictionary_memo *memo;
	int error;
};

static void copy_entry(struct copy *c, enum dictionary_table table, int32_t *index)
{
	uint32_t i = 0;

	if (!c->error)
		c->error = dictionary_copy(c->to, c->from, table, (uint32_t)*index, c->memo, &i);
	*index = (int32_t)i;
}

static void copy_list(struct copy *c, enum dictionary_table table, int32_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		copy_entry(c, table, &list[i]);
}

/* Replaces the numbers in the message by those of the other dictionary. */
static void translate(struct copy *c, enum dictionary_table table, ProtobufCMessage *m)
{
	switch (table) {
	case DICTIONARY_MAPPINGS: {
		Otlp__Mapping *mapping = (Otlp__Mapping *)m;

		copy_entry(c, DICTIONARY_STRINGS, &mapping->filename_strindex);
		copy_list(c, DICTIONARY_ATTRIBUTES, mapping->attribute_indices,
			  mapping->n_attribute_indices);
		break;
	}
	case DICTIONARY_LOCATIONS: {
		Otlp__Location *location = (Otlp__Location *)m;

		copy_entry(c, DICTIONARY_MAPPINGS, &location->mapping_index);
		for (size_t i = 0; i < location->n_lines; i++)
			copy_entry(c, DICTIONARY_FUNCTIONS, &location->lines[i]->function_index);
		copy_list(c, DICTIONARY_ATTRIBUTES, location->attribute_indices,
			  location->n_attribute_indices);
		break;
	}
	case DICTIONARY_FUNCTIONS: {
		Otlp__Function *function = (Otlp__Function *)m;

		copy_entry(c, DICTIONARY_STRINGS, &function->name_strindex);
		copy_entry(c, DICTIONARY_STRINGS, &function->filename_strindex);
		break;
	}
	case DICTIONARY_ATTRIBUTES:
		copy_entry(c, DICTIONARY_STRINGS, &((Otlp__KeyValueAndUnit *)m)->key_strindex);
		break;
	default: {
		Otlp__Stack *stack = (Otlp__Stack *)m;

		copy_list(c, DICTIONARY_LOCATIONS, stack->location_indices,
			  stack->n_location_indices);
	}
	}
}

static int copy_new(struct copy *c, enum dictionary_table table, struct span entry, uint32_t *ret)
{
	static const ProtobufCMessageDescriptor *const types[DICTIONARY_TABLES] = {
		[DICTIONARY_MAPPINGS] = &otlp__mapping__descriptor,
		[DICTIONARY_LOCATIONS] = &otlp__location__descriptor,
		[DICTIONARY_FUNCTIONS] = &otlp__function__descriptor,
		[DICTIONARY_ATTRIBUTES] = &otlp__key_value_and_unit__descriptor,
		[DICTIONARY_STACKS] = &otlp__stack__descriptor,
	};

	if (!types[table])
		return add(c->to, table, entry, ret);
	ProtobufCMessage *m = protobuf_c_message_unpack(types[table], NULL, entry.len, entry.data);

	if (!m)
		return -ENOMEM;
	translate(c, table, m);
	const int r = c->error ? c->error : dictionary_message(c->to, table, m, ret);

	protobuf_c_message_free_unpacked(m, NULL);
	return r;
}

void dictionary_memo_done(struct dictionary_memo *memo, struct pool *pool)
{
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++)
		pool_free(pool, memo->tables[t].data, &memo->tables[t].cap,
			  sizeof(*memo->tables[t].data));
	*memo = (struct dictionary_memo){ 0 };
}

int dictionary_note(struct dictionary *to, const struct dictionary *from,
		    enum dictionary_table table, uint32_t i, struct dictionary_memo *memo,
		    uint32_t as)
{
	struct dictionary_numbers *n = &memo->tables[table];
	const size_t before = n->cap, len = dictionary_len(from, table);
	uint32_t *data = pool_grow(to->pool, n->data, &n->cap, len, sizeof(*data));

	if (!data)
		return -ENOBUFS;
	if (n->cap > before)
		memset(data + before, 0, (n->cap - before) * sizeof(*data));
	n->data = data;
	n->data[i] = as + 1;
	return 0;
}

int dictionary_copy(struct dictionary *to, const struct dictionary *from,
		    enum dictionary_table table, uint32_t i, struct dictionary_memo *memo,
		    uint32_t *ret)
{
	struct copy c = { .to = to, .from = from, .memo = memo };
	const struct dictionary_numbers *n = &memo->tables[table];

	if (i < n->cap && n->data[i]) {
		*ret = n->data[i] - 1;
		return 0;
	}
	int r = copy_new(&c, table, dictionary_get(from, table, i), ret);

	return r ? r : dictionary_note(to, from, table, i, memo, *ret);
}
