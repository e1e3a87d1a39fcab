/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of a request: tables in which each distinct entry is kept once. An entry is stored
 * as its packed message. So a table is packed while it grows, its size is always known, and equal
 * entries have equal bytes. Entry 0 of each table is the empty entry, which means "not set".
 *
 * All memory is charged to the pool. The dictionary also has a ceiling for its packed size.
 *
 * Source: ProfilesDictionary of opentelemetry/proto/profiles/v1development/profiles.proto.
 */
#ifndef PROF_EXPORT_OTLP_DICTIONARY_H
#define PROF_EXPORT_OTLP_DICTIONARY_H

#include <protobuf-c/protobuf-c.h>
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"
#include "tools/prof-export/model/definitions/table.h"

/* The field numbers of the tables. */
enum dictionary_table {
	DICTIONARY_MAPPINGS = 1,
	DICTIONARY_LOCATIONS,
	DICTIONARY_FUNCTIONS,
	DICTIONARY_LINKS,
	DICTIONARY_STRINGS,
	DICTIONARY_ATTRIBUTES,
	DICTIONARY_STACKS,
	DICTIONARY_TABLES,
};
#define DICTIONARY_KEYS 8

struct dictionary {
	struct pool *pool; /* borrowed */
	size_t size, max;  /* packed, in bytes */
	struct dictionary_entries {
		POOL_ARRAY(uint8_t) bytes;
		POOL_ARRAY(uint32_t) ends; /* end offsets of the entries, in bytes */
		struct table_index index;
	} tables[DICTIONARY_TABLES];
	POOL_ARRAY(uint8_t) scratch;
	/* Numbers of the constant keys of attributes, so that these are not searched each time. */
	struct dictionary_key {
		const char *text;
		uint32_t string;
	} keys[DICTIONARY_KEYS];
};

/* The numbers that entries of one dictionary have in another one. Zero-initialise. */
struct dictionary_memo {
	struct dictionary_numbers {
		uint32_t *data; /* by entry: its number plus 1; 0: not copied yet */
		size_t cap;
	} tables[DICTIONARY_TABLES];
};

/* Starts with the empty entries. Returns 0 or -ENOBUFS. dictionary_done frees the dictionary, also
 * after an error. */
int dictionary_begin(struct dictionary *d, struct pool *pool, size_t max);
void dictionary_done(struct dictionary *d);

/* Each finds or adds an entry and returns its number in *ret. Returns 0, or -ENOBUFS at either
 * ceiling. */
int dictionary_message(struct dictionary *d, enum dictionary_table table, const ProtobufCMessage *m,
		       uint32_t *ret);
int dictionary_string(struct dictionary *d, struct str s, uint32_t *ret);
/* Attributes. key: a constant, which is recognized by its address. */
int dictionary_text(struct dictionary *d, const char *key, struct str value, uint32_t *ret);
int dictionary_number(struct dictionary *d, const char *key, int64_t value, uint32_t *ret);
/* An attribute with any key. Its value is the number if the text is empty. */
int dictionary_label(struct dictionary *d, struct str key, struct str text, int64_t number,
		     uint32_t *ret);

/* Whether two attributes have the same key. */
bool dictionary_same_key(const struct dictionary *d, uint32_t a, uint32_t b);

/* The number of entries of the table. */
size_t dictionary_len(const struct dictionary *d, enum dictionary_table table);
/* Borrowed until the next addition. */
struct span dictionary_get(const struct dictionary *d, enum dictionary_table table, uint32_t i);

/* Copies entry i of `from` and all entries that it refers to. memo: the entries copied so far, to
 * be freed by dictionary_memo_done. Its memory is charged to the pool of `to`. Returns 0, -ENOBUFS
 * or -ENOMEM. */
int dictionary_copy(struct dictionary *to, const struct dictionary *from,
		    enum dictionary_table table, uint32_t i, struct dictionary_memo *memo,
		    uint32_t *ret);
/* Records in memo that entry i of `from` has the number `as` in `to`. Returns 0 or -ENOBUFS. */
int dictionary_note(struct dictionary *to, const struct dictionary *from,
		    enum dictionary_table table, uint32_t i, struct dictionary_memo *memo,
		    uint32_t as);
/* pool: that of `to`. */
void dictionary_memo_done(struct dictionary_memo *memo, struct pool *pool);

#endif
