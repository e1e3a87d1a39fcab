/* SPDX-License-Identifier: Apache-2.0 */
/* A named stream under test, its output decoded again, and files that are answered on the test's
 * command. */
#ifndef TESTS_UNIT_NAMER_FIXTURE_H
#define TESTS_UNIT_NAMER_FIXTURE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "tools/prof-symd/stream/namer.h"

#define SECOND 1000000000ull

struct bench {
	struct filestore files;
	struct stream_out out;
	struct stream_in in;
	struct namer *namer;
	uint64_t requests[64];
	unsigned asked;
	bool answer_at_once;
};

/* In a test that wraps allocations: the number of the one that fails, from 1 on. 0: none. */
static unsigned starves_in;

static int to_in(void *ctx, struct span batch)
{
	struct bench *b = ctx;
	const unsigned rest = starves_in;

	starves_in = 0;
	const int r = stream_feed(&b->in, batch);

	starves_in = rest;
	return r;
}

static int ask(void *ctx, const struct filestore_request *rq)
{
	struct bench *b = ctx;

	b->requests[b->asked++ % 64] = rq->id;
	if (b->answer_at_once)
		filestore_answer(&b->files, rq->id, -1, 1);
	return 0;
}

static inline struct bench *bench_new(const struct namer_limits *limits)
{
	struct bench *b = calloc(1, sizeof(*b));

	cr_assert(b);
	filestore_init(&b->files, FILESTORE_BUDGET, FILESTORE_BUDGET, ask, b);
	stream_in_init(&b->in);
	stream_out_init(&b->out, 65536, to_in, b);
	cr_assert_eq(namer_new(limits, &b->files, &b->out, &b->namer), 0);
	return b;
}

static inline void bench_free(struct bench *b)
{
	namer_free(b->namer);
	stream_in_done(&b->in);
	stream_out_done(&b->out);
	free(b);
}

static inline void take(struct bench *b, struct msg m)
{
	int r = namer_take(b->namer, &m, 1);

	if (r == -ENOMEM)
		r = namer_take(b->namer, &m, 1);
	cr_assert_eq(r, 0);
}

static inline void hello(struct bench *b)
{
	take(b, (struct msg){ .id = MSG_HELLO, .hello = { .schema = MSG_SCHEMA } });
}

static inline void thread(struct bench *b, uint64_t id)
{
	take(b, (struct msg){ .id = MSG_PROCESS,
			      .process = { .id = id, .pid = id, .comm = STR_LIT("p") } });
	take(b, (struct msg){ .id = MSG_THREAD, .thread = { .id = id, .process = id, .tid = id } });
}

/* A sample of a stack with one kernel frame, whose function has this name. */
static inline void kernel_sample(struct bench *b, uint64_t id, const char *name)
{
	take(b,
	     (struct msg){ .id = MSG_FUNCTION, .function = { .id = id, .name = str_from(name) } });
	take(b, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = id,
					 .kind = MSG_FRAME_KERNEL,
					 .functions = { &id, 1 },
					 .lines = { (uint64_t[]){ 0 }, 1 } } });
	take(b, (struct msg){ .id = MSG_STACK, .stack = { .id = id, .frames = { &id, 1 } } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = id, .thread = 1 } });
}

static inline void file_sample(struct bench *b, uint64_t id)
{
	take(b, (struct msg){ .id = MSG_FILE, .file = { .id = id, .path = STR_LIT("/bin/x") } });
	take(b,
	     (struct msg){
		     .id = MSG_FRAME,
		     .frame = { .id = id, .kind = MSG_FRAME_NATIVE, .file = id, .offset = 0x10 } });
	take(b, (struct msg){ .id = MSG_STACK, .stack = { .id = id, .frames = { &id, 1 } } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = id, .thread = 1 } });
}

/* The next message put, or its end. */
static inline enum msg_id next(struct bench *b, struct msg *m)
{
	int r = stream_next(&b->in, m);

	cr_assert(r == 0 || r == STREAM_AGAIN, "%d", r);
	return r == 0 ? m->id : (enum msg_id)0;
}

static inline void expect_ids(struct bench *b, const enum msg_id *ids, size_t count)
{
	struct msg m;

	cr_assert_eq(stream_flush(&b->out), 0);
	for (size_t i = 0; i < count; i++) {
		enum msg_id got = next(b, &m);

		cr_assert_eq(got, ids[i], "message %zu is %d, not %d", i, got, ids[i]);
	}
	cr_assert_eq(next(b, &m), 0);
}
#define EXPECT(b, ...) \
	expect_ids(b, (enum msg_id[]){ __VA_ARGS__ }, \
		   sizeof((enum msg_id[]){ __VA_ARGS__ }) / sizeof(enum msg_id))

#endif
