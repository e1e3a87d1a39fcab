/* SPDX-License-Identifier: Apache-2.0 */
/* A recording: the stream's messages as they came, with new sequence numbers. A LOST message counts
 * the missing messages, and a stream that was cut off ends with MSG_END_PEER_LOST. */
#ifndef PROF_EXPORT_OUTPUT_RECORD_H
#define PROF_EXPORT_OUTPUT_RECORD_H

#include "common/wire/stream.h"
#include "tools/prof-export/output/output.h"

struct record {
	struct stream_out out;
	bool ended;
};

/* o is borrowed. */
void record_init(struct record *r, struct output *o);
void record_done(struct record *r);
/* Each returns 0 or -errno of stream_put; errors of writing stay in the output. */
int record_take(struct record *r, const struct msg *m);
int record_epoch(struct record *r);
/* Writes buffered messages. */
int record_flush(struct record *r);
/* An earlier prof-export wrote epochs up to this one. */
void record_resume(struct record *r, uint64_t epoch);
int record_missing(struct record *r, uint64_t n);
/* Writes an END message if the stream had none. time_ns: the time of its last sample. */
int record_finish(struct record *r, uint64_t time_ns);

#endif
