/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the two rings (bpf/sample.h). The kernel's programs write them, of what processes made
 * and what was to be read: that one is as long as it says is seen here, before anything else looks
 * into it.
 */
#ifndef PROFPIPE_RECORD_H
#define PROFPIPE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include "bpf/sample.h"
#include "common/wire/msg.h"

/* What a record is; NULL: less than it says, or more than there may be. Borrowed. */
const struct sample *record_sample(const void *data, size_t size);
const struct deferred_sample *record_deferred(const void *data, size_t size);

/* What a struct msg_object borrows. */
struct record_object {
	uint64_t addresses[SAMPLE_PIECES], lengths[SAMPLE_PIECES];
	uint8_t bytes[SAMPLE_OBJECT_BYTES + SAMPLE_NAME_BYTES + SAMPLE_SOURCE_BYTES +
		      SAMPLE_LINES_BYTES];
};
/* Of a SAMPLE_OBJECT, all but its process: lengths are cut to what is there. False: it has not all
 * that comes before the lines. */
bool record_object(const struct sample *s, struct record_object *keep, struct msg_object *ret);

#endif
