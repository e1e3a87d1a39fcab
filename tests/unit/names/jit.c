/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps while they grow: real files, and a fake clock. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/names/jit/jit.h"
#include "common/names/jit/jitfinder.h"
#include "common/names/jit/perfmap.h"

#define SECOND 1000000000ull
#define P 7 /* the process */
#define PID 70

/* Memory for a line in the middle of the next piece is refused. */
static bool starved;

int __real_perfmap_feed(struct perfmap *p, struct span bytes);
int __wrap_perfmap_feed(struct perfmap *p, struct span bytes);
int __wrap_perfmap_feed(struct perfmap *p, struct span bytes)
{
	if (!starved)
		return __real_perfmap_feed(p, bytes);
	starved = false;
	bytes.len /= 2;
	(void)__real_perfmap_feed(p, bytes);
	return -ENOMEM;
}

struct bench {
	struct jit jit;
	struct jit_request asked[16];
	unsigned count;
	struct names names;
	char path[64];
	int fd; /* to write to it */
};

static int ask(void *ctx, const struct jit_request *rq)
{
	struct bench *b = ctx;

	cr_assert_lt(b->count, 16);
	b->asked[b->count++] = *rq;
	return 0;
}

static struct bench *bench_new(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	cr_assert(b);
	cr_assert_eq(jit_init(&b->jit, 8 << 20, ask, b), 0);
	snprintf(b->path, sizeof(b->path), "/tmp/unit-jit-XXXXXX");
	b->fd = mkostemp(b->path, O_CLOEXEC);
	cr_assert_geq(b->fd, 0);
	return b;
}

static void bench_free(struct bench *b)
{
	jit_done(&b->jit);
	cr_expect_eq(b->jit.open_of.held, 0);
	cr_expect_eq(jit_bytes(&b->jit), 0);
	unlink(b->path);
	close(b->fd);
	free(b);
}

static void append(struct bench *b, const char *text)
{
	cr_assert_eq(write(b->fd, text, strlen(text)), (ssize_t)strlen(text));
}

static int look(struct bench *b, uint64_t address, uint64_t now_ns)
{
	return jit_lookup(&b->jit, P, PID, address, now_ns, now_ns, &b->names);
}

/* Answers every request of this kind with the file, and the others with none. */
static void answer(struct bench *b, enum msg_jit_kind kind, uint64_t now_ns)
{
	for (unsigned i = 0; i < b->count; i++) {
		int fd = b->asked[i].kind == kind ? open(b->path, O_RDONLY | O_CLOEXEC) : -1;

		cr_expect(jit_answer(&b->jit, b->asked[i].id, fd, now_ns));
	}
	b->count = 0;
}

static bool named(const struct bench *b, const char *name)
{
	return b->names.count == 1 && str_eq(b->names.calls[0].name, str_from(name));
}

Test(jit, both_files_are_asked_for_at_the_first_frame)
{
	struct bench *b = bench_new();

	append(b, "1000 10 f\n");
	cr_assert_eq(look(b, 0x1000, SECOND), JIT_LATER);
	cr_assert_eq(b->count, 2);
	cr_expect_eq(b->asked[0].process, P);
	cr_expect_eq(b->asked[0].pid, PID);
	cr_expect_neq(b->asked[0].kind, b->asked[1].kind);
	answer(b, MSG_JIT_PERF_MAP, SECOND);
	cr_assert_eq(look(b, 0x1000, SECOND), 0);
	cr_expect(named(b, "f"));
	cr_expect_eq(look(b, 0x2000, SECOND), JIT_UNKNOWN);
	cr_expect_eq(b->count, 0);
	bench_free(b);
}

Test(jit, appended_lines_are_found_soon)
{
	struct bench *b = bench_new();
	uint64_t version;

	look(b, 0x2000, SECOND);
	append(b, "1000 10 f\n");
	answer(b, MSG_JIT_PERF_MAP, SECOND);
	cr_expect_eq(look(b, 0x2000, SECOND), JIT_UNKNOWN);
	version = jit_version(&b->jit, P);
	append(b, "2000 10 g\n");
	cr_expect_eq(look(b, 0x2000, SECOND + 1), JIT_UNKNOWN, "it is not looked at all the time");
	jit_tick(&b->jit, SECOND + JIT_REREAD_NS);
	cr_expect_gt(jit_version(&b->jit, P), version);
	cr_expect_eq(look(b, 0x2000, SECOND + JIT_REREAD_NS), 0);
	cr_expect(named(b, "g"));
	bench_free(b);
}

Test(jit, a_rewritten_map_is_read_again)
{
	struct bench *b = bench_new();

	append(b, "1000 10 old\n2000 10 other\n");
	look(b, 0x1000, SECOND);
	answer(b, MSG_JIT_PERF_MAP, SECOND);
	cr_expect_eq(look(b, 0x1000, SECOND), 0);
	cr_assert_eq(ftruncate(b->fd, 0), 0);
	cr_assert_eq(lseek(b->fd, 0, SEEK_SET), 0);
	append(b, "1000 10 new\n3000 10 longer than it was before\n");
	cr_expect_eq(look(b, 0x3000, 2 * SECOND), 0);
	cr_expect_eq(look(b, 0x1000, 2 * SECOND), 0);
	cr_expect(named(b, "new"));
	cr_expect_neq(look(b, 0x2000, 2 * SECOND), 0);
	cr_expect_eq(b->jit.truncated, 1);
	bench_free(b);
}

Test(jit, a_map_that_found_no_memory_is_read_again)
{
	struct bench *b = bench_new();

	look(b, 0x2000, SECOND);
	append(b, "1000 10 f\n2000 10 g\n3000 10 h\n");
	starved = true;
	answer(b, MSG_JIT_PERF_MAP, SECOND);
	cr_assert(!starved);
	cr_expect_eq(look(b, 0x2000, SECOND), JIT_LATER);
	jit_tick(&b->jit, 2 * SECOND);
	cr_expect_eq(look(b, 0x2000, 2 * SECOND), 0);
	cr_expect(named(b, "g"));
	cr_expect_eq(look(b, 0x3000, 2 * SECOND), 0);
	cr_expect_eq(look(b, 0x1000, 2 * SECOND), 0);
	bench_free(b);
}

Test(jit, a_file_that_is_not_there_is_asked_for_less_and_less)
{
	struct bench *b = bench_new();
	unsigned asked = 0;

	for (uint64_t now_ns = SECOND; now_ns < 60 * SECOND; now_ns += SECOND / 10) {
		cr_expect_neq(look(b, 0x1000, now_ns), 0);
		jit_tick(&b->jit, now_ns);
		asked += b->count;
		answer(b, MSG_JIT_KINDS, now_ns);
	}
	cr_expect_geq(asked, 2 * 8);
	cr_expect_leq(asked, 2 * 14);
	append(b, "1000 10 f\n");
	look(b, 0x1000, 80 * SECOND);
	answer(b, MSG_JIT_PERF_MAP, 80 * SECOND);
	cr_expect_eq(look(b, 0x1000, 80 * SECOND), 0);
	bench_free(b);
}

Test(jit, a_missing_answer_is_not_waited_for)
{
	struct bench *b = bench_new();

	cr_expect_eq(look(b, 0x1000, SECOND), JIT_LATER);
	cr_expect_eq(jit_deadline(&b->jit, SECOND), SECOND + JIT_WAIT_NS);
	jit_tick(&b->jit, SECOND + JIT_WAIT_NS);
	cr_expect_eq(look(b, 0x1000, SECOND + JIT_WAIT_NS), JIT_UNKNOWN);
	answer(b, MSG_JIT_PERF_MAP, 9 * SECOND);
	cr_expect_eq(b->jit.open_of.held, 0, "a late one is closed");
	bench_free(b);
}

Test(jit, settling_reads_the_last_lines_and_asks_once_more)
{
	struct bench *b = bench_new();

	cr_expect_eq(look(b, 0x1000, SECOND), JIT_LATER);
	answer(b, MSG_JIT_KINDS, SECOND);
	append(b, "1000 10 f");
	cr_expect_eq(jit_settle(&b->jit, P, SECOND), JIT_LATER);
	cr_assert_eq(b->count, 2);
	answer(b, MSG_JIT_PERF_MAP, SECOND);
	cr_expect_eq(jit_settle(&b->jit, P, SECOND), 0);
	cr_expect_eq(look(b, 0x1000, SECOND), 0, "a line without its end counts then");
	cr_expect_eq(jit_settle(&b->jit, P, SECOND), 0);
	cr_expect_eq(b->count, 0);
	bench_free(b);
}

/* Looks up an unknown address until all is read. Returns in how many pieces. */
static unsigned read_all(struct bench *b, uint64_t now_ns)
{
	unsigned pieces = 0;

	look(b, 0x1000, now_ns);
	answer(b, MSG_JIT_PERF_MAP, now_ns);
	cr_expect_eq(look(b, 0x1000, now_ns), JIT_LATER, "a later line may say otherwise");
	while (look(b, 0xffffffff, now_ns) == JIT_LATER) {
		cr_expect_leq(jit_deadline(&b->jit, now_ns), now_ns + SECOND / 10);
		now_ns += SECOND / 10;
		jit_tick(&b->jit, now_ns);
		pieces++;
	}
	return pieces;
}

Test(jit, a_giant_map_is_read_by_pieces_and_up_to_its_ceiling)
{
	struct bench *b = bench_new();
	FILE *f = fdopen(dup(b->fd), "w");

	for (unsigned i = 0; i < 400000; i++)
		fprintf(f, "%x 10 function_%u\n", 0x1000 + i * 16, i);
	fclose(f);
	cr_expect_leq(read_all(b, SECOND), 3);
	cr_expect_leq(jit_bytes(&b->jit), 8 << 20);
	cr_expect_neq(look(b, 0x1000 + 399999 * 16, 2 * SECOND), 0, "the ceiling came first");
	cr_expect_eq(look(b, 0x1000, 2 * SECOND), 0);
	jit_drop(&b->jit, P);
	b->count = 0;
	b->jit.total_max = b->jit.file_max = 128 << 20;
	cr_expect_geq(read_all(b, 9 * SECOND), 8);
	cr_expect_eq(look(b, 0x1000 + 399999 * 16, 99 * SECOND), 0);
	bench_free(b);
}

Test(jit, garbage_names_nothing)
{
	struct bench *b = bench_new();

	append(b, "\177ELF\2\1\1 not a map at all \n\n\n   \n");
	look(b, 0x1000, SECOND);
	answer(b, MSG_JIT_PERF_MAP, SECOND);
	cr_expect_eq(look(b, 0x1000, SECOND), JIT_UNKNOWN);
	bench_free(b);
}

Test(jit, a_garbage_jitdump_is_given_up)
{
	struct bench *b = bench_new();

	append(b, "\177ELF\2\1\1 not a jitdump, and long enough to have a header of forty bytes\n");
	look(b, 0x1000, SECOND);
	answer(b, MSG_JIT_DUMP, SECOND);
	cr_expect_eq(look(b, 0x1000, SECOND), JIT_UNKNOWN);
	cr_expect_eq(b->jit.malformed, 1);
	bench_free(b);
}

Test(jit, of_too_many_files_the_least_used_are_closed)
{
	struct bench *b = bench_new();
	unsigned n = 3 * JIT_OPEN;

	append(b, "1000 10 f\n");
	for (uint64_t id = 1; id <= n; id++) {
		jit_want(&b->jit, id, (uint32_t)id, SECOND + id);
		answer(b, MSG_JIT_PERF_MAP, SECOND + id);
		cr_expect_leq(b->jit.open_of.held, JIT_OPEN);
	}
	cr_expect_eq(jit_lookup(&b->jit, n, n, 0x1000, 1, 2 * SECOND, &b->names), 0);
	cr_expect_eq(jit_lookup(&b->jit, 1, 1, 0x1000, 1, 2 * SECOND, &b->names), JIT_LATER,
		     "it is asked for again");
	for (uint64_t id = 1; id <= n; id++)
		jit_drop(&b->jit, id);
	bench_free(b);
}

static uint64_t owner_of(void *ctx, uint64_t process)
{
	(void)ctx;
	return process < 1000 ? 1 : 2;
}

Test(jit, many_files_of_an_owner_close_none_of_another)
{
	struct bench *b = bench_new();

	b->jit.owner_of = owner_of;
	append(b, "1000 10 f\n");
	jit_want(&b->jit, 1000, 1000, SECOND);
	answer(b, MSG_JIT_PERF_MAP, SECOND);
	for (uint64_t id = 1; id <= 2 * JIT_OPEN; id++) {
		jit_want(&b->jit, id, (uint32_t)id, SECOND + id);
		answer(b, MSG_JIT_PERF_MAP, SECOND + id);
	}
	cr_expect_leq(b->jit.open_of.held, JIT_OPEN);
	cr_expect_eq(jit_lookup(&b->jit, 1000, 1000, 0x1000, 1, 2 * SECOND, &b->names), 0);
	cr_expect_eq(jit_lookup(&b->jit, 1, 1, 0x1000, 1, 2 * SECOND, &b->names), JIT_LATER);
	bench_free(b);
}

static int asked_nothing(void *ctx, const struct jit_request *rq)
{
	(void)ctx;
	(void)rq;
	return -ENOENT;
}

Test(jit, many_processes_of_an_owner_evict_none_of_another)
{
	struct bench *b = bench_new();
	const uint64_t many = 1000 + 2 * JIT_PROCESSES;

	b->jit.owner_of = owner_of;
	b->jit.ask = asked_nothing;
	jit_want(&b->jit, 1, 1, SECOND);
	for (uint64_t id = 1000; id < many; id++)
		jit_want(&b->jit, id, (uint32_t)id, SECOND + id);
	cr_expect(jit_knows(&b->jit, 1));
	cr_expect(jit_knows(&b->jit, many - 1));
	cr_expect_not(jit_knows(&b->jit, 1000));
	jit_want(&b->jit, 2, 2, 2 * SECOND);
	cr_expect(jit_knows(&b->jit, 2));
	cr_expect_eq(b->jit.processes_of.held, JIT_PROCESSES);
	jit_drop_all(&b->jit);
	cr_expect_eq(b->jit.processes_of.held, 0);
	bench_free(b);
}

Test(jit, many_requests_of_an_owner_leave_room_for_another)
{
	struct bench *b = bench_new();

	b->jit.owner_of = owner_of;
	for (uint64_t id = 1; id < 100; id++)
		jit_want(&b->jit, id, (uint32_t)id, SECOND);
	const unsigned before = b->count;
	cr_expect_lt(before, JIT_IN_FLIGHT);
	jit_want(&b->jit, 1000, 1000, SECOND);
	cr_expect_gt(b->count, before);
	bench_free(b);
}

Test(jit, settling_waits_while_there_are_too_many_requests)
{
	struct bench *b = bench_new();

	append(b, "1000 10 f\n");
	for (uint64_t id = 1; id < 100; id++)
		jit_want(&b->jit, 1000 + id, (uint32_t)id, SECOND);
	const unsigned before = b->count;

	cr_expect_eq(look(b, 0x1000, SECOND), JIT_UNKNOWN);
	cr_expect_eq(jit_settle(&b->jit, P, SECOND), JIT_LATER);
	cr_assert_eq(b->count, before);
	answer(b, MSG_JIT_KINDS, SECOND);
	cr_expect_eq(jit_settle(&b->jit, P, SECOND), JIT_LATER);
	cr_assert_eq(b->count, 2);
	answer(b, MSG_JIT_PERF_MAP, SECOND);
	cr_expect_eq(jit_settle(&b->jit, P, SECOND), 0);
	cr_expect_eq(look(b, 0x1000, SECOND), 0);
	bench_free(b);
}

static int no_room(void *ctx, const struct jit_request *rq)
{
	(void)ctx;
	(void)rq;
	return -EAGAIN;
}

Test(jit, a_request_without_room_is_repeated)
{
	struct bench *b = bench_new();

	append(b, "1000 10 f\n");
	b->jit.ask = no_room;
	cr_expect_eq(look(b, 0x1000, SECOND), JIT_UNKNOWN);
	cr_expect_eq(jit_settle(&b->jit, P, SECOND), JIT_LATER);
	b->jit.ask = ask;
	jit_tick(&b->jit, SECOND + SECOND / 10);
	cr_assert_eq(b->count, 2);
	answer(b, MSG_JIT_PERF_MAP, SECOND + SECOND / 10);
	cr_expect_eq(look(b, 0x1000, SECOND + SECOND / 10), 0);
	cr_expect(named(b, "f"));
	bench_free(b);
}

Test(jit, a_marker_is_recognized_by_its_name)
{
	static const struct {
		const char *line, *path;
	} lines[] = {
		{ "7f0-7f1 r-xp 00000000 fe:00 12 /home/a b/jit-12.dump\n",
		  "/home/a b/jit-12.dump" },
		{ "7f0-7f1 r-xp 00000000 fe:00 12 /jit-1.dump", "/jit-1.dump" },
		{ "7f0-7f1 r-xp 00000000 fe:00 12 /jit-.dump\n", NULL },
		{ "7f0-7f1 r-xp 00000000 fe:00 12 /jit-1.dumper\n", NULL },
		{ "7f0-7f1 r-xp 00000000 fe:00 12 /jit-1.dump/x\n", NULL },
		{ "7f0-7f1 r-xp 00000000 00:00 0\n", NULL },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char line[128], *path = NULL;

		snprintf(line, sizeof(line), "%s", lines[i].line);
		bool is = jitfinder_dump_path(line, &path);
		cr_assert_eq(is, lines[i].path != NULL, "%zu", i);
		if (is)
			cr_expect_str_eq(path, lines[i].path);
	}
}
