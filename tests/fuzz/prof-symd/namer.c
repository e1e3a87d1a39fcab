/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a byte of flags, then messages of a raw stream. They are turned into the named stream.
 * Among them are answers to requests for files, which contain an interpreter, and for memory. An
 * interpreted frame without a check value gets that of the last object at its address, since no
 * fuzzer would guess it.
 *
 * Every sample is accounted for, the named stream defines each id before it uses it, and nothing
 * waits forever.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/fuzz/memory_file.h"
#include "common/base/tables/idmap.h"
#include "tools/prof-symd/stream/namer.h"
#include "common/names/runtime/python/python.h"
#include "tests/fuzz/must.h"

#define LIBRARY "tests/fuzz/corpus/runtime/key-of-libc" /* of 3.11 */
#define MINOR 11
#define SECOND 1000000000ull
#define PENDING 16
#define OBJECTS 64
#define TURNS 600 /* seconds: all deadlines of all files, one after the other */

enum flags { SMALL = 1, NOT_YET = 2, NO_FILES = 4 };
enum defined {
	PROCESSES,
	THREADS,
	FILES,
	FUNCTIONS,
	FRAMES,
	STACKS,
	SOURCES,
	LABELS,
	LISTS,
	LINKS,
	CGROUPS,
	KINDS
};

struct bench {
	uint8_t flags;
	unsigned calls;
	uint64_t now_ns, samples_in, samples_out, objects[PENDING], files[PENDING];
	unsigned object_count, file_count;
	struct {
		uint64_t address, check;
	} checks[OBJECTS];
	struct idmap defined[KINDS];
	struct msg_scratch scratch;
	uint64_t epoch;
	struct filestore store;
	struct objects *of;
	struct stream_out out;
	struct namer *namer;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Constant seeds of hash tables, so that findings can be reproduced. */
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags)
{
	(void)flags;
	memset(to, 0x5a, n);
	return (ssize_t)n;
}

/* --- output --- */

static void define(struct bench *b, enum defined kind, uint64_t id)
{
	must(id != 0 && idmap_put(&b->defined[kind], id, 1) == 0);
}

static void expect(const struct bench *b, enum defined kind, uint64_t id)
{
	must(!id || idmap_get(&b->defined[kind], id) != IDMAP_NONE);
}

static void expect_one(const struct bench *b, enum defined kind, uint64_t id)
{
	must(idmap_get(&b->defined[kind], id) != IDMAP_NONE);
}

static void expect_all(const struct bench *b, enum defined kind, struct msg_list ids)
{
	for (uint32_t i = 0; i < ids.len; i++)
		must(ids.data[i] && idmap_get(&b->defined[kind], ids.data[i]) != IDMAP_NONE);
}

static void message_out(struct bench *b, const struct msg *m)
{
	switch (m->id) {
	case MSG_BATCH_HEAD:
		for (int i = 0; i < KINDS && m->batch.epoch != b->epoch; i++)
			idmap_clear(&b->defined[i]);
		b->epoch = m->batch.epoch;
		break;
	case MSG_PROCESS:
		expect(b, FILES, m->process.exe);
		expect(b, CGROUPS, m->process.cgroup);
		define(b, PROCESSES, m->process.id);
		break;
	case MSG_THREAD:
		expect(b, PROCESSES, m->thread.process);
		define(b, THREADS, m->thread.id);
		break;
	case MSG_FILE:
		define(b, FILES, m->file.id);
		break;
	case MSG_FUNCTION:
		must(m->function.name.len > 0);
		define(b, FUNCTIONS, m->function.id);
		break;
	case MSG_FRAME:
		expect(b, PROCESSES, m->frame.process);
		expect(b, FILES, m->frame.file);
		expect_all(b, FUNCTIONS, m->frame.functions);
		must(m->frame.functions.len == m->frame.lines.len);
		define(b, FRAMES, m->frame.id);
		break;
	case MSG_STACK:
		expect(b, FILES, m->stack.at_file);
		expect_all(b, FRAMES, m->stack.frames);
		define(b, STACKS, m->stack.id);
		break;
	case MSG_SAMPLE:
		expect(b, STACKS, m->sample.stack);
		expect(b, THREADS, m->sample.thread);
		expect(b, SOURCES, m->sample.source);
		expect(b, LISTS, m->sample.labels);
		expect(b, LINKS, m->sample.link);
		b->samples_out++;
		break;
	case MSG_SOURCE:
		define(b, SOURCES, m->source.id);
		break;
	case MSG_LABEL:
		define(b, LABELS, m->label.id);
		break;
	case MSG_LABELS:
		define(b, LISTS, m->labels.id);
		break;
	case MSG_LINK:
		define(b, LINKS, m->link.id);
		break;
	case MSG_CGROUP:
		define(b, CGROUPS, m->cgroup.id);
		break;
	case MSG_ATTRIBUTE:
		expect_one(b, PROCESSES, m->attribute.process);
		break;
	case MSG_MAPPING:
		expect_one(b, PROCESSES, m->mapping.process);
		expect_one(b, FILES, m->mapping.file);
		break;
	case MSG_THREAD_END:
		expect_one(b, THREADS, m->thread_end.id);
		idmap_remove(&b->defined[THREADS], m->thread_end.id);
		break;
	case MSG_FILE_END:
		expect_one(b, FILES, m->file_end.id);
		idmap_remove(&b->defined[FILES], m->file_end.id);
		break;
	default:
		break;
	}
}

static int batch_out(void *ctx, struct span batch)
{
	struct bench *b = ctx;

	while (batch.len) {
		struct msg m;

		must(msg_decode(&batch, &b->scratch, &m) == 0);
		message_out(b, &m);
	}
	return 0;
}

/* --- requests --- */

static int ask_file(void *ctx, const struct filestore_request *rq)
{
	struct bench *b = ctx;

	if (b->flags & NO_FILES)
		return -ENOENT;
	if (rq->want != PROGRAM_WANTS_NOTHING || b->file_count == PENDING)
		filestore_answer(&b->store, rq->id, -1, b->now_ns);
	else
		b->files[b->file_count++] = rq->id;
	return 0;
}

static int ask_memory(void *ctx, const struct objects_request *rq)
{
	struct bench *b = ctx;
	uint64_t bytes = 0;

	must(rq->addresses.len == rq->lengths.len && rq->addresses.len <= OBJECTS_PIECES);
	for (uint32_t i = 0; i < rq->lengths.len; i++) {
		must(rq->addresses.data[i] && rq->lengths.data[i]);
		bytes += rq->lengths.data[i];
	}
	must(bytes && bytes <= OBJECTS_BYTES);
	if (b->flags & NOT_YET && b->calls++ % 2 == 0)
		return -EAGAIN;
	if (b->object_count == PENDING)
		return -EIO;
	b->objects[b->object_count++] = rq->id;
	return 0;
}

static int tell(void *ctx, uint64_t file, const struct runtime_build *build)
{
	struct bench *b = ctx;

	(void)file;
	must(!build || build->config.runtime == RUNTIME_PYTHON);
	return b->flags & NOT_YET && b->calls++ % 2 == 0 ? -EAGAIN : 0;
}

/* A fake interpreter, followed by the mark of a runtime. */
static int library(void)
{
	static uint8_t bytes[64 << 10];
	static size_t size;
	const char *mark = runtime_mark(RUNTIME_PYTHON);

	if (!size) {
		const int fd = open(LIBRARY, O_RDONLY | O_CLOEXEC);
		const ssize_t n = read(fd, bytes, sizeof(bytes));

		must(fd >= 0 && n > 0 && (size_t)n + strlen(mark) < sizeof(bytes));
		close(fd);
		memcpy(bytes + n, mark, strlen(mark) + 1);
		size = (size_t)n + strlen(mark) + 1;
	}
	return memory_file_open(bytes, size);
}

/* --- input --- */

/* The check value that a walk would give: of the object's bytes and its name's. */
static uint64_t check_of(const struct msg_object *m)
{
	struct span rest = m->bytes, code, name = { 0 };
	struct python_config c;
	struct python_naming n;

	must(python_layout(MINOR, 0, NULL, &c, &n));
	if (m->lengths.len < 2 || m->lengths.data[0] < n.code_bytes ||
	    m->lengths.data[0] > rest.len || !span_take(&rest, m->lengths.data[0], &code))
		return 0;
	if (m->lengths.data[1] <= rest.len)
		must(span_take(&rest, m->lengths.data[1], &name));
	return python_sum(&n, code.data, name);
}

static void take(struct bench *b, struct msg *m)
{
	uint64_t *kept;

	if (m->id == MSG_OBJECT) {
		kept = &b->checks[m->object.address % OBJECTS].check;
		b->checks[m->object.address % OBJECTS].address = m->object.address;
		*kept = m->object.check ? m->object.check : check_of(&m->object);
		m->object.check = *kept;
	} else if (m->id == MSG_FRAME && m->frame.kind == MSG_FRAME_INTERPRETED &&
		   !(m->frame.mark >> RUNTIME_CHECK_SHIFT) &&
		   b->checks[m->frame.offset % OBJECTS].address == m->frame.offset) {
		m->frame.mark |= b->checks[m->frame.offset % OBJECTS].check << RUNTIME_CHECK_SHIFT;
	}
	b->samples_in += m->id == MSG_SAMPLE;
	must(namer_take(b->namer, m, b->now_ns) == 0);
}

/* Returns 0 if everything was sent, or NAMER_WAIT. */
static int turn(struct bench *b)
{
	filestore_tick(&b->store, b->now_ns);
	must(objects_send(b->of, b->now_ns) == 0);
	const int r = namer_run(b->namer, b->now_ns);

	must(r == 0 || r == NAMER_WAIT);
	return r;
}

static void settle(struct bench *b)
{
	for (int i = 0; turn(b); i++) {
		must(i < TURNS);
		b->now_ns += SECOND;
	}
}

static void message_in(struct bench *b, struct msg *m)
{
	switch (m->id) {
	case MSG_HELLO:
		break;
	case MSG_BATCH_HEAD: /* a new epoch; the queue before it must be empty */
		settle(b);
		for (int i = 0; !namer_ended(b->namer) && namer_forget(b->namer, b->now_ns); i++) {
			must(i < TURNS);
			b->now_ns += SECOND;
		}
		break;
	case MSG_FILE_ANSWER:
		if (b->file_count)
			filestore_answer(&b->store, b->files[--b->file_count],
					 m->file_answer.status ? -1 : library(), b->now_ns);
		break;
	case MSG_MEMORY_ANSWER:
		if (b->object_count)
			m->memory_answer.id = b->objects[--b->object_count];
		must(objects_answer(b->of, &m->memory_answer, b->now_ns) == 0);
		break;
	case MSG_CLOCK:
		b->now_ns += m->clock.mono_ns % (40 * SECOND);
		take(b, m);
		break;
	default:
		take(b, m);
	}
}

static void end(struct bench *b)
{
	int r = NAMER_WAIT;

	settle(b);
	for (int i = 0; r && i < TURNS; i++) {
		r = namer_end(b->namer, MSG_END_DONE, b->now_ns);
		must(r == 0 || r == NAMER_WAIT);
		b->now_ns += SECOND;
	}
	must(r == 0 && namer_ended(b->namer) && stream_flush(&b->out) == 0);
	const struct namer_counts c = namer_counts(b->namer);

	must(c.samples == b->samples_out && c.samples + c.lost == b->samples_in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Limits that any input fits. With the tool's own, which are megabytes, a run would mostly
	 * clear memory. */
	struct namer_limits limits = { .processes = 256,
				       .threads = 256,
				       .files = 256,
				       .frames = 1024,
				       .stacks = 1024,
				       .raw_functions = 256,
				       .relayed = 256,
				       .numbers = 16384,
				       .functions = 1024,
				       .text = 64 << 10,
				       .queue = 128 };
	struct bench b = { .now_ns = SECOND };
	struct msg_scratch scratch = { 0 };
	struct span in = { .data = data + 1, .len = size - 1 };
	struct msg m;

	if (size < 1)
		return 0;
	b.flags = data[0];
	if (b.flags & SMALL)
		limits = (struct namer_limits){ .processes = 3,
						.threads = 3,
						.files = 3,
						.frames = 6,
						.stacks = 4,
						.raw_functions = 3,
						.relayed = 4,
						.numbers = 24,
						.functions = 3,
						.text = 600,
						.queue = 4 };
	for (int i = 0; i < KINDS; i++)
		must(idmap_init(&b.defined[i], 1u << 20) == 0);
	filestore_init(&b.store, FILESTORE_BUDGET, FILESTORE_DWARF_MAX, ask_file, &b);
	stream_out_init(&b.out, 4096, batch_out, &b);
	must(objects_new(ask_memory, &b, &b.of) == 0);
	must(namer_new(&limits, &b.store, &b.out, &b.namer) == 0);
	namer_use_objects(b.namer, b.of, tell, &b);
	for (int r; !namer_ended(b.namer) && (r = msg_decode(&in, &scratch, &m)) != MSG_SHORT &&
		    r != MSG_MALFORMED;) {
		must(r == 0 || r == MSG_UNKNOWN);
		if (r == MSG_UNKNOWN)
			continue;
		if (namer_full(b.namer))
			settle(&b);
		if (namer_ended(b.namer))
			break;
		message_in(&b, &m);
		b.now_ns += SECOND / 100;
		(void)turn(&b);
	}
	end(&b);
	namer_free(b.namer);
	objects_free(b.of);
	stream_out_done(&b.out);
	for (int i = 0; i < KINDS; i++)
		idmap_done(&b.defined[i]);
	msg_scratch_done(&b.scratch);
	msg_scratch_done(&scratch);
	return 0;
}
