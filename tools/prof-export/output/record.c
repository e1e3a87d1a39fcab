/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/output/record.h"

static int write_batch(void *ctx, struct span batch)
{
	struct output *o = ctx;

	output_put(o, batch.data, batch.len);
	return o->error;
}

void record_init(struct record *r, struct output *o)
{
	r->ended = false;
	stream_out_init(&r->out, STREAM_BATCH, write_batch, o);
}

void record_done(struct record *r)
{
	stream_out_done(&r->out);
}

int record_take(struct record *r, const struct msg *m)
{
	struct msg own = *m;

	/* The recording has our schema, even if the input had an older one. */
	if (m->id == MSG_HELLO)
		own.hello.schema = MSG_SCHEMA;
	const int e = stream_put(&r->out, &own);

	r->ended = r->ended || (!e && m->id == MSG_END);
	return e;
}

int record_epoch(struct record *r)
{
	const int e = stream_flush(&r->out);

	if (!e)
		stream_out_epoch(&r->out, r->out.epoch + 1);
	return e;
}

int record_flush(struct record *r)
{
	return stream_flush(&r->out);
}

void record_resume(struct record *r, uint64_t epoch)
{
	stream_out_epoch(&r->out, epoch + 1);
}

int record_missing(struct record *r, uint64_t n)
{
	if (!n)
		return 0;
	return stream_put(&r->out, &(struct msg){ .id = MSG_LOST,
						  .lost = { .reason = LOST_SEQUENCE,
							    .count = n,
							    .cpu = MSG_LOST_ANY_CPU } });
}

int record_finish(struct record *r, uint64_t time_ns)
{
	int e = 0;

	if (!r->ended)
		e = stream_put(
			&r->out, &(struct msg) {
				.id = MSG_END
				, .end = {.reason = MSG_END_PEER_LOST, .time_ns = time_ns }
			});
	return e ? e : stream_flush(&r->out);
}
