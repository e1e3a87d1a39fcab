/* SPDX-License-Identifier: Apache-2.0 */
/* What the raw stream has at its ends; its samples are the whole-tool tests'. */
#include <criterion/criterion.h>
#include "common/wire/stream.h"
#include "tools/prof-bpf/stream/emit.h"

#define CEILING (1u << 20)

static int to_in(void *ctx, struct span batch)
{
	return stream_feed(ctx, batch);
}

/* How many messages of a kind come until there are no more. */
static unsigned count(struct stream_in *in, enum msg_id id)
{
	struct msg m;
	unsigned n = 0;
	int r;

	while ((r = stream_next(in, &m)) == 0)
		n += m.id == id;
	cr_assert_eq(r, STREAM_AGAIN);
	return n;
}

Test(emit, nothing_comes_behind_the_end_until_somebody_else_takes_the_stream)
{
	uint64_t sent = 0, generated = 0;
	bool changed = false;
	const struct emit_process p = { .def = { .id = 1, .pid = 10, .comm = STR_LIT("p") },
					.sent = &sent,
					.generated = &generated,
					.changed = &changed };
	const struct emit_file f = { .def = { .id = 2, .path = STR_LIT("/f") },
				     .sent = &generated };
	struct stream_in in;
	struct emit *e;

	stream_in_init(&in);
	cr_assert_eq(
		emit_new(&(struct emit_config){ .ceiling = CEILING, .flush = to_in, .ctx = &in },
			 &e),
		0);
	cr_assert_eq(emit_restart(e), 0);
	cr_assert_eq(emit_file(e, &f), 0);
	cr_assert_eq(emit_end(e, END_DONE), 0);
	cr_expect_eq(count(&in, MSG_FILE), 1);

	/* A process of the host may end at any time. */
	sent = 1;
	cr_expect_eq(emit_process_end(e, &p, 1), 0);
	cr_expect_eq(emit_lost(e, LOST_RING_FULL, 1, 0), 0);
	cr_expect_eq(emit_file(e, &f), 0);
	cr_expect_eq(emit_flush(e), 0);
	cr_expect_eq(count(&in, MSG_PROCESS_END) + count(&in, MSG_LOST), 0);

	stream_in_done(&in);
	stream_in_init(&in);
	cr_expect_eq(emit_restart(e), 0);
	cr_expect_eq(emit_lost(e, LOST_RING_FULL, 1, 0), 0);
	cr_expect_eq(emit_end(e, END_DONE), 0);
	cr_expect_eq(count(&in, MSG_LOST), 1);
	stream_in_done(&in);
	emit_free(e);
}
