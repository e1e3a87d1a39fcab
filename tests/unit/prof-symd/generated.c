/* SPDX-License-Identifier: Apache-2.0 */
/* Samples in generated code, which wait for the names that its runtime writes. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/namer_fixture.h"
#include "tools/prof-symd/stream/held_samples.h"

/* A perf map that the test writes; its process is 1. */
struct map_bench {
	struct bench *b;
	struct jit jit;
	struct jit_request asked[8];
	unsigned count;
	char path[64];
	int fd;
};

static int ask_jit(void *ctx, const struct jit_request *rq)
{
	struct map_bench *m = ctx;

	cr_assert_lt(m->count, 8);
	m->asked[m->count++] = *rq;
	return 0;
}

static struct map_bench *map_bench_new(void)
{
	struct map_bench *m = calloc(1, sizeof(*m));

	cr_assert(m);
	m->b = bench_new(&NAMER_LIMITS);
	cr_assert_eq(jit_init(&m->jit, 8 << 20, ask_jit, m), 0);
	namer_use_jit(m->b->namer, &m->jit);
	snprintf(m->path, sizeof(m->path), "/tmp/unit-named-XXXXXX");
	m->fd = mkostemp(m->path, O_CLOEXEC);
	hello(m->b);
	thread(m->b, 1);
	return m;
}

static void map_bench_free(struct map_bench *m)
{
	bench_free(m->b);
	jit_done(&m->jit);
	unlink(m->path);
	close(m->fd);
	free(m);
}

static void answer_jit(struct map_bench *m, bool there, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->count; i++) {
		bool map = there && m->asked[i].kind == MSG_JIT_PERF_MAP;

		jit_answer(&m->jit, m->asked[i].id, map ? open(m->path, O_RDONLY | O_CLOEXEC) : -1,
			   now_ns);
	}
	m->count = 0;
}

static void write_map(struct map_bench *m, const char *text)
{
	cr_assert_eq(write(m->fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void generated_sample(struct map_bench *m, uint64_t id, uint64_t address, uint64_t reason)
{
	take(m->b, (struct msg){ .id = MSG_FRAME,
				 .frame = { .id = id,
					    .kind = MSG_FRAME_NATIVE,
					    .offset = address,
					    .process = 1,
					    .flags = MSG_FRAME_LEAF } });
	take(m->b, (struct msg){ .id = MSG_STACK,
				 .stack = { .id = id, .frames = { &id, 1 }, .reason = reason } });
	take(m->b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = id, .thread = 1 } });
}

Test(generated, generated_code_is_held_until_it_has_a_name_and_others_go_before)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	kernel_sample(b, 5, "f");
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	EXPECT(b, MSG_HELLO, MSG_PROCESS, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_THREAD,
	       MSG_SAMPLE);
	answer_jit(m, true, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(namer_counts(b->namer).samples, 1);
	write_map(m, "1000 10 g\n");
	jit_tick(&m->jit, 2 * SECOND);
	cr_assert_eq(namer_run(b->namer, 2 * SECOND), 0);
	EXPECT(b, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_SAMPLE);
	cr_expect_eq(namer_counts(b->namer).named_frames, 2);
	map_bench_free(m);
}

/* A thread may end, or get another name, before its samples have theirs. */
Test(generated, a_thread_that_ended_keeps_its_samples_that_are_held)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	take(b, (struct msg){ .id = MSG_THREAD_END, .thread_end = { .id = 1 } });
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	answer_jit(m, true, SECOND);
	write_map(m, "1000 10 g\n");
	jit_tick(&m->jit, 2 * SECOND);
	cr_assert_eq(namer_run(b->namer, 2 * SECOND), 0);
	cr_expect_eq(namer_counts(b->namer).samples, 1);
	EXPECT(b, MSG_HELLO, MSG_PROCESS, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_THREAD,
	       MSG_SAMPLE, MSG_THREAD_END);
	map_bench_free(m);
}

Test(generated, the_last_lines_of_a_map_are_read_when_its_process_ends)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	answer_jit(m, true, SECOND);
	write_map(m, "1000 10 g");
	take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	cr_assert_eq(namer_run(b->namer, SECOND), NAMER_WAIT, "the jitdump may be there now");
	answer_jit(m, false, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	EXPECT(b, MSG_HELLO, MSG_PROCESS, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_THREAD,
	       MSG_SAMPLE, MSG_PROCESS_END);
	cr_expect_eq(m->jit.open_of.held, 0);
	map_bench_free(m);
}

Test(generated, at_the_end_a_map_is_asked_for_once_more)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	generated_sample(m, 4, 0x9008, 0);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	answer_jit(m, false, SECOND);
	write_map(m, "1000 10 g\n");
	take(
		b, (struct msg) { .id = MSG_END });
	cr_assert_eq(namer_run(b->namer, SECOND + 1), NAMER_WAIT);
	answer_jit(m, true, SECOND + 1);
	cr_assert_eq(namer_run(b->namer, SECOND + 1), 0);
	EXPECT(b, MSG_HELLO, MSG_PROCESS, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_THREAD,
	       MSG_SAMPLE, MSG_FRAME, MSG_STACK, MSG_SAMPLE, MSG_END);
	cr_expect_eq(namer_counts(b->namer).named_frames, 1);
	map_bench_free(m);
}

Test(generated, an_answer_that_does_not_come_delays_the_end_by_two_seconds)
{
	struct map_bench *m = map_bench_new();

	generated_sample(m, 3, 0x1008, 0);
	take(
		m->b, (struct msg) { .id = MSG_END });
	cr_assert_eq(namer_run(m->b->namer, SECOND), NAMER_WAIT);
	cr_assert_eq(namer_run(m->b->namer, SECOND + JIT_WAIT_NS), 0);
	cr_expect_eq(namer_counts(m->b->namer).samples, 1);
	cr_expect(namer_ended(m->b->namer));
	map_bench_free(m);
}

Test(generated, no_sample_is_held_longer_than_a_minute)
{
	struct map_bench *m = map_bench_new();

	generated_sample(m, 3, 0x1008, 0);
	cr_assert_eq(namer_run(m->b->namer, SECOND), 0);
	answer_jit(m, true, SECOND);
	cr_assert_eq(namer_run(m->b->namer, 60 * SECOND), 0);
	cr_expect_eq(namer_counts(m->b->namer).samples, 0);
	cr_assert_eq(namer_run(m->b->namer, 62 * SECOND), 0);
	cr_expect_eq(namer_counts(m->b->namer).samples, 1);
	map_bench_free(m);
}

Test(generated, an_address_where_nothing_is_mapped_is_not_held)
{
	struct map_bench *m = map_bench_new();

	generated_sample(m, 3, 0x1008, WALK_NO_MAPPING);
	cr_assert_eq(namer_run(m->b->namer, SECOND), 0);
	cr_expect_eq(namer_counts(m->b->namer).samples, 1);
	map_bench_free(m);
}

Test(generated, more_samples_than_can_be_held_go_without_names)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	for (unsigned i = 1; i < HELD_SAMPLES_MAX + 100; i++) {
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 3, .thread = 1 } });
		if (namer_full(b->namer))
			cr_assert_eq(namer_run(b->namer, SECOND), 0);
	}
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(namer_counts(b->namer).samples, 100);
	answer_jit(m, true, SECOND);
	take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	cr_assert_eq(namer_run(b->namer, SECOND), NAMER_WAIT);
	answer_jit(m, false, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(namer_counts(b->namer).samples, HELD_SAMPLES_MAX + 100);
	map_bench_free(m);
}

Test(generated, a_new_raw_epoch_sends_what_is_held_first)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	answer_jit(m, true, SECOND);
	write_map(m, "1000 10 g\n");
	cr_assert_eq(namer_forget(b->namer, SECOND), NAMER_WAIT, "the jitdump may be there now");
	answer_jit(m, false, SECOND);
	cr_assert_eq(namer_forget(b->namer, SECOND), 0);
	cr_expect_eq(namer_counts(b->namer).samples, 1);
	cr_expect_eq(namer_counts(b->namer).named_frames, 1);
	map_bench_free(m);
}

/* A sample that is held back is named later, with a frame in the file. */
Test(generated, a_file_ends_once_no_sample_before_its_end_is_held_back)
{
	static const uint64_t frames[] = { 1, 2 };
	struct map_bench *m = map_bench_new();

	m->b->answer_at_once = true;
	take(m->b, (struct msg){ .id = MSG_FILE, .file = { .id = 9, .path = STR_LIT("/bin/x") } });
	take(m->b, (struct msg){ .id = MSG_FRAME,
				 .frame = { .id = 1,
					    .kind = MSG_FRAME_NATIVE,
					    .offset = 0x1008,
					    .process = 1,
					    .flags = MSG_FRAME_LEAF } });
	take(m->b,
	     (struct msg){
		     .id = MSG_FRAME,
		     .frame = { .id = 2, .kind = MSG_FRAME_NATIVE, .file = 9, .offset = 16 } });
	take(m->b, (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .frames = { frames, 2 } } });
	take(m->b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	take(m->b, (struct msg){ .id = MSG_FILE_END, .file_end = { .id = 9 } });
	cr_assert_eq(namer_run(m->b->namer, SECOND), 0);
	answer_jit(m, true, SECOND);
	cr_assert_eq(namer_run(m->b->namer, SECOND), 0);
	EXPECT(m->b, MSG_HELLO, MSG_PROCESS);
	write_map(m, "1000 10 late\n");
	jit_tick(&m->jit, 2 * SECOND);
	cr_assert_eq(namer_run(m->b->namer, 2 * SECOND), 0);
	EXPECT(m->b, MSG_FUNCTION, MSG_FRAME, MSG_FILE, MSG_FRAME, MSG_STACK, MSG_THREAD,
	       MSG_SAMPLE, MSG_FILE_END);
	cr_expect_eq(namer_counts(m->b->namer).lost, 0);
	map_bench_free(m);
}
