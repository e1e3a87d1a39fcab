/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of a process: pairs of a key and a text, in the order of their first appearance.
 * Each process has a block of memory of its own, which is freed when it ends: attributes of
 * different processes are seldom equal.
 */
#ifndef PROF_EXPORT_MODEL_DEFINITIONS_ATTRIBUTES_H
#define PROF_EXPORT_MODEL_DEFINITIONS_ATTRIBUTES_H

#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"
#include "tools/prof-export/model/definitions/pool.h"

#define ATTRIBUTES_MAX (64u << 10) /* bytes of one process */

/* Zero-initialise. */
struct attributes {
	POOL_ARRAY(uint8_t) bytes;
};

/* Sets the text of a key. Key and text have at most 65,535 bytes each; an empty text removes the
 * key. Returns 0, or -ENOBUFS at either ceiling. */
int attributes_set(struct attributes *a, struct pool *p, struct str key, struct str value);
void attributes_done(struct attributes *a, struct pool *p);

/* Returns all attributes, for attributes_next. Borrowed until the next attributes_set. */
static inline struct span attributes_all(const struct attributes *a)
{
	return (struct span){ .data = a->bytes.data, .len = a->bytes.len };
}
/* Removes the first attribute from *rest and returns it. Returns false if none is left. */
bool attributes_next(struct span *rest, struct str *ret_key, struct str *ret_value);

#endif
