/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/stream.h"

#include <errno.h>

#define STREAM_PENDING (4 * MSG_MAX_SIZE) /* the limit that stream.h promises */

/* --- sending --- */

void stream_out_init(struct stream_out *s, size_t batch_max, int (*flush)(void *, struct span),
		     void *ctx)
{
	*s = (struct stream_out){
		/* A message is packed before we know whether it fits. */
		.batch = BUF_INIT(batch_max + 2 * MSG_MAX_SIZE),
		.epoch = 1,
		.batch_max = batch_max,
		.flush = flush,
		.ctx = ctx,
	};
}

void stream_out_done(struct stream_out *s)
{
	buf_done(&s->batch);
}

void stream_out_epoch(struct stream_out *s, uint64_t epoch)
{
	buf_reset(&s->batch);
	s->epoch = epoch;
	s->seq = 0;
	s->in_batch = 0;
	s->bytes = 0;
}

/* Packs m into the batch, after its header. On error the batch is unchanged. */
static int pack(struct stream_out *s, const struct msg *m)
{
	const size_t before = s->batch.len;
	int r = 0;

	if (!before)
		r = msg_encode(&s->batch,
			       &(struct msg){ .id = MSG_BATCH_HEAD,
					      .batch = { .epoch = s->epoch, .seq = s->seq } });
	if (!r)
		r = msg_encode(&s->batch, m);
	if (r) {
		s->batch.len = before;
		return r;
	}
	s->in_batch++;
	return 0;
}

static int flush_first(struct stream_out *s, size_t len, uint64_t messages)
{
	int r = s->flush(s->ctx, (struct span){ .data = s->batch.data, .len = len });

	if (r)
		return r;
	s->seq += messages;
	s->bytes += len;
	buf_reset(&s->batch);
	s->in_batch = 0;
	return 0;
}

int stream_put(struct stream_out *s, const struct msg *m)
{
	const size_t before = s->batch.len;
	int r = pack(s, m);

	if (r || !before || s->batch.len <= s->batch_max)
		return r;
	/* It does not fit: flush the messages before it, and start the next batch with m. */
	r = flush_first(s, before, s->in_batch - 1);
	if (r) {
		s->batch.len = before;
		s->in_batch--;
		return r;
	}
	return pack(s, m);
}

int stream_flush(struct stream_out *s)
{
	return s->batch.len ? flush_first(s, s->batch.len, s->in_batch) : 0;
}

/* --- receiving --- */

void stream_in_init(struct stream_in *s)
{
	*s = (struct stream_in){ .pending = BUF_INIT(STREAM_PENDING), .way = MSG_EVERY_WAY };
}

void stream_in_done(struct stream_in *s)
{
	buf_done(&s->pending);
	msg_scratch_done(&s->scratch);
}

int stream_feed(struct stream_in *s, struct span bytes)
{
	buf_consume(&s->pending, s->taken);
	s->taken = 0;
	return buf_append(&s->pending, bytes.data, bytes.len);
}

bool stream_turns(struct stream_in *s, struct span bytes)
{
	struct msg m;

	return s->batch_seen && s->pending.len == s->taken &&
	       !msg_decode(&bytes, &s->scratch, &m) && m.id == MSG_BATCH_HEAD &&
	       m.batch.epoch != s->epoch;
}

/* Takes the header of a batch. Messages before its seq that did not come are lost. A seq below the
 * messages that came is invalid. */
static int begin_batch(struct stream_in *s, const struct msg_batch *b)
{
	const bool first = !s->batch_seen;

	if (first || b->epoch != s->epoch) {
		s->new_epoch = s->new_epoch || !first;
		s->batch_seen = true;
		s->epoch = b->epoch;
		s->seen = 0;
	}
	if (b->seq < s->seen)
		return STREAM_MALFORMED;
	if (__builtin_add_overflow(s->missing, b->seq - s->seen, &s->missing))
		s->missing = UINT64_MAX;
	s->seen = b->seq;
	return 0;
}

static int admit(struct stream_in *s, const struct msg *m)
{
	if (!s->batch_seen || s->ended || !msg_travels(m->id, s->way))
		return STREAM_MALFORMED;
	if (m->id == MSG_HELLO) {
		if (!msg_reads(m->hello.schema) || (s->of_run && m->hello.build != msg_build()))
			return STREAM_SCHEMA;
		s->hello_seen = true;
	}
	return s->hello_seen ? 0 : STREAM_MALFORMED;
}

int stream_next(struct stream_in *s, struct msg *ret)
{
	for (;;) {
		struct span rest = { .data = s->pending.data ? s->pending.data + s->taken : NULL,
				     .len = s->pending.len - s->taken };
		const size_t len = rest.len;
		struct msg m;
		int r = msg_decode(&rest, &s->scratch, &m);

		if (r == MSG_SHORT)
			return STREAM_AGAIN;
		if (r == MSG_MALFORMED)
			return STREAM_MALFORMED;
		if (r < 0)
			return r;
		const bool known = r != MSG_UNKNOWN;

		if (known && m.id == MSG_BATCH_HEAD) {
			r = s->ended ? STREAM_MALFORMED : begin_batch(s, &m.batch);
		} else if (known) {
			r = admit(s, &m);
		} else {
			r = s->hello_seen && !s->ended ? 0 : STREAM_MALFORMED;
		}
		/* Keep the invalid bytes, so that later calls also refuse the stream. */
		if (r)
			return r;
		s->taken += len - rest.len;
		s->skipped.messages += !known;
		s->skipped.fields += known ? s->scratch.skipped : 0;
		if (known && m.id == MSG_BATCH_HEAD)
			continue;
		s->seen++;
		if (!known)
			continue;
		s->ended = m.id == MSG_END;
		*ret = m;
		return 0;
	}
}

bool stream_begins_epoch(const struct stream_in *s, struct span bytes)
{
	struct msg_scratch scratch = { 0 };
	struct msg m;
	const bool head = s->taken == s->pending.len && msg_decode(&bytes, &scratch, &m) == 0 &&
			  m.id == MSG_BATCH_HEAD;

	msg_scratch_done(&scratch);
	return head && s->batch_seen && m.batch.epoch != s->epoch;
}

uint64_t stream_missing(struct stream_in *s)
{
	const uint64_t n = s->missing;

	s->missing = 0;
	return n;
}
