/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of a process: texts by key, in the order in which they came first. They are one
 * piece of memory, which is freed when the process ends, because no two processes need have the
 * same.
 */
#ifndef PROF_EXPORT_MODEL_ATTRIBUTES_H
#define PROF_EXPORT_MODEL_ATTRIBUTES_H

#include "common/base/span.h"
#include "tools/prof-export/model/pool.h"

#define ATTRIBUTES_MAX (64u << 10) /* bytes of one process */

/* Zero-initialise. */
struct attributes {
	ARRAY(uint8_t) bytes;
};

/* Sets the text of a key, of at most 65,535 bytes each; an empty one removes it. 0, or -ENOBUFS at
 * either ceiling. */
int attributes_set(struct attributes *a, struct pool *p, struct str key, struct str value);
void attributes_done(struct attributes *a, struct pool *p);

/* All of them, for attributes_next. Borrowed until the next attributes_set. */
static inline struct span attributes_all(const struct attributes *a)
{
	return (struct span){ .data = a->bytes.data, .len = a->bytes.len };
}
/* Takes the next one off the front. False: none is left. */
bool attributes_next(struct span *rest, struct str *ret_key, struct str *ret_value);

#endif
