/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "common/names/program/program.h"
#include "tests/unit/namer_fixture.h"

static bool starved; /* starves_in was reached */

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

Test(namer, definitions_are_sent_once_and_before_use)
{
	struct bench *b = bench_new(&NAMER_LIMITS);

	hello(b);
	thread(b, 1);
	kernel_sample(b, 5, "f");
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 5, .thread = 1 } });
	cr_assert_eq(namer_run(b->namer, 1), 0);
	EXPECT(b, MSG_HELLO, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD,
	       MSG_SAMPLE, MSG_SAMPLE);
	bench_free(b);
}

Test(namer, a_frame_of_an_unknown_kind_keeps_its_number)
{
	struct bench *b = bench_new(&NAMER_LIMITS);
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
	cr_assert_eq(namer_run(b->namer, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_HELLO);
	cr_assert_eq(next(b, &m), MSG_FILE);
	cr_assert_eq(next(b, &m), MSG_FRAME);
	cr_assert_eq(m.frame.kind, MSG_FRAME_KIND_MAX);
	cr_assert_eq(m.frame.file, 1);
	bench_free(b);
}

Test(namer, equal_functions_share_one_id)
{
	struct bench *b = bench_new(&NAMER_LIMITS);

	hello(b);
	thread(b, 1);
	kernel_sample(b, 5, "f");
	kernel_sample(b, 6, "f");
	cr_assert_eq(namer_run(b->namer, 1), 0);
	EXPECT(b, MSG_HELLO, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD,
	       MSG_SAMPLE, MSG_FRAME, MSG_STACK, MSG_SAMPLE);
	bench_free(b);
}

Test(namer, a_sample_waits_for_its_file_and_what_follows_waits_behind)
{
	struct bench *b = bench_new(&NAMER_LIMITS);

	hello(b);
	thread(b, 1);
	file_sample(b, 3);
	file_sample(b, 4);
	kernel_sample(b, 5, "f");
	cr_expect_eq(b->asked, 2, "both files are asked for at once");
	cr_assert_eq(namer_run(b->namer, SECOND), NAMER_WAIT);
	EXPECT(b, MSG_HELLO);
	filestore_answer(&b->files, b->requests[0], -1, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND), NAMER_WAIT);
	EXPECT(b, MSG_FILE, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD, MSG_SAMPLE);
	cr_assert_eq(namer_run(b->namer, SECOND), NAMER_WAIT);
	filestore_tick(&b->files, 1 + FILESTORE_WAIT_NS);
	cr_assert_eq(namer_run(b->namer, 1 + FILESTORE_WAIT_NS), 0,
		     "an answer that does not come is done without");
	EXPECT(b, MSG_FILE, MSG_FRAME, MSG_STACK, MSG_SAMPLE, MSG_FUNCTION, MSG_FRAME, MSG_STACK,
	       MSG_SAMPLE);
	cr_expect_eq(b->files.timed_out, 1);
	bench_free(b);
}

Test(namer, a_frame_says_that_its_file_is_gone)
{
	struct bench *b = bench_new(&NAMER_LIMITS);
	struct msg m;
	uint64_t flags = 0;

	hello(b);
	thread(b, 1);
	file_sample(b, 3);
	filestore_answer(&b->files, b->requests[0], -1, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	while (stream_next(&b->in, &m) == 0)
		flags |= m.id == MSG_FRAME ? m.frame.flags : 0;
	cr_expect(flags & MSG_FRAME_UNNAMED_FILE);
	bench_free(b);
}

/* The lookups that were announced first. */
static struct {
	uint64_t offsets[PROGRAM_EXPECTED];
	unsigned count, calls;
} announced;

void __wrap_program_expect(struct program *p, const uint64_t *offsets, unsigned count);
void __wrap_program_expect(struct program *p, const uint64_t *offsets, unsigned count)
{
	if (announced.calls++)
		return;
	memcpy(announced.offsets, offsets, count * sizeof(*offsets));
	announced.count = count;
}

/* A sample of a stack with one frame in file 3. */
static void sample_at(struct bench *b, uint64_t id, uint64_t offset, uint64_t thread)
{
	take(b, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = id,
					 .kind = MSG_FRAME_NATIVE,
					 .file = 3,
					 .offset = offset } });
	take(b, (struct msg){ .id = MSG_STACK, .stack = { .id = id, .frames = { &id, 1 } } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = id, .thread = thread } });
}

Test(namer, lookups_for_an_owners_waiting_samples_are_announced_together)
{
	struct bench *b = bench_new(&NAMER_LIMITS);

	hello(b);
	thread(b, 1);
	take(b, (struct msg){ .id = MSG_PROCESS,
			      .process = { .id = 2, .pid = 2, .owner = 9, .comm = STR_LIT("q") } });
	take(b, (struct msg){ .id = MSG_THREAD, .thread = { .id = 2, .process = 2, .tid = 2 } });
	take(b, (struct msg){ .id = MSG_FILE, .file = { .id = 3, .path = STR_LIT("/bin/x") } });
	sample_at(b, 10, 0x1001, 1);
	sample_at(b, 11, 0x2001, 1);
	sample_at(b, 12, 0x3001, 2);
	kernel_sample(b, 13, "f");
	sample_at(b, 14, 0x2001, 1);
	sample_at(b, 15, 0x1001, 1);
	sample_at(b, 16, 0x4001, 1);
	filestore_answer(&b->files, b->requests[0], open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
			 1);
	cr_assert_eq(namer_run(b->namer, 2), 0);
	cr_assert_eq(announced.count, 2);
	cr_assert(announced.offsets[0] == 0x2000 && announced.offsets[1] == 0x4000);
	/* Frames that were sent are not announced again. */
	announced.calls = 0;
	sample_at(b, 17, 0x5001, 1);
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 11, .thread = 1 } });
	cr_assert_eq(namer_run(b->namer, 2), 0);
	cr_assert(announced.calls && !announced.count);
	bench_free(b);
}

Test(namer, at_most_sixteen_requests_of_a_user_are_under_way)
{
	struct bench *b = bench_new(&NAMER_LIMITS);

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
	cr_assert_eq(namer_run(b->namer, 2), 0);
	cr_expect_eq(b->asked, 40);
	cr_expect_eq(namer_counts(b->namer).samples, 40);
	bench_free(b);
}

/* For the next output of prof-export, which does not know the former one. */
Test(namer, on_request_a_new_epoch_defines_again_what_is_used)
{
	struct namer_limits limits = NAMER_LIMITS;
	struct bench *b = bench_new(&limits);
	unsigned stacks = 0, samples = 0, epochs = 1;
	struct msg m;

	hello(b);
	thread(b, 1);
	kernel_sample(b, 1, "f");
	cr_assert_eq(namer_run(b->namer, 1), 0);
	namer_renew(b->namer);
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_assert_eq(namer_run(b->namer, 1), 0);
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_assert_eq(namer_run(b->namer, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	while (next(b, &m)) {
		epochs += b->in.new_epoch;
		b->in.new_epoch = false;
		stacks += m.id == MSG_STACK;
		samples += m.id == MSG_SAMPLE;
	}
	cr_expect_eq(epochs, 2);
	cr_expect_eq(stacks, 2, "once in each");
	cr_expect_eq(samples, 3);
	cr_expect_eq(stream_missing(&b->in), 0);
	bench_free(b);
}

Test(namer, at_the_ceiling_a_new_epoch_defines_live_functions_again)
{
	struct namer_limits limits = NAMER_LIMITS;
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
	cr_assert_eq(namer_run(b->namer, 1), 0);
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
	cr_expect_eq(namer_counts(b->namer).epochs, epochs);
	cr_expect_eq(stream_missing(&b->in), 0);
	bench_free(b);
}

Test(namer, samples_over_a_ceiling_of_definitions_are_counted_as_lost)
{
	struct namer_limits limits = NAMER_LIMITS;
	struct bench *b;
	struct msg m;
	uint64_t lost = 0, samples = 0;

	limits.stacks = 3;
	b = bench_new(&limits);
	hello(b);
	thread(b, 1);
	for (uint64_t i = 1; i <= 8; i++)
		kernel_sample(b, i, "f");
	cr_assert_eq(namer_run(b->namer, 1), 0);
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

Test(namer, a_process_that_is_defined_again_is_passed_on_again)
{
	struct bench *b = bench_new(&NAMER_LIMITS);
	struct msg m = { 0 };

	b->answer_at_once = true;
	hello(b);
	thread(b, 1);
	kernel_sample(b, 1, "f");
	cr_assert_eq(namer_run(b->namer, 1), 0);
	EXPECT(b, MSG_HELLO, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD,
	       MSG_SAMPLE);
	take(b, (struct msg){ .id = MSG_FILE, .file = { .id = 7, .path = STR_LIT("/bin/p") } });
	take(b, (struct msg){ .id = MSG_PROCESS,
			      .process = { .id = 1, .pid = 1, .comm = STR_LIT("q"), .exe = 7 } });
	for (int i = 0; i < 2; i++)
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_assert_eq(namer_run(b->namer, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_FILE);
	cr_assert_eq(next(b, &m), MSG_PROCESS);
	cr_expect_eq(m.process.exe, 7);
	cr_expect(str_eq(m.process.comm, STR_LIT("q")));
	EXPECT(b, MSG_SAMPLE, MSG_SAMPLE);
	/* Its thread still belongs to it, and ends with it. */
	take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_assert_eq(namer_run(b->namer, 1), 0);
	EXPECT(b, MSG_PROCESS_END, MSG_LOST);
	bench_free(b);
}

/* A receiver may then forget what came before. */
Test(namer, an_epoch_that_grew_long_ends_between_two_samples)
{
	struct namer_limits limits = NAMER_LIMITS;
	uint64_t samples = 0, epochs = 1;
	bool known = false;
	struct bench *b;
	struct msg m;

	limits.epoch = 4096;
	b = bench_new(&limits);
	b->out.batch_max = 512;
	hello(b);
	thread(b, 1);
	kernel_sample(b, 1, "f");
	for (unsigned i = 0; i < 5000; i++) {
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
		cr_assert_eq(namer_run(b->namer, 1), 0);
		cr_assert_leq(b->out.bytes, limits.epoch + 2 * b->out.batch_max);
		while (next(b, &m)) {
			if (b->in.new_epoch) {
				b->in.new_epoch = known = false;
				epochs++;
			}
			known |= m.id == MSG_STACK;
			samples += m.id == MSG_SAMPLE;
			cr_assert(m.id != MSG_SAMPLE || known);
		}
	}
	cr_assert_eq(stream_flush(&b->out), 0);
	while (next(b, &m))
		samples += m.id == MSG_SAMPLE;
	cr_expect_eq(samples, 5001);
	cr_expect_eq(stream_missing(&b->in), 0);
	cr_expect_eq(namer_counts(b->namer).epochs, epochs);
	cr_expect(epochs > 5 && epochs < 100);
	bench_free(b);
}

Test(namer, processes_that_ended_are_forgotten)
{
	struct namer_limits limits = NAMER_LIMITS;
	struct bench *b;

	limits.processes = limits.threads = 4;
	b = bench_new(&limits);
	hello(b);
	kernel_sample(b, 1, "f");
	cr_assert_eq(namer_run(b->namer, 1), 0);
	for (uint64_t id = 10; id < 5000; id++) {
		thread(b, id);
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = id } });
		take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = id } });
		cr_assert_eq(namer_run(b->namer, 1), 0);
		cr_assert_eq(stream_flush(&b->out), 0);
		for (struct msg m; next(b, &m);)
			;
	}
	cr_expect_eq(namer_counts(b->namer).samples, 4990);
	bench_free(b);
}

Test(namer, threads_that_ended_are_forgotten)
{
	struct namer_limits limits = NAMER_LIMITS;
	struct bench *b;

	limits.threads = 4;
	b = bench_new(&limits);
	hello(b);
	thread(b, 1);
	kernel_sample(b, 1, "f");
	cr_assert_eq(namer_run(b->namer, 1), 0);
	EXPECT(b, MSG_HELLO, MSG_FUNCTION, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD,
	       MSG_SAMPLE);
	for (uint64_t id = 10; id < 5000; id++) {
		take(b, (struct msg){ .id = MSG_THREAD, .thread = { .id = id, .process = 1 } });
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = id } });
		take(b, (struct msg){ .id = MSG_THREAD_END, .thread_end = { .id = id } });
		cr_assert_eq(namer_run(b->namer, 1), 0);
		EXPECT(b, MSG_THREAD, MSG_SAMPLE, MSG_THREAD_END);
	}
	cr_expect_eq(namer_counts(b->namer).lost, 0);
	/* The first one is still there. */
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	cr_assert_eq(namer_run(b->namer, 1), 0);
	EXPECT(b, MSG_SAMPLE, MSG_PROCESS_END);
	bench_free(b);
}

/* Files are mapped, sampled and unmapped one after another, in one epoch. */
Test(namer, files_that_ended_are_forgotten)
{
	struct namer_limits limits = NAMER_LIMITS;
	struct bench *b;

	limits.files = 4;
	b = bench_new(&limits);
	b->answer_at_once = true;
	hello(b);
	thread(b, 1);
	file_sample(b, 1);
	cr_assert_eq(namer_run(b->namer, 1), 0);
	EXPECT(b, MSG_HELLO, MSG_FILE, MSG_FRAME, MSG_STACK, MSG_PROCESS, MSG_THREAD, MSG_SAMPLE);
	for (uint64_t id = 10; id < 5000; id++) {
		file_sample(b, id);
		take(b, (struct msg){ .id = MSG_FILE_END, .file_end = { .id = id } });
		cr_assert_eq(namer_run(b->namer, 1), 0);
		EXPECT(b, MSG_FILE, MSG_FRAME, MSG_STACK, MSG_SAMPLE, MSG_FILE_END);
	}
	cr_expect_eq(namer_counts(b->namer).lost, 0);
	/* The first file is still there. A stack may also be there, in a file that has ended. */
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 10, .thread = 1 } });
	take(b, (struct msg){ .id = MSG_FILE_END, .file_end = { .id = 1 } });
	take(b, (struct msg){ .id = MSG_FILE_END, .file_end = { .id = 1 } });
	take(b, (struct msg){ .id = MSG_FILE_END, .file_end = { .id = 77777 } });
	cr_assert_eq(namer_run(b->namer, 1), 0);
	EXPECT(b, MSG_SAMPLE, MSG_SAMPLE, MSG_FILE_END);
	bench_free(b);
}

Test(namer, the_end_of_an_unsent_file_is_not_sent)
{
	struct bench *b = bench_new(&NAMER_LIMITS);

	hello(b);
	take(b, (struct msg){ .id = MSG_FILE, .file = { .id = 1, .path = STR_LIT("/bin/x") } });
	take(b, (struct msg){ .id = MSG_FILE_END, .file_end = { .id = 1 } });
	cr_assert_eq(namer_run(b->namer, 1), 0);
	EXPECT(b, MSG_HELLO);
	bench_free(b);
}

/* Messages that prof-symd only passes on are sent in each epoch just before their first use. */
Test(namer, definitions_are_passed_on_before_their_sample)
{
	static const uint64_t list[] = { 7, 8 };
	struct bench *b = bench_new(&NAMER_LIMITS);
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
	cr_assert_eq(namer_run(b->namer, 1), 0);
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

Test(namer, a_processs_cgroup_and_mappings_are_passed_on_with_it)
{
	struct bench *b = bench_new(&NAMER_LIMITS);
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
	cr_assert_eq(namer_run(b->namer, 1), 0);
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

	/* Later attributes are sent alone, and the latest value of a key counts. */
	for (int i = 0; i < 3; i++)
		take(b, (struct msg){ .id = MSG_ATTRIBUTE,
				      .attribute = { .process = 1,
						     .key = STR_LIT("service.name"),
						     .value = i < 2 ? STR_LIT("old")
								    : STR_LIT("new") } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .thread = 1 } });
	cr_assert_eq(namer_run(b->namer, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_ATTRIBUTE);
	cr_expect(str_eq(m.attribute.value, STR_LIT("new")));
	cr_assert_eq(next(b, &m), MSG_SAMPLE);
	cr_assert_eq(next(b, &m), 0);
	bench_free(b);
}

Test(namer, a_file_that_is_defined_again_is_passed_on_again)
{
	static const uint64_t segments[] = { 0, 4096, 0x400000 };
	struct bench *b = bench_new(&NAMER_LIMITS);
	struct msg m;

	b->answer_at_once = true;
	hello(b);
	thread(b, 1);
	file_sample(b, 1);
	cr_assert_eq(namer_run(b->namer, 1), 0);
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
	cr_assert_eq(namer_run(b->namer, 1), 0);
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

Test(namer, a_stream_without_an_end_gets_one)
{
	struct bench *b = bench_new(&NAMER_LIMITS);
	struct msg m;

	hello(b);
	cr_assert_eq(namer_end(b->namer, MSG_END_PEER_LOST, 7), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(next(b, &m), MSG_HELLO);
	cr_expect_eq(m.hello.kind, MSG_STREAM_NAMED);
	cr_assert_eq(next(b, &m), MSG_END);
	cr_expect_eq(m.end.reason, MSG_END_PEER_LOST);
	cr_expect(namer_ended(b->namer));
	bench_free(b);
}

Test(namer, ids_of_an_older_raw_epoch_are_void)
{
	struct bench *b = bench_new(&NAMER_LIMITS);
	struct msg m;

	hello(b);
	thread(b, 1);
	kernel_sample(b, 1, "old");
	cr_assert_eq(namer_run(b->namer, 1), 0);
	cr_assert_eq(namer_forget(b->namer, 1), 0);
	thread(b, 1);
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_assert_eq(namer_run(b->namer, 1), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	while (next(b, &m) && m.id != MSG_SAMPLE)
		;
	cr_assert_eq(next(b, &m), MSG_LOST);
	cr_expect_eq(m.lost.count, 1);
	bench_free(b);
}

#define KERNEL_SAMPLES 100

/* Whether each thing is defined in its epoch before it is used. */
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

Test(namer, a_failed_allocation_loses_no_sample_or_definition)
{
	starved = true;
	for (unsigned nth = 1; starved; nth++) {
		struct bench *b = bench_new(&NAMER_LIMITS);
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
			r = namer_run(b->namer, 2);
			cr_assert(r == 0 || (r == -ENOMEM && starved), "%d", r);
		}
		cr_assert_eq(namer_run(b->namer, 2), 0);
		r = namer_end(b->namer, MSG_END_DONE, 9);
		cr_assert(r == 0 || (r == -ENOMEM && starved), "%d", r);
		cr_assert_eq(namer_end(b->namer, MSG_END_DONE, 9), 0);
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
