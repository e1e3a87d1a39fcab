/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Annotations: what a stream says about samples besides their stacks and threads: the event that
 * triggered them, their labels, and the trace spans they belong to. They are valid for one epoch. A
 * number here is an index into an array; MODEL_NONE is none.
 */
#ifndef PROF_EXPORT_MODEL_DEFINITIONS_ANNOTATIONS_H
#define PROF_EXPORT_MODEL_DEFINITIONS_ANNOTATIONS_H

#include "tools/prof-export/model/definitions/definitions.h"

struct annotations_source {
	uint64_t kind, period; /* as in the message */
	uint32_t event, unit;  /* strings */
};

struct annotations_label {
	uint32_t key, value; /* strings; if the value is empty, `number` is the value */
	uint64_t number;
};

struct annotations_link {
	uint8_t trace[16], span[8];
};

struct annotations {
	struct table_ids source_ids, label_ids, labels_ids, link_ids;
	POOL_ARRAY(struct annotations_source) sources;
	POOL_ARRAY(struct annotations_label) labels;
	POOL_ARRAY(uint32_t)
	lists; /* lists of labels: each is a count, followed by that many labels */
	POOL_ARRAY(struct annotations_link) links;
};

/* Takes one of the four messages. The latest definition of an id replaces earlier ones. A label
 * without a key is ignored, and so is a link that is invalid by the Trace Context specification. A
 * list with an undefined label stays undefined.
 * All memory is charged to the definitions' pool. Returns 0, -EINVAL for id 0, or -ENOBUFS. */
int annotations_take(struct annotations *e, struct definitions *d, const struct msg *m);
void annotations_done(struct annotations *e, struct pool *p);
/* Returns the memory of the annotations in bytes. */
size_t annotations_weight(const struct annotations *e);

struct annotations_found {
	uint32_t source, labels, link; /* MODEL_NONE: none. source: the event of the header */
};
enum annotations_verdict {
	ANNOTATIONS_NO_SOURCE = 1, /* the source is undefined */
	ANNOTATIONS_NO_EXTRAS = 2, /* the source is defined, but not the labels or the link */
};
/* Finds the annotations of a sample. What is undefined is MODEL_NONE in *ret. plain: the sample has
 * no labels and no link, whatever it says. */
enum annotations_verdict annotations_find(const struct annotations *e, const struct msg_sample *s,
					  bool plain, struct annotations_found *ret);

/* Returns the labels of a list, borrowed, and sets *ret_n to their number. list: MODEL_NONE for no
 * label. */
const uint32_t *annotations_list(const struct annotations *e, uint32_t list, uint32_t *ret_n);

#endif
