/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash tables of small numbers, charged to a pool. An index finds a definition by its content: it
 * stores numbers by hash, and its user compares the contents. `struct table_ids` finds our number
 * of a definition by its id in the stream. Both are seeded, so that a peer cannot choose keys that
 * collide. Zero-initialised tables are empty.
 */
#ifndef PROF_EXPORT_MODEL_DEFINITIONS_TABLE_H
#define PROF_EXPORT_MODEL_DEFINITIONS_TABLE_H

#include "common/base/bytes/str.h"
#include "tools/prof-export/model/definitions/pool.h"

#define TABLE_NONE UINT32_MAX

/* A hash of n bytes, different in every run. */
uint32_t table_hash(const void *data, size_t n);
uint64_t table_hash64(const void *data, size_t n);

struct table_index {
	uint32_t *slots; /* number + 1, 0 for empty */
	uint32_t *hashes;
	size_t cap, len; /* cap: a power of two, or 0 */
	/* Entries added after the pool stopped growth (pool.h); NULL: none. */
	struct table_index *late;
};

/* Returns the next number with this hash, and TABLE_NONE after the last. Start with *cursor =
 * SIZE_MAX. */
uint32_t table_index_next(const struct table_index *ix, uint32_t hash, size_t *cursor);
/* 0, -ENOBUFS. */
int table_index_add(struct table_index *ix, struct pool *p, uint32_t hash, uint32_t number);
void table_index_done(struct table_index *ix, struct pool *p);

struct table_ids {
	uint64_t *keys; /* 0 for empty */
	uint32_t *values;
	size_t cap, len;
	struct table_ids *late; /* as in struct table_index */
};

static inline size_t table_ids_len(const struct table_ids *m)
{
	return m->len + (m->late ? m->late->len : 0);
}

/* TABLE_NONE for an unknown id. */
uint32_t table_ids_get(const struct table_ids *m, uint64_t id);
/* Adds a new id. 0, -EINVAL for id 0, -ENOBUFS. */
int table_ids_add(struct table_ids *m, struct pool *p, uint64_t id, uint32_t value);
/* Like table_ids_add, but the id may exist already. */
int table_ids_set(struct table_ids *m, struct pool *p, uint64_t id, uint32_t value);
void table_ids_remove(struct table_ids *m, uint64_t id);
void table_ids_done(struct table_ids *m, struct pool *p);

/* Strings, each kept once, numbered from 0 in the order in which they came. */
struct table_strings {
	char *text;
	struct table_strings_entry {
		uint32_t at, len;
	} * entries;
	size_t text_len, text_cap, len, cap;
	struct table_index index;
};

/* 0, -ENOBUFS. */
int table_strings_intern(struct table_strings *s, struct pool *p, struct str value, uint32_t *ret);
/* Borrowed until the next table_strings_intern. */
static inline struct str table_strings_get(const struct table_strings *s, uint32_t i)
{
	return (struct str){ .data = s->text + s->entries[i].at, .len = s->entries[i].len };
}
void table_strings_done(struct table_strings *s, struct pool *p);

#endif
