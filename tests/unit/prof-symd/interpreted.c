/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreted frames in the named stream: a file that contains a runtime, and the memory of its
 * process. The test decides when requests are answered. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/pycapture.h"
#include "tools/prof-symd/stream/namer_internal.h"

#define SECOND 1000000000ull
#define LIBRARY "tests/fuzz/corpus/runtime/key-of-libc" /* of 3.11 */
#define LIBRARY_FILE 3
#define LIBRARY_FRAME 90
#define OTHER "tests/fuzz/corpus/runtime/key" /* of 3.9 */
#define OTHER_FILE 4
#define OTHER_FRAME 91

struct bench {
	struct capture *k;
	struct filestore files;
	struct objects *objects;
	struct stream_out out;
	struct stream_in in;
	struct namer *namer;
	uint64_t file_request; /* that was not answered yet */
	struct objects_request rq;
	uint64_t addresses[OBJECTS_PIECES], lengths[OBJECTS_PIECES];
	unsigned asked, told, none;
	int tell_says;
	struct runtime_build build; /* as told */
};

static int to_in(void *ctx, struct span batch)
{
	struct bench *b = ctx;

	return stream_feed(&b->in, batch);
}

static int ask_file(void *ctx, const struct filestore_request *rq)
{
	struct bench *b = ctx;

	if (rq->want == PROGRAM_WANTS_NOTHING)
		b->file_request = rq->id;
	else
		filestore_answer(&b->files, rq->id, -1, SECOND);
	return 0;
}

static int ask_memory(void *ctx, const struct objects_request *rq)
{
	struct bench *b = ctx;

	b->rq = *rq;
	memcpy(b->addresses, rq->addresses.data, rq->addresses.len * 8);
	memcpy(b->lengths, rq->lengths.data, rq->lengths.len * 8);
	b->asked++;
	return 0;
}

static int tell(void *ctx, uint64_t file, const struct runtime_build *build)
{
	struct bench *b = ctx;

	cr_expect(file == LIBRARY_FILE || file == OTHER_FILE);
	b->told += b->tell_says == 0;
	b->none += !build;
	if (build)
		b->build = *build;
	return b->tell_says;
}

static void take(struct bench *b, struct msg m)
{
	cr_assert_eq(namer_take(b->namer, &m, SECOND), 0);
}

/* Definitions that every epoch repeats. */
static void define(struct bench *b)
{
	take(b, (struct msg){ .id = MSG_PROCESS,
			      .process = { .id = 1, .pid = 10, .comm = STR_LIT("p") } });
	take(b, (struct msg){ .id = MSG_THREAD, .thread = { .id = 1, .process = 1, .tid = 10 } });
	take(b, (struct msg){ .id = MSG_FILE,
			      .file = { .id = LIBRARY_FILE, .path = STR_LIT("/lib/some.so") } });
	take(b, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = LIBRARY_FRAME,
					 .kind = MSG_FRAME_NATIVE,
					 .file = LIBRARY_FILE,
					 .offset = 0x460 } });
}

static struct bench *bench_new(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	cr_assert(b);
	b->k = capture_open("tests/data/python/3.11.txt");
	filestore_init(&b->files, FILESTORE_BUDGET, FILESTORE_BUDGET, ask_file, b);
	stream_in_init(&b->in);
	stream_out_init(&b->out, 65536, to_in, b);
	cr_assert_eq(objects_new(ask_memory, b, &b->objects), 0);
	cr_assert_eq(namer_new(&NAMER_LIMITS, &b->files, &b->out, &b->namer), 0);
	namer_use_objects(b->namer, b->objects, tell, b);
	take(b, (struct msg){ .id = MSG_HELLO, .hello = { .schema = MSG_SCHEMA } });
	define(b);
	return b;
}

static void bench_free(struct bench *b)
{
	namer_free(b->namer);
	objects_free(b->objects);
	stream_in_done(&b->in);
	stream_out_done(&b->out);
	capture_close(b->k);
	free(b);
}

/* The fakes lack the string that marks a runtime, so it is appended. */
static int open_marked(const char *path)
{
	const char *mark = runtime_mark(RUNTIME_PYTHON);
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("marked", MFD_CLOEXEC);
	char bytes[4096];
	ssize_t n;

	cr_assert(from >= 0 && to >= 0);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		cr_assert_eq(write(to, bytes, (size_t)n), n);
	n = (ssize_t)strlen(mark) + 1;
	cr_assert_eq(write(to, mark, (size_t)n), n);
	close(from);
	return to;
}

static void open_file(struct bench *b, const char *path)
{
	uint64_t id = b->file_request;

	b->file_request = 0;
	filestore_answer(&b->files, id, open_marked(path), SECOND);
}

static void open_library(struct bench *b)
{
	open_file(b, LIBRARY);
}

/* Frame and stack i: object i of the runtime in a file, beside a native frame. */
static void object_in_stack(struct bench *b, uint64_t i, uint64_t file,
			    const uint64_t frames[static 2])
{
	uint64_t address = b->k->objects[i].address;

	take(b, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = i + 1,
					 .kind = MSG_FRAME_INTERPRETED,
					 .process = 1,
					 .file = file,
					 .runtime = RUNTIME_PYTHON,
					 .offset = address,
					 .mark = check_of(b->k, address) << RUNTIME_CHECK_SHIFT |
						 RUNTIME_POSITION_MASK } });
	take(b, (struct msg){ .id = MSG_STACK, .stack = { .id = i + 1, .frames = { frames, 2 } } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = i + 1, .thread = 1 } });
}

static void object_sample(struct bench *b, uint64_t i)
{
	object_in_stack(b, i, LIBRARY_FILE, (uint64_t[]){ i + 1, LIBRARY_FRAME });
}

static void answer_memory_at(struct bench *b, uint64_t status, uint64_t now_ns)
{
	static uint8_t bytes[OBJECTS_BYTES];
	uint64_t lengths[OBJECTS_PIECES];
	struct msg_memory_answer m = { .id = b->rq.id, .status = status };
	size_t used = 0;

	for (uint32_t i = 0; i < b->rq.addresses.len && !status; i++) {
		struct span s = capture_read(b->k, b->addresses[i], b->lengths[i]);

		if (s.len)
			memcpy(bytes + used, s.data, s.len);
		used += s.len;
		lengths[i] = s.len;
	}
	if (!status) {
		m.lengths = (struct msg_list){ .data = lengths, .len = b->rq.addresses.len };
		m.bytes = (struct span){ .data = bytes, .len = used };
	}
	cr_assert_eq(objects_answer(b->objects, &m, now_ns), 0);
}

static void answer_memory(struct bench *b, uint64_t status)
{
	answer_memory_at(b, status, SECOND);
}

static void settle_at(struct bench *b, uint64_t now_ns)
{
	unsigned before;

	do {
		before = b->asked;
		cr_assert_eq(objects_send(b->objects, now_ns), 0);
		if (b->asked != before)
			answer_memory_at(b, 0, now_ns);
	} while (b->asked != before);
}

static void settle(struct bench *b)
{
	settle_at(b, SECOND);
}

/* The next message of this kind. */
static bool next(struct bench *b, enum msg_id id, struct msg *ret)
{
	cr_assert_eq(stream_flush(&b->out), 0);
	for (;;) {
		int r = stream_next(&b->in, ret);

		cr_assert(r == 0 || r == STREAM_AGAIN);
		if (r)
			return false;
		if (ret->id == id)
			return true;
	}
}

Test(interpreted, a_file_with_a_runtime_is_reported_once)
{
	struct bench *b = bench_new();
	struct msg m;

	cr_expect_neq(b->file_request, 0);
	b->tell_says = -EAGAIN;
	open_library(b);
	cr_expect_eq(b->told, 0);
	b->tell_says = 0;
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(b->told, 1);
	cr_expect(b->build.known);
	cr_expect_str_eq(b->build.name, "CPython 3.11.2");
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(b->told, 1);
	next(b, MSG_END, &m);
	bench_free(b);
}

/* A file that only has the name of an interpreter is reported as none. */
Test(interpreted, a_file_that_was_offered_is_looked_at_before_anything_is_named)
{
	struct bench *b = bench_new();

	open_library(b);
	cr_expect_eq(namer_looks_until(b->namer), 0);
	take(b, (struct msg){ .id = MSG_FILE,
			      .file = { .id = OTHER_FILE,
					.path = STR_LIT("/usr/bin/python-config"),
					.flags = MSG_FILE_OFFERED } });
	cr_expect_gt(namer_looks_until(b->namer), SECOND);
	cr_assert_neq(b->file_request, 0);
	filestore_answer(&b->files, b->file_request, open("/usr/bin/true", O_RDONLY | O_CLOEXEC),
			 SECOND);
	cr_expect_eq(namer_looks_until(b->namer), 0);
	cr_expect_eq(b->none, 1);
	cr_expect_eq(b->told, 2);
	bench_free(b);
}

Test(interpreted, a_sample_waits_for_the_names_of_its_frames)
{
	struct bench *b = bench_new();
	struct msg m;

	object_sample(b, 0);
	cr_expect_eq(namer_run(b->namer, SECOND), NAMER_WAIT); /* for the file */
	open_library(b);
	object_sample(b, 1); /* its build is known: requests for it have this value */
	cr_expect_eq(namer_run(b->namer, SECOND), NAMER_WAIT);
	settle(b);
	cr_expect_leq(b->asked, 3);
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert(next(b, MSG_FUNCTION, &m));
		if (i == 0 && str_eq(m.function.system_name, STR_LIT("_PyEval_EvalFrameDefault")))
			cr_assert(next(b, MSG_FUNCTION, &m));
		cr_expect(str_eq(m.function.system_name, str_from(b->k->objects[i].name)));
		cr_expect(str_eq(m.function.source, str_from(b->k->objects[i].source)));
		cr_expect_eq(m.function.start_line, b->k->objects[i].first);
		cr_assert(next(b, MSG_FRAME, &m));
		cr_expect_eq(m.frame.kind, MSG_FRAME_INTERPRETED);
		cr_expect_eq(m.frame.runtime, RUNTIME_PYTHON);
		cr_expect_eq(m.frame.file, LIBRARY_FILE);
		cr_expect_eq(m.frame.address, 0);
		cr_assert_eq(m.frame.functions.len, 1);
		cr_expect_eq(m.frame.lines.data[0], b->k->objects[i].first);
		cr_assert(next(b, MSG_STACK, &m));
		cr_expect_eq(m.stack.frames.len, 2);
	}
	bench_free(b);
}

Test(interpreted, frames_that_came_before_their_file_was_open_are_asked_for_at_once)
{
	struct bench *b = bench_new();

	object_sample(b, 0);
	object_sample(b, 1);
	open_library(b);
	cr_assert_eq(objects_send(b->objects, SECOND), 0);
	cr_expect_eq(b->asked, 1);
	cr_expect_geq(b->rq.addresses.len, 2);
	bench_free(b);
}

Test(interpreted, a_frame_of_no_file_has_no_name)
{
	struct bench *b = bench_new();
	struct msg m;

	open_library(b);
	object_in_stack(b, 0, 0, (uint64_t[]){ 1, LIBRARY_FRAME });
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	cr_assert(next(b, MSG_FRAME, &m));
	cr_expect_eq(m.frame.kind, MSG_FRAME_INTERPRETED);
	cr_expect_eq(m.frame.functions.len, 0);
	cr_assert(next(b, MSG_SAMPLE, &m));
	bench_free(b);
}

Test(interpreted, of_two_runtimes_in_a_process_each_names_its_own)
{
	struct bench *b = bench_new();
	struct msg m;

	open_library(b);
	take(b, (struct msg){ .id = MSG_FILE,
			      .file = { .id = OTHER_FILE, .path = STR_LIT("/lib/other.so") } });
	take(b, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = OTHER_FRAME,
					 .kind = MSG_FRAME_NATIVE,
					 .file = OTHER_FILE,
					 .offset = 0x460 } });
	open_file(b, OTHER);
	cr_assert_eq(b->told, 2);
	/* This is none of its objects. */
	object_in_stack(b, 0, OTHER_FILE, (uint64_t[]){ LIBRARY_FRAME, 1 });
	object_in_stack(b, 1, LIBRARY_FILE, (uint64_t[]){ OTHER_FRAME, 2 });
	settle(b);
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	do
		cr_assert(next(b, MSG_FUNCTION, &m));
	while (!str_eq(m.function.name, STR_LIT("[python: gone]")));
	do
		cr_assert(next(b, MSG_FUNCTION, &m));
	while (!str_eq(m.function.system_name, str_from(b->k->objects[1].name)));
	bench_free(b);
}

Test(interpreted, a_frame_says_when_memory_is_not_read)
{
	struct bench *b = bench_new();
	struct msg m;

	open_library(b);
	object_sample(b, 0);
	cr_assert_eq(objects_send(b->objects, SECOND), 0);
	answer_memory(b, EPERM);
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	cr_assert(next(b, MSG_FUNCTION, &m));
	cr_expect(str_eq(m.function.name, STR_LIT("[python: memory not read]")));
	bench_free(b);
}

Test(interpreted, an_answer_that_does_not_come_ends_the_wait)
{
	struct bench *b = bench_new();
	struct msg m;

	open_library(b);
	object_sample(b, 0);
	cr_assert_eq(objects_send(b->objects, SECOND), 0);
	cr_expect_eq(namer_run(b->namer, SECOND), NAMER_WAIT);
	cr_expect_eq(namer_run(b->namer, SECOND + OBJECTS_WAIT_NS), 0);
	cr_assert(next(b, MSG_FUNCTION, &m));
	cr_expect(str_eq(m.function.name, STR_LIT("[python: gone]")));
	bench_free(b);
}

Test(interpreted, a_name_that_comes_later_is_sent_with_the_next_sample)
{
	const uint64_t gone_ns = SECOND + OBJECTS_WAIT_NS, again_ns = gone_ns + OBJECTS_RETRY_NS;
	struct bench *b = bench_new();
	struct msg m;

	open_library(b);
	object_sample(b, 0);
	cr_assert_eq(objects_send(b->objects, SECOND), 0);
	cr_expect_eq(namer_run(b->namer, gone_ns), 0);
	cr_assert_eq(objects_send(b->objects, gone_ns), 0);
	cr_assert(next(b, MSG_FUNCTION, &m));
	cr_expect(str_eq(m.function.name, STR_LIT("[python: gone]")));
	cr_assert(next(b, MSG_SAMPLE, &m));
	/* It is requested again, but nothing waits for it. */
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_expect_eq(namer_run(b->namer, again_ns), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	cr_assert_eq(stream_next(&b->in, &m), 0);
	cr_assert_eq(m.id, MSG_SAMPLE);
	settle_at(b, again_ns);
	for (int i = 0; i < 2; i++)
		take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .thread = 1 } });
	cr_expect_eq(namer_run(b->namer, again_ns), 0);
	cr_assert(next(b, MSG_FUNCTION, &m));
	cr_expect(str_eq(m.function.system_name, str_from(b->k->objects[0].name)));
	cr_assert(next(b, MSG_FRAME, &m));
	cr_expect_eq(m.frame.id, 1);
	cr_assert(next(b, MSG_STACK, &m));
	cr_expect_eq(m.stack.id, 1);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(stream_next(&b->in, &m), 0);
		cr_assert_eq(m.id, MSG_SAMPLE);
	}
	bench_free(b);
}

Test(interpreted, the_runtimes_own_frames_are_left_out)
{
	struct bench *b = bench_new();
	struct python_naming n;
	struct msg m;

	memcpy(&n, b->k->build.naming, sizeof(n));
	for (size_t i = 0; i < b->k->count; i++)
		if (b->k->pieces[i].address == b->k->objects[0].address)
			memset(b->k->pieces[i].bytes + n.code_traceable, 0x7f, 4);
	open_library(b);
	object_sample(b, 0);
	settle(b);
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	cr_assert(next(b, MSG_STACK, &m));
	cr_assert_eq(m.stack.frames.len, 1);
	cr_expect_eq(m.stack.frames.data[0], LIBRARY_FRAME);
	bench_free(b);
}

Test(interpreted, a_process_that_ends_is_forgotten)
{
	struct bench *b = bench_new();

	open_library(b);
	object_sample(b, 0);
	settle(b);
	cr_expect_eq(objects_counts(b->objects).kept, 1);
	take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(objects_counts(b->objects).kept, 0);
	bench_free(b);
}

static void begin_epoch(struct bench *b)
{
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(namer_forget(b->namer, SECOND), 0);
	define(b);
}

Test(interpreted, a_new_epoch_does_not_wait_for_owners_over_their_allowance)
{
	struct bench *b = bench_new();

	open_library(b);
	object_sample(b, 0);
	cr_assert_eq(objects_send(b->objects, SECOND), 0); /* and is never answered */
	namer_take_turns(b->namer, SECOND, NULL);
	b->namer->epoch_ns = SECOND;
	naming_turns_spend(&b->namer->turns, 0, 100 * SECOND, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND), NAMER_WAIT);
	cr_expect_eq(namer_forget(b->namer, SECOND), NAMER_WAIT);
	cr_expect_eq(namer_forget(b->namer, SECOND + SECOND / 32), 0);
	cr_expect_lt(SECOND / 32, OBJECTS_WAIT_NS);
	bench_free(b);
}

Test(interpreted, a_new_epoch_describes_the_file_again)
{
	struct bench *b = bench_new();

	open_library(b);
	object_sample(b, 0);
	settle(b);
	begin_epoch(b);
	open_library(b);
	cr_expect_eq(b->told, 2);
	bench_free(b);
}

Test(interpreted, names_of_an_older_epoch_serve_without_asking)
{
	struct bench *b = bench_new();
	struct msg m;

	open_library(b);
	object_sample(b, 0);
	settle(b);
	begin_epoch(b);
	while (next(b, MSG_SAMPLE, &m))
		;
	open_library(b);
	unsigned asked = b->asked;
	object_sample(b, 0);
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(b->asked, asked);
	cr_assert(next(b, MSG_FUNCTION, &m));
	if (str_eq(m.function.system_name, STR_LIT("_PyEval_EvalFrameDefault")))
		cr_assert(next(b, MSG_FUNCTION, &m));
	cr_expect(str_eq(m.function.system_name, str_from(b->k->objects[0].name)));
	cr_assert(next(b, MSG_SAMPLE, &m));
	bench_free(b);
}

Test(interpreted, code_freed_by_a_new_epoch_is_shown_as_gone)
{
	struct bench *b = bench_new();
	struct msg m;

	open_library(b);
	begin_epoch(b);
	open_library(b);
	object_sample(b, 0);
	cr_assert_eq(objects_send(b->objects, SECOND), 0);
	answer_memory(b, ESRCH);
	cr_expect_eq(namer_run(b->namer, SECOND), 0);
	cr_assert(next(b, MSG_FUNCTION, &m));
	if (str_eq(m.function.system_name, STR_LIT("_PyEval_EvalFrameDefault")))
		cr_assert(next(b, MSG_FUNCTION, &m));
	cr_expect(str_eq(m.function.system_name, STR_LIT("[python: gone]")));
	cr_assert(next(b, MSG_SAMPLE, &m));
	bench_free(b);
}
