/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extras: what a stream tells of samples beside their stacks and threads: what drove them, labels,
 * and the spans of traces. They hold for an epoch. A number here is a place in an array; MODEL_NONE
 * is none.
 */
#ifndef PROF_EXPORT_MODEL_EXTRAS_H
#define PROF_EXPORT_MODEL_EXTRAS_H

#include "tools/prof-export/model/definitions.h"

struct extras_source {
	uint64_t kind, period; /* as in the message */
	uint32_t event, unit;  /* strings */
};

struct extras_label {
	uint32_t key, value; /* strings; an empty value: number is it */
	uint64_t number;
};

struct extras_link {
	uint8_t trace[16], span[8];
};

struct extras {
	struct ids source_ids, label_ids, labels_ids, link_ids;
	ARRAY(struct extras_source) sources;
	ARRAY(struct extras_label) labels;
	ARRAY(uint32_t) lists; /* of labels: their count, then their numbers */
	ARRAY(struct extras_link) links;
};

/* Takes one of the four messages; the latest definition of an id holds. A label without a key, and
 * a link that the trace context calls invalid, are none. All memory is the definitions' pool's. 0,
 * -EINVAL for id 0, -ENOBUFS. */
int extras_take(struct extras *e, struct definitions *d, const struct msg *m);
void extras_done(struct extras *e, struct pool *p);
/* Bytes that they take. */
size_t extras_weight(const struct extras *e);

/* The labels of a list, borrowed; *ret_n is their count. list: MODEL_NONE for no label. */
const uint32_t *extras_list(const struct extras *e, uint32_t list, uint32_t *ret_n);

#endif
