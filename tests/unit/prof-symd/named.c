/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/prof-symd/stream/functions.h"
#include "tools/prof-symd/stream/held_samples.h"
#include "common/base/idmap.h"
#include "tools/prof-symd/stream/named.h"

#define SECOND 1000000000ull

/* A named stream under test, its output decoded again, and files that are answered when the test
 * says so. */
struct bench {
	struct filestore files;
	struct stream_out out;
	struct stream_in in;
	struct named *named;
	uint64_t requests[64];
	unsigned asked;
	bool answer_at_once;
};

/* The so many-th call finds no memory, and no other. 0: none does. */
static unsigned starves_in;
static bool starved;

static bool starves(void)
{
	const bool now = starves_in == 1;

	starves_in -= starves_in > 0;
	starved |= now;
	return now;
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
	return starves() ? NULL : __real_malloc(n);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return starves() ? NULL : __real_calloc(n, size);
}

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
	return starves() ? NULL : __real_realloc(p, n);
}

void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return starves() ? NULL : __real_reallocarray(p, n, size);
}

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

static struct bench *bench_new(const struct named_limits *limits)
{
	struct bench *b = calloc(1, sizeof(*b));

	cr_assert(b);
	filestore_init(&b->files, FILESTORE_BUDGET, FILESTORE_BUDGET, ask, b);
	stream_in_init(&b->in);
	stream_out_init(&b->out, 65536, to_in, b);
	cr_assert_eq(named_new(limits, &b->files, &b->out, &b->named), 0);
	return b;
}

static void bench_free(struct bench *b)
{
	named_free(b->named);
	stream_in_done(&b->in);
	stream_out_done(&b->out);
	free(b);
}

static void take(struct bench *b, struct msg m)
{
	int r = named_take(b->named, &m, 1);

	if (r == -ENOMEM)
		r = named_take(b->named, &m, 1);
	cr_assert_eq(r, 0);
}

static void hello(struct bench *b)
{
	take(b, (struct msg){ .id = MSG_HELLO, .hello = { .schema = MSG_SCHEMA } });
}

static void thread(struct bench *b, uint64_t id)
{
	take(b, (struct msg){ .id = MSG_PROCESS,
			      .process = { .id = id, .pid = id, .comm = STR_LIT("p") } });
	take(b, (struct msg){ .id = MSG_THREAD, .thread = { .id = id, .process = id, .tid = id } });
}

/* A sample of a stack of one kernel frame whose function is named so. */
static void kernel_sample(struct bench *b, uint64_t id, const char *name)
{
	take(b,
	     (struct msg){ .id = MSG_FUNCTION, .function = { .id = id, .name = str_from(name) } });
	take(b, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = id,
					 .kind = FRAME_KERNEL,
					 .functions = { &id, 1 },
					 .lines = { (uint64_t[]){ 0 }, 1 } } });
	take(b, (struct msg){ .id = MSG_STACK, .stack = { .id = id, .frames = { &id, 1 } } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = id, .thread = 1 } });
}

static void file_sample(struct bench *b, uint64_t id)
{
	take(b, (struct msg){ .id = MSG_FILE, .file = { .id = id, .path = STR_LIT("/bin/x") } });
	take(b, (struct msg){
			.id = MSG_FRAME,
			.frame = { .id = id, .kind = FRAME_NATIVE, .file = id, .offset = 0x10 } });
	take(b, (struct msg){ .id = MSG_STACK, .stack = { .id = id, .frames = { &id, 1 } } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = id, .thread = 1 } });
}

/* The next message put, or its end. */
static enum msg_id next(struct bench *b, struct msg *m)
{
	int r = stream_next(&b->in, m);

	cr_assert(r == 0 || r == STREAM_AGAIN, "%d", r);
	return r == 0 ? m->id : (enum msg_id)0;
}

static void expect_ids(struct bench *b, const enum msg_id *ids, size_t count)
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

Test(named, definitions_are_sent_once_and_before_use)
{
	struct bench *b = bench_new(&NAMED_LIMITS);

	hello(b);
	thread(b, 1);
	kernel_sample(b, 5, "f");
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 5, .thread = 1 } });
	cr_assert_eq(named_run(b->named, 1), 0);
	EXPECT(b, MSG_HELLO, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD,
	       MSG_SAMPLE, MSG_SAMPLE);
	bench_free(b);
}

Test(named, a_frame_of_a_kind_that_is_not_known_keeps_its_number)
{
	struct bench *b = bench_new(&NAMED_LIMITS);
	uint64_t id = 1;
	struct msg m;

	b->answer_at_once = true;
	hello(b);
	thread(b, 1);
	take(b, (struct msg){ .id = MSG_FILE, .file = { .id = 1, .path = STR_LIT("/bin/x") } });
	take(b, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = 1, .kind = 256, .file = 1, .offset = 0x10 } });
	take(b, (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .frames = { &id, 1 } } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_assert_eq(named_run(b->named, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_HELLO);
	cr_assert_eq(next(b, &m), MSG_FILE);
	cr_assert_eq(next(b, &m), MSG_FRAME);
	cr_assert_eq(m.frame.kind, FRAME_KIND_MAX);
	cr_assert_eq(m.frame.file, 1);
	bench_free(b);
}

Test(named, equal_functions_share_one_id)
{
	struct bench *b = bench_new(&NAMED_LIMITS);

	hello(b);
	thread(b, 1);
	kernel_sample(b, 5, "f");
	kernel_sample(b, 6, "f");
	cr_assert_eq(named_run(b->named, 1), 0);
	EXPECT(b, MSG_HELLO, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD,
	       MSG_SAMPLE, MSG_FRAME, MSG_STACK, MSG_SAMPLE);
	bench_free(b);
}

Test(named, a_sample_waits_for_its_file_and_what_follows_waits_behind)
{
	struct bench *b = bench_new(&NAMED_LIMITS);

	hello(b);
	thread(b, 1);
	file_sample(b, 3);
	file_sample(b, 4);
	kernel_sample(b, 5, "f");
	cr_expect_eq(b->asked, 2, "both files are asked for at once");
	cr_assert_eq(named_run(b->named, SECOND), NAMED_WAIT);
	EXPECT(b, MSG_HELLO);
	filestore_answer(&b->files, b->requests[0], -1, SECOND);
	cr_assert_eq(named_run(b->named, SECOND), NAMED_WAIT);
	EXPECT(b, MSG_FILE, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD, MSG_SAMPLE);
	cr_assert_eq(named_run(b->named, SECOND), NAMED_WAIT);
	cr_assert_eq(named_run(b->named, 1 + FILESTORE_WAIT_NS), 0,
		     "an answer that does not come is done without");
	EXPECT(b, MSG_FILE, MSG_FRAME, MSG_STACK, MSG_SAMPLE, MSG_FUNCTION, MSG_FRAME, MSG_STACK,
	       MSG_SAMPLE);
	cr_expect_eq(b->files.timed_out, 1);
	bench_free(b);
}

Test(named, at_most_sixteen_requests_of_a_user_are_under_way)
{
	struct bench *b = bench_new(&NAMED_LIMITS);

	hello(b);
	thread(b, 1);
	for (uint64_t id = 10; id < 50; id++)
		file_sample(b, id);
	cr_expect_eq(b->asked, 16);
	filestore_answer(&b->files, b->requests[3], -1, 1);
	cr_expect_eq(b->asked, 17);
	b->answer_at_once = true;
	for (unsigned i = 0; i < 17; i++)
		filestore_answer(&b->files, b->requests[i], -1, 1);
	cr_assert_eq(named_run(b->named, 2), 0);
	cr_expect_eq(b->asked, 40);
	cr_expect_eq(named_counts(b->named).samples, 40);
	bench_free(b);
}

Test(named, at_the_ceiling_of_functions_a_new_epoch_defines_what_is_live_again)
{
	struct named_limits limits = NAMED_LIMITS;
	struct bench *b;
	char name[16];
	struct msg m;
	uint64_t samples = 0, epochs = 1;
	bool frame_known[64] = { 0 };

	limits.functions = 10;
	b = bench_new(&limits);
	hello(b);
	thread(b, 1);
	for (uint64_t i = 1; i <= 40; i++) {
		snprintf(name, sizeof(name), "f%d", (int)i);
		kernel_sample(b, i, name);
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	}
	cr_assert_eq(named_run(b->named, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	while (next(b, &m)) {
		if (b->in.new_epoch) {
			memset(frame_known, 0, sizeof(frame_known));
			b->in.new_epoch = false;
			epochs++;
		}
		if (m.id == MSG_FRAME)
			frame_known[m.frame.id] = m.frame.functions.len == 1 &&
						  m.frame.functions.data[0] <= 10;
		if (m.id == MSG_STACK)
			cr_assert(frame_known[m.stack.frames.data[0]]);
		samples += m.id == MSG_SAMPLE;
	}
	cr_expect_eq(samples, 80);
	cr_expect(epochs >= 4);
	cr_expect_eq(named_counts(b->named).epochs, epochs);
	cr_expect_eq(stream_missing(&b->in), 0);
	bench_free(b);
}

Test(named, samples_over_a_ceiling_of_definitions_are_counted_as_lost)
{
	struct named_limits limits = NAMED_LIMITS;
	struct bench *b;
	struct msg m;
	uint64_t lost = 0, samples = 0;

	limits.stacks = 3;
	b = bench_new(&limits);
	hello(b);
	thread(b, 1);
	for (uint64_t i = 1; i <= 8; i++)
		kernel_sample(b, i, "f");
	cr_assert_eq(named_run(b->named, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	while (next(b, &m)) {
		samples += m.id == MSG_SAMPLE;
		if (m.id == MSG_LOST) {
			cr_expect_eq(m.lost.reason, LOST_LIMIT);
			lost += m.lost.count;
		}
	}
	cr_expect_eq(samples, 3);
	cr_expect_eq(lost, 5);
	bench_free(b);
}

Test(named, a_process_that_is_defined_again_is_passed_on_again)
{
	struct bench *b = bench_new(&NAMED_LIMITS);
	struct msg m = { 0 };

	b->answer_at_once = true;
	hello(b);
	thread(b, 1);
	kernel_sample(b, 1, "f");
	cr_assert_eq(named_run(b->named, 1), 0);
	EXPECT(b, MSG_HELLO, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD,
	       MSG_SAMPLE);
	take(b, (struct msg){ .id = MSG_FILE, .file = { .id = 7, .path = STR_LIT("/bin/p") } });
	take(b, (struct msg){ .id = MSG_PROCESS,
			      .process = { .id = 1, .pid = 1, .comm = STR_LIT("q"), .exe = 7 } });
	for (int i = 0; i < 2; i++)
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_assert_eq(named_run(b->named, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_FILE);
	cr_assert_eq(next(b, &m), MSG_PROCESS);
	cr_expect_eq(m.process.exe, 7);
	cr_expect(str_eq(m.process.comm, STR_LIT("q")));
	EXPECT(b, MSG_SAMPLE, MSG_SAMPLE);
	/* Its thread is still one of its threads: it ends with it. */
	take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_assert_eq(named_run(b->named, 1), 0);
	EXPECT(b, MSG_PROCESS_END, MSG_LOST);
	bench_free(b);
}

Test(named, processes_that_ended_are_forgotten)
{
	struct named_limits limits = NAMED_LIMITS;
	struct bench *b;

	limits.processes = limits.threads = 4;
	b = bench_new(&limits);
	hello(b);
	kernel_sample(b, 1, "f");
	cr_assert_eq(named_run(b->named, 1), 0);
	for (uint64_t id = 10; id < 5000; id++) {
		thread(b, id);
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = id } });
		take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = id } });
		cr_assert_eq(named_run(b->named, 1), 0);
		cr_assert_eq(stream_flush(&b->out), 0);
		for (struct msg m; next(b, &m);)
			;
	}
	cr_expect_eq(named_counts(b->named).samples, 4990);
	bench_free(b);
}

Test(named, threads_that_ended_are_forgotten)
{
	struct named_limits limits = NAMED_LIMITS;
	struct bench *b;

	limits.threads = 4;
	b = bench_new(&limits);
	hello(b);
	thread(b, 1);
	kernel_sample(b, 1, "f");
	cr_assert_eq(named_run(b->named, 1), 0);
	EXPECT(b, MSG_HELLO, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD,
	       MSG_SAMPLE);
	for (uint64_t id = 10; id < 5000; id++) {
		take(b, (struct msg){ .id = MSG_THREAD, .thread = { .id = id, .process = 1 } });
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = id } });
		take(b, (struct msg){ .id = MSG_THREAD_END, .thread_end = { .id = id } });
		cr_assert_eq(named_run(b->named, 1), 0);
		EXPECT(b, MSG_THREAD, MSG_SAMPLE, MSG_THREAD_END);
	}
	cr_expect_eq(named_counts(b->named).lost, 0);
	/* The first one is still there. */
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	cr_assert_eq(named_run(b->named, 1), 0);
	EXPECT(b, MSG_SAMPLE, MSG_PROCESS_END);
	bench_free(b);
}

/* What prof-symd only passes on comes before its first use in each epoch, and not before. */
Test(named, what_a_sample_names_is_passed_on_before_it)
{
	static const uint64_t list[] = { 7, 8 };
	struct bench *b = bench_new(&NAMED_LIMITS);
	struct msg m;

	hello(b);
	thread(b, 1);
	take(b, (struct msg){ .id = MSG_SOURCE,
			      .source = { .id = 3, .event = STR_LIT("off-cpu"), .period = 5 } });
	take(b, (struct msg){ .id = MSG_LABEL,
			      .label = { .id = 7, .key = STR_LIT("k"), .number = 9 } });
	take(b, (struct msg){ .id = MSG_LABEL,
			      .label = { .id = 8, .key = STR_LIT("t"), .value = STR_LIT("x") } });
	take(b, (struct msg){ .id = MSG_LABEL, .label = { .id = 9, .key = STR_LIT("unused") } });
	take(b, (struct msg){ .id = MSG_LABELS, .labels = { .id = 4, .list = { list, 2 } } });
	take(b, (struct msg){ .id = MSG_LINK,
			      .link = { .id = 5, .span = { (const uint8_t *)"12345678", 8 } } });
	const struct msg_sample sample = {
		.thread = 1, .source = 3, .count = 2, .labels = 4, .link = 5
	};
	const struct msg_sample unknown = {
		.thread = 1, .source = 33, .count = 2, .labels = 44, .link = 55
	};

	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = sample });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = sample });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = unknown });
	cr_assert_eq(named_run(b->named, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_HELLO);
	cr_assert_eq(next(b, &m), MSG_PROCESS);
	cr_assert_eq(next(b, &m), MSG_THREAD);
	cr_assert_eq(next(b, &m), MSG_SOURCE);
	cr_expect(str_eq(m.source.event, STR_LIT("off-cpu")) && m.source.period == 5);
	cr_assert_eq(next(b, &m), MSG_LABEL);
	cr_expect(m.label.id == 7 && m.label.number == 9);
	cr_assert_eq(next(b, &m), MSG_LABEL);
	cr_expect(str_eq(m.label.value, STR_LIT("x")));
	cr_assert_eq(next(b, &m), MSG_LABELS);
	cr_expect(m.labels.list.len == 2 && m.labels.list.data[1] == 8);
	cr_assert_eq(next(b, &m), MSG_LINK);
	cr_expect_eq(memcmp(m.link.span.data, "12345678", 8), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(next(b, &m), MSG_SAMPLE);
		cr_expect(m.sample.source == 3 && m.sample.count == 2 && m.sample.labels == 4 &&
			  m.sample.link == 5);
	}
	cr_assert_eq(next(b, &m), MSG_SAMPLE);
	cr_expect(!m.sample.source && m.sample.count == 2 && !m.sample.labels && !m.sample.link,
		  "what has no definition is nothing");
	cr_assert_eq(next(b, &m), 0);
	bench_free(b);
}

Test(named, what_belongs_to_a_process_is_passed_on_with_it)
{
	struct bench *b = bench_new(&NAMED_LIMITS);
	struct msg m;

	b->answer_at_once = true;
	hello(b);
	take(b,
	     (struct msg){ .id = MSG_CGROUP, .cgroup = { .id = 6, .path = STR_LIT("/a.slice") } });
	take(b, (struct msg){ .id = MSG_PROCESS,
			      .process = { .id = 1, .pid = 10, .cgroup = 6, .inner_pid = 2 } });
	take(b, (struct msg){ .id = MSG_THREAD, .thread = { .id = 1, .process = 1 } });
	take(b, (struct msg){ .id = MSG_FILE, .file = { .id = 2, .path = STR_LIT("/lib") } });
	take(b, (struct msg){
			.id = MSG_MAPPING,
			.mapping = { .process = 1, .file = 2, .start = 0x1000, .end = 0x2000 } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .thread = 1 } });
	cr_assert_eq(named_run(b->named, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_HELLO);
	cr_assert_eq(next(b, &m), MSG_CGROUP);
	cr_expect(str_eq(m.cgroup.path, STR_LIT("/a.slice")));
	cr_assert_eq(next(b, &m), MSG_PROCESS);
	cr_expect(m.process.cgroup == 6 && m.process.inner_pid == 2);
	cr_assert_eq(next(b, &m), MSG_FILE);
	cr_assert_eq(next(b, &m), MSG_MAPPING);
	cr_expect(m.mapping.start == 0x1000 && m.mapping.end == 0x2000);
	cr_assert_eq(next(b, &m), MSG_THREAD);
	cr_assert_eq(next(b, &m), MSG_SAMPLE);

	/* What comes later follows alone, and the latest one of a key counts. */
	for (int i = 0; i < 3; i++)
		take(b, (struct msg){ .id = MSG_ATTRIBUTE,
				      .attribute = { .process = 1,
						     .key = STR_LIT("service.name"),
						     .value = i < 2 ? STR_LIT("old")
								    : STR_LIT("new") } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .thread = 1 } });
	cr_assert_eq(named_run(b->named, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_ATTRIBUTE);
	cr_expect(str_eq(m.attribute.value, STR_LIT("new")));
	cr_assert_eq(next(b, &m), MSG_SAMPLE);
	cr_assert_eq(next(b, &m), 0);
	bench_free(b);
}

Test(named, a_file_that_is_defined_again_is_passed_on_again)
{
	static const uint64_t segments[] = { 0, 4096, 0x400000 };
	struct bench *b = bench_new(&NAMED_LIMITS);
	struct msg m;

	b->answer_at_once = true;
	hello(b);
	thread(b, 1);
	file_sample(b, 1);
	cr_assert_eq(named_run(b->named, 1), 0);
	EXPECT(b, MSG_HELLO, MSG_FILE, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD, MSG_SAMPLE);
	take(b, (struct msg){ .id = MSG_FILE,
			      .file = { .id = 1,
					.path = STR_LIT("/bin/x"),
					.htlhash = { (const uint8_t *)"0123456789abcdef", 16 },
					.go_build_id = STR_LIT("go/x"),
					.segments = { segments, 3 } } });
	take(b, (struct msg){ .id = MSG_FRAME, .frame = { .id = 2, .file = 1, .offset = 0x20 } });
	take(b, (struct msg){ .id = MSG_STACK,
			      .stack = { .id = 2, .frames = { (uint64_t[]){ 2 }, 1 } } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 2, .thread = 1 } });
	take(b, (struct msg){ .id = MSG_FILE_END, .file_end = { .id = 1 } });
	cr_assert_eq(named_run(b->named, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_FILE);
	cr_expect(str_eq(m.file.path, STR_LIT("/bin/x")));
	cr_expect(str_eq(m.file.go_build_id, STR_LIT("go/x")));
	cr_expect(m.file.htlhash.len == 16 && m.file.htlhash.data[15] == 'f');
	cr_expect(m.file.segments.len == 3 && m.file.segments.data[2] == 0x400000);
	cr_assert_eq(next(b, &m), MSG_FRAME);
	cr_assert_eq(next(b, &m), MSG_STACK);
	cr_assert_eq(next(b, &m), MSG_SAMPLE);
	cr_assert_eq(next(b, &m), MSG_FILE_END);
	bench_free(b);
}

Test(named, a_stream_without_an_end_gets_one)
{
	struct bench *b = bench_new(&NAMED_LIMITS);
	struct msg m;

	hello(b);
	cr_assert_eq(named_end(b->named, END_PEER_LOST, 7), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_HELLO);
	cr_expect_eq(m.hello.kind, STREAM_NAMED);
	cr_assert_eq(next(b, &m), MSG_END);
	cr_expect_eq(m.end.reason, END_PEER_LOST);
	cr_expect(named_ended(b->named));
	bench_free(b);
}

Test(named, ids_of_an_older_raw_epoch_are_void)
{
	struct bench *b = bench_new(&NAMED_LIMITS);
	struct msg m;

	hello(b);
	thread(b, 1);
	kernel_sample(b, 1, "old");
	cr_assert_eq(named_run(b->named, 1), 0);
	cr_assert_eq(named_forget(b->named, 1), 0);
	thread(b, 1);
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_assert_eq(named_run(b->named, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	while (next(b, &m) && m.id != MSG_SAMPLE)
		;
	cr_assert_eq(next(b, &m), MSG_LOST);
	cr_expect_eq(m.lost.count, 1);
	bench_free(b);
}

#define KERNEL_SAMPLES 100

/* Whether each thing is defined before its use, in its epoch. */
struct defined {
	bool functions[2 * KERNEL_SAMPLES], frames[2 * KERNEL_SAMPLES], stacks[2 * KERNEL_SAMPLES];
	bool thread;
	unsigned samples;
};

static void look_at(struct defined *d, const struct msg *m)
{
	switch (m->id) {
	case MSG_THREAD:
		d->thread = true;
		break;
	case MSG_FUNCTION:
		d->functions[m->function.id % (2 * KERNEL_SAMPLES)] = true;
		break;
	case MSG_FRAME:
		cr_assert_eq(m->frame.functions.len, 1);
		cr_assert(d->functions[m->frame.functions.data[0] % (2 * KERNEL_SAMPLES)]);
		d->frames[m->frame.id] = true;
		break;
	case MSG_STACK:
		cr_assert_eq(m->stack.frames.len, 1);
		cr_assert(d->frames[m->stack.frames.data[0]]);
		d->stacks[m->stack.id] = true;
		break;
	case MSG_SAMPLE:
		cr_assert(d->thread && d->stacks[m->sample.stack]);
		d->samples++;
		break;
	default:
		break;
	}
}

Test(named, whichever_allocation_fails_no_sample_is_lost_or_without_its_definitions)
{
	starved = true;
	for (unsigned nth = 1; starved; nth++) {
		struct bench *b = bench_new(&NAMED_LIMITS);
		struct defined d = { .thread = false };
		struct msg m;
		int r;

		starves_in = nth;
		starved = false;
		hello(b);
		thread(b, 1);
		for (uint64_t i = 1; i <= KERNEL_SAMPLES; i++) {
			char name[1024];

			memset(name, 'a', sizeof(name));
			snprintf(name + sizeof(name) - 8, 8, "%u", (unsigned)i);
			kernel_sample(b, i, name);
			r = named_run(b->named, 2);
			cr_assert(r == 0 || (r == -ENOMEM && starved), "%d", r);
		}
		cr_assert_eq(named_run(b->named, 2), 0);
		r = named_end(b->named, END_DONE, 9);
		cr_assert(r == 0 || (r == -ENOMEM && starved), "%d", r);
		cr_assert_eq(named_end(b->named, END_DONE, 9), 0);
		starves_in = 0;
		cr_assert_eq(stream_flush(&b->out), 0);
		while (next(b, &m)) {
			if (b->in.new_epoch)
				d = (struct defined){ .samples = d.samples };
			b->in.new_epoch = false;
			look_at(&d, &m);
		}
		cr_assert_eq(d.samples, KERNEL_SAMPLES, "the %u. call", nth);
		bench_free(b);
		cr_assert_lt(nth, 10000);
	}
}

Test(filestore, over_the_budget_the_least_recently_used_is_closed)
{
	static struct filestore_file files[4];
	struct bench *b = bench_new(&NAMED_LIMITS);
	struct program *p;

	b->files.budget = 1;
	for (int i = 0; i < 4; i++) {
		files[i].file = (uint64_t)i + 1;
		filestore_want(&b->files, &files[i], 1);
		for (unsigned k = b->asked - 1; files[i].state == FILESTORE_ASKED; k = b->asked - 1)
			filestore_answer(&b->files, b->requests[k % 64],
					 files[i].program
						 ? -1
						 : open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
					 1);
		cr_assert_eq(filestore_get(&b->files, &files[i], 1, &p), 0);
		cr_assert_not_null(p);
		filestore_charge(&b->files, &files[i]);
		cr_expect_eq(b->files.open_count, 1);
		cr_expect_eq(b->files.evicted, (uint64_t)i);
	}
	cr_expect_eq(files[0].state, FILESTORE_CLOSED);
	filestore_tick(&b->files, 1 + FILESTORE_IDLE_NS);
	cr_expect_eq(b->files.open_count, 0);
	cr_expect_eq(b->files.bytes, 0);
	bench_free(b);
}

Test(idmap, what_was_put_is_found_until_removed)
{
	struct idmap m;
	uint64_t x = 1;

	cr_assert_eq(idmap_init(&m, 5000), 0);
	for (uint32_t i = 0; i < 5000; i++)
		cr_assert_eq(idmap_put(&m, (uint64_t)i * i + 1, i), 0);
	cr_expect_eq(idmap_put(&m, UINT64_MAX, 1), -ENOBUFS);
	cr_expect_eq(idmap_put(&m, 0, 1), -EINVAL);
	for (uint32_t i = 0; i < 5000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		if (x >> 63)
			idmap_remove(&m, (uint64_t)i * i + 1);
		else
			cr_assert_eq(idmap_get(&m, (uint64_t)i * i + 1), i);
	}
	x = 1;
	for (uint32_t i = 0; i < 5000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		cr_assert_eq(idmap_get(&m, (uint64_t)i * i + 1), x >> 63 ? IDMAP_NONE : i);
	}
	idmap_done(&m);
}

Test(functions, differ_by_every_field)
{
	struct functions t;
	struct function f = { .name = STR_LIT("ab"), .system_name = STR_LIT("c") };
	struct function g = { .name = STR_LIT("a"), .system_name = STR_LIT("bc") };
	struct function h = { .name = STR_LIT("ab"), .system_name = STR_LIT("c"), .start_line = 1 };
	uint64_t id;
	bool fresh;

	cr_assert_eq(functions_init(&t, 3, 1000), 0);
	cr_expect(functions_intern(&t, &f, 1, &id, &fresh) == 0 && id == 1 && fresh);
	cr_expect(functions_intern(&t, &g, 1, &id, &fresh) == 0 && id == 2 && fresh);
	cr_expect(functions_intern(&t, &h, 1, &id, &fresh) == 0 && id == 3 && fresh);
	cr_expect(functions_intern(&t, &g, 1, &id, &fresh) == 0 && id == 2 && !fresh);
	h.start_line = 2;
	cr_expect_eq(functions_intern(&t, &h, 1, &id, &fresh), -ENOBUFS);
	functions_done(&t);
}

/* --- generated code --- */

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
	m->b = bench_new(&NAMED_LIMITS);
	cr_assert_eq(jit_init(&m->jit, 8 << 20, ask_jit, m), 0);
	named_use_jit(m->b->named, &m->jit);
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
		bool map = there && m->asked[i].kind == JIT_PERF_MAP;

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
					    .kind = FRAME_NATIVE,
					    .offset = address,
					    .process = 1,
					    .flags = FRAME_LEAF } });
	take(m->b, (struct msg){ .id = MSG_STACK,
				 .stack = { .id = id, .frames = { &id, 1 }, .reason = reason } });
	take(m->b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = id, .thread = 1 } });
}

Test(named, generated_code_is_held_until_it_has_a_name_and_others_go_before)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	kernel_sample(b, 5, "f");
	cr_assert_eq(named_run(b->named, SECOND), 0);
	EXPECT(b, MSG_HELLO, MSG_PROCESS, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_THREAD,
	       MSG_SAMPLE);
	answer_jit(m, true, SECOND);
	cr_assert_eq(named_run(b->named, SECOND), 0);
	cr_expect_eq(named_counts(b->named).samples, 1);
	write_map(m, "1000 10 g\n");
	jit_tick(&m->jit, 2 * SECOND);
	cr_assert_eq(named_run(b->named, 2 * SECOND), 0);
	EXPECT(b, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_SAMPLE);
	cr_expect_eq(named_counts(b->named).named_frames, 2);
	map_bench_free(m);
}

/* A thread may end, or get another name, before its samples have theirs. */
Test(named, a_thread_that_ended_keeps_its_samples_that_are_held)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	take(b, (struct msg){ .id = MSG_THREAD_END, .thread_end = { .id = 1 } });
	cr_assert_eq(named_run(b->named, SECOND), 0);
	answer_jit(m, true, SECOND);
	write_map(m, "1000 10 g\n");
	jit_tick(&m->jit, 2 * SECOND);
	cr_assert_eq(named_run(b->named, 2 * SECOND), 0);
	cr_expect_eq(named_counts(b->named).samples, 1);
	EXPECT(b, MSG_HELLO, MSG_PROCESS, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_THREAD,
	       MSG_SAMPLE, MSG_THREAD_END);
	map_bench_free(m);
}

Test(named, the_last_lines_of_a_map_are_read_when_its_process_ends)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	cr_assert_eq(named_run(b->named, SECOND), 0);
	answer_jit(m, true, SECOND);
	write_map(m, "1000 10 g");
	take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	cr_assert_eq(named_run(b->named, SECOND), NAMED_WAIT, "the jitdump may be there now");
	answer_jit(m, false, SECOND);
	cr_assert_eq(named_run(b->named, SECOND), 0);
	EXPECT(b, MSG_HELLO, MSG_PROCESS, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_THREAD,
	       MSG_SAMPLE, MSG_PROCESS_END);
	cr_expect_eq(m->jit.open, 0);
	map_bench_free(m);
}

Test(named, at_the_end_a_map_is_asked_for_once_more)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	generated_sample(m, 4, 0x9008, 0);
	cr_assert_eq(named_run(b->named, SECOND), 0);
	answer_jit(m, false, SECOND);
	write_map(m, "1000 10 g\n");
	take(
		b, (struct msg) { .id = MSG_END });
	cr_assert_eq(named_run(b->named, SECOND + 1), NAMED_WAIT);
	answer_jit(m, true, SECOND + 1);
	cr_assert_eq(named_run(b->named, SECOND + 1), 0);
	EXPECT(b, MSG_HELLO, MSG_PROCESS, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_THREAD,
	       MSG_SAMPLE, MSG_FRAME, MSG_STACK, MSG_SAMPLE, MSG_END);
	cr_expect_eq(named_counts(b->named).named_frames, 1);
	map_bench_free(m);
}

Test(named, an_answer_that_does_not_come_delays_the_end_by_two_seconds)
{
	struct map_bench *m = map_bench_new();

	generated_sample(m, 3, 0x1008, 0);
	take(
		m->b, (struct msg) { .id = MSG_END });
	cr_assert_eq(named_run(m->b->named, SECOND), NAMED_WAIT);
	cr_assert_eq(named_run(m->b->named, SECOND + JIT_WAIT_NS), 0);
	cr_expect_eq(named_counts(m->b->named).samples, 1);
	cr_expect(named_ended(m->b->named));
	map_bench_free(m);
}

Test(named, no_sample_is_held_longer_than_a_minute)
{
	struct map_bench *m = map_bench_new();

	generated_sample(m, 3, 0x1008, 0);
	cr_assert_eq(named_run(m->b->named, SECOND), 0);
	answer_jit(m, true, SECOND);
	cr_assert_eq(named_run(m->b->named, 60 * SECOND), 0);
	cr_expect_eq(named_counts(m->b->named).samples, 0);
	cr_assert_eq(named_run(m->b->named, 62 * SECOND), 0);
	cr_expect_eq(named_counts(m->b->named).samples, 1);
	map_bench_free(m);
}

Test(named, an_address_where_nothing_is_mapped_is_not_held)
{
	struct map_bench *m = map_bench_new();

	generated_sample(m, 3, 0x1008, WALK_NO_MAPPING);
	cr_assert_eq(named_run(m->b->named, SECOND), 0);
	cr_expect_eq(named_counts(m->b->named).samples, 1);
	map_bench_free(m);
}

Test(named, more_samples_than_can_be_held_go_without_names)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	for (unsigned i = 1; i < HELD_SAMPLES_MAX + 100; i++) {
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 3, .thread = 1 } });
		if (named_full(b->named))
			cr_assert_eq(named_run(b->named, SECOND), 0);
	}
	cr_assert_eq(named_run(b->named, SECOND), 0);
	cr_expect_eq(named_counts(b->named).samples, 100);
	answer_jit(m, true, SECOND);
	take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	cr_assert_eq(named_run(b->named, SECOND), NAMED_WAIT);
	answer_jit(m, false, SECOND);
	cr_assert_eq(named_run(b->named, SECOND), 0);
	cr_expect_eq(named_counts(b->named).samples, HELD_SAMPLES_MAX + 100);
	map_bench_free(m);
}

Test(named, a_new_raw_epoch_sends_what_is_held_first)
{
	struct map_bench *m = map_bench_new();
	struct bench *b = m->b;

	generated_sample(m, 3, 0x1008, 0);
	cr_assert_eq(named_run(b->named, SECOND), 0);
	answer_jit(m, true, SECOND);
	write_map(m, "1000 10 g\n");
	cr_assert_eq(named_forget(b->named, SECOND), NAMED_WAIT, "the jitdump may be there now");
	answer_jit(m, false, SECOND);
	cr_assert_eq(named_forget(b->named, SECOND), 0);
	cr_expect_eq(named_counts(b->named).samples, 1);
	cr_expect_eq(named_counts(b->named).named_frames, 1);
	map_bench_free(m);
}
