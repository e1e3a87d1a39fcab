/* SPDX-License-Identifier: Apache-2.0 */
/* The file that is blamed when the extractor ends. fake_peer.h has the bus and the lane. */
#include "tools/prof-bpf/peers/row_server.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include "common/base/system/clock.h"
#include "common/walk/tables/tables.h"
#include "common/wire/stream.h"
#include "tests/fuzz/fake_peer.h"
#include "tests/memory_tables.h"
#include "tools/prof-bpf/owners/owners.h"

#define FILES 3
#define SECOND 1000000000ull

static struct tables *tables;
static struct quarantine *quarantine;
static struct row_server *server;
static uint16_t slots[FILES];

/* The number of calls of the stream's receiver that find no memory. */
static unsigned starved_feeds, starved_nexts;

int __real_stream_feed(struct stream_in *s, struct span bytes);
int __wrap_stream_feed(struct stream_in *s, struct span bytes);
int __wrap_stream_feed(struct stream_in *s, struct span bytes)
{
	if (!starved_feeds)
		return __real_stream_feed(s, bytes);
	starved_feeds--;
	return -ENOMEM;
}

int __real_stream_next(struct stream_in *s, struct msg *ret);
int __wrap_stream_next(struct stream_in *s, struct msg *ret);
int __wrap_stream_next(struct stream_in *s, struct msg *ret)
{
	if (!starved_nexts)
		return __real_stream_next(s, ret);
	starved_nexts--;
	return -ENOMEM;
}

/* How many allocations fail, from call `fails_at` on. 0: none. */
static unsigned calls, fails_at, fails;

static bool fail_now(void)
{
	return fails_at && ++calls >= fails_at && calls < fails_at + fails;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return fail_now() ? NULL : __real_calloc(n, size);
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
	return fail_now() ? NULL : __real_malloc(n);
}

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
	return fail_now() ? NULL : __real_realloc(p, n);
}

void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return fail_now() ? NULL : __real_reallocarray(p, n, size);
}

/* The last file that was blamed, and the reason. */
static struct {
	unsigned count;
	uint64_t inode;
	enum lastword_end end;
} blamed;

static struct stream_out out;
static uint64_t now_ns = 1;

static void on_death(void *ctx, struct str name, const struct quarantine_key *of,
		     enum lastword_end end, enum quarantine_verdict verdict)
{
	(void)ctx;
	(void)name;
	(void)verdict;
	blamed.count++;
	blamed.inode = of->inode;
	blamed.end = end;
}

static void setup(void)
{
	const struct tables_config t = memory_tables(TABLES_SLAB_BYTES);

	cr_assert_eq(tables_new(&t, &tables), 0);
	tables_tick(tables, 1);
	cr_assert_eq(quarantine_new(&quarantine), 0);

	const struct row_server_config c = { .run_dir = "/nowhere",
					     .tables = tables,
					     .quarantine = quarantine,
					     .on_death = on_death };

	cr_assert_eq(row_server_new(&c, &server), 0);
}

static void teardown(void)
{
	row_server_free(server);
	quarantine_free(quarantine);
	tables_free(tables);
}

TestSuite(row_server, .init = setup, .fini = teardown);

static struct quarantine_key key(uint64_t inode)
{
	return (struct quarantine_key){ .dev = 1, .inode = inode, .size = 4096, .uid = 1000 };
}

static void ask(unsigned i)
{
	const struct quarantine_key of = key(i + 1);

	cr_assert_eq(tables_file_new(tables, &slots[i]), 0);
	tables_file_pending(tables, slots[i]);
	cr_assert_eq(row_server_request(server, slots[i], open("/dev/null", O_RDONLY | O_CLOEXEC),
					&of, STR_LIT("/a/file"), NULL),
		     0);
}

static int keep_batch(void *ctx, struct span batch)
{
	(void)ctx;
	return buf_append(&fake_peer.batch, batch.data, batch.len);
}

static void run(void)
{
	cr_assert_eq(row_server_run(server, ++now_ns), 0);
}

static void say(const struct msg *m)
{
	buf_reset(&fake_peer.batch);
	cr_assert_eq(stream_put(&out, m), 0);
	cr_assert_eq(stream_flush(&out), 0);
	fake_peer.has_batch = true;
	run();
}

/* Connects, and gets requests for `files` files. */
static void come(unsigned files)
{
	fake_peer.came = true;
	fake_peer.dropped = false;
	fake_peer.files = 0;
	fake_peer.last = (struct lastword){ 0 };
	stream_out_init(&out, 4096, keep_batch, NULL);
	stream_out_epoch(&out, ++now_ns);
	run();
	say(&(struct msg){ .id = MSG_HELLO,
			   .hello = { .schema = MSG_SCHEMA,
				      .build = msg_build(),
				      .producer = STR_LIT("a test") } });
	cr_assert_eq(fake_peer.files, files);
}

static void go(void)
{
	fake_peer.went = true;
	run();
	cr_assert(!row_server_connected(server));
	stream_out_done(&out);
}

static void at_work_on(uint64_t id)
{
	fake_peer.last = (struct lastword){ .kind = LASTWORD_FILE, .id = id };
}

/* Longer than the timeout, which is measured by the real clock. */
static void stand_still(void)
{
	cr_assert_eq(row_server_run(server, clock_mono_ns() + 61 * SECOND), 0);
	cr_assert(fake_peer.dropped);
}

static unsigned deaths(unsigned i)
{
	const struct quarantine_key of = key(i + 1);

	return quarantine_deaths(quarantine, QUARANTINE_ROWS, &of);
}

Test(row_server, an_idle_extractor_that_goes_blames_no_file)
{
	for (unsigned i = 0; i < FILES; i++)
		ask(i);
	/* More often than is allowed for one file. */
	for (int i = 0; i < 12; i++) {
		come(FILES);
		/* It has begun to answer the first request. */
		say(&(struct msg){ .id = MSG_ROWS_BEGIN,
				   .rows_begin = { .id = 1, .rows = 1, .rules = 1, .span = 1 } });
		go();
	}
	cr_assert_eq(blamed.count, 0);
	for (unsigned i = 0; i < FILES; i++) {
		cr_assert_eq(deaths(i), 0);
		cr_assert_neq(tables_file_state(tables, slots[i]), TABLES_FILE_NO_ROWS);
	}
	come(FILES);
}

Test(row_server, the_file_that_the_last_word_names_is_blamed)
{
	for (unsigned i = 0; i < FILES; i++)
		ask(i);
	come(FILES);
	at_work_on(3);
	go();
	cr_assert(blamed.count == 1 && blamed.inode == 3 && blamed.end == LASTWORD_NONE);
	cr_assert(deaths(2) == 1 && deaths(0) == 0);
}

Test(row_server, a_last_word_about_an_unrequested_file_blames_nothing)
{
	ask(0);
	come(1);
	at_work_on(77);
	go();
	cr_assert_eq(blamed.count, 0);
}

Test(row_server, a_wrong_answer_is_blamed_on_the_file_it_is_about_and_once)
{
	for (unsigned i = 0; i < FILES; i++)
		ask(i);
	come(FILES);

	const struct msg twice = {
		.id = MSG_ROWS_BEGIN,
		.rows_begin = { .id = 2, .rows = 1, .rules = 1, .span = 1 },
	};

	at_work_on(4);
	say(&twice);
	cr_assert(!fake_peer.dropped);
	say(&twice);
	cr_assert(fake_peer.dropped);
	go();
	cr_assert(blamed.count == 1 && blamed.inode == 2 && blamed.end == LASTWORD_CRASH);
}

Test(row_server, an_idle_extractor_that_hangs_blames_no_file)
{
	for (unsigned i = 0; i < FILES; i++)
		ask(i);
	come(FILES);
	stand_still();
	go();
	cr_assert_eq(blamed.count, 0);
}

Test(row_server, only_cpu_time_makes_a_file_slow)
{
	for (unsigned i = 0; i < FILES; i++)
		ask(i);
	come(FILES);
	at_work_on(2);
	fake_peer.last.spent_ns = LASTWORD_SLOW_S * SECOND;
	stand_still();
	go();
	cr_assert(blamed.count == 1 && blamed.inode == 2 && blamed.end == LASTWORD_SLOW);
}

/* The host has far more to do than it has cpus, so the extractor gets none. */
Test(row_server, an_extractor_without_cpu_time_is_restarted_and_blames_no_file)
{
	uint64_t patience = 61 * SECOND;

	ask(0);
	come(1);
	at_work_on(1);
	stand_still();
	go();
	cr_assert_eq(deaths(0), 0);
	/* The file pauses. */
	ask(1);
	now_ns = clock_mono_ns();
	come(1);
	say(&(struct msg){ .id = MSG_ROWS_BEGIN,
			   .rows_begin = { .id = 2, .status = MSG_ROWS_NONE } });
	cr_assert_eq(fake_peer.files, 1);
	now_ns = clock_mono_ns() + 200 * SECOND;
	run();
	cr_assert_eq(fake_peer.files, 2, "it is tried again");
	/* Each further time in a row it waits for longer. */
	for (unsigned i = 0; i < 20; i++) {
		at_work_on(3 + i);
		cr_assert_eq(row_server_run(server, now_ns += patience / 2), 0);
		cr_assert(!fake_peer.dropped);
		cr_assert_eq(row_server_run(server, now_ns += patience), 0);
		cr_assert(fake_peer.dropped, "%u", i);
		go();
		patience *= i < 3 ? 2 : 1;
		come(0);
		now_ns += 17 * 60 * SECOND;
		run();
		cr_assert_eq(fake_peer.files, 1);
	}
	cr_assert_eq(blamed.count, 0);
	cr_assert_eq(deaths(0), 0);
}

Test(row_server, an_extractor_that_works_slowly_is_not_restarted)
{
	ask(0);
	come(1);
	now_ns = clock_mono_ns();
	at_work_on(1);
	for (unsigned i = 1; i <= 100; i++) {
		fake_peer.last.spent_ns = i * SECOND / 40;
		cr_assert_eq(row_server_run(server, now_ns += 61 * SECOND), 0);
		cr_assert(!fake_peer.dropped);
	}
	/* It stands still. */
	cr_assert_eq(row_server_run(server, now_ns += 61 * SECOND), 0);
	cr_assert(fake_peer.dropped);
	cr_assert_eq(blamed.count, 0);
	go();
}

Test(row_server, an_answer_that_finds_no_memory_waits_and_blames_no_file)
{
	struct row_server_figures f;

	ask(0);
	come(1);
	at_work_on(1);
	buf_reset(&fake_peer.batch);
	cr_assert_eq(stream_put(&out, &(struct msg){ .id = MSG_ROWS_BEGIN,
						     .rows_begin = { .id = 1,
								     .status = MSG_ROWS_NONE } }),
		     0);
	cr_assert_eq(stream_flush(&out), 0);
	fake_peer.has_batch = true;
	starved_feeds = 2;
	starved_nexts = 1;
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(row_server_run(server, ++now_ns), -ENOMEM);
		row_server_figures(server, &f);
		cr_assert_eq(f.refused[MSG_ROWS_NONE], 0);
	}
	run();
	row_server_figures(server, &f);
	cr_assert_eq(f.refused[MSG_ROWS_NONE], 1);
	cr_assert(!fake_peer.dropped && blamed.count == 0 && deaths(0) == 0);
	cr_assert(row_server_idle(server));
}

Test(row_server, a_file_without_a_descriptor_is_given_back_once)
{
	const struct quarantine_key of = key(1);
	uint16_t slot = 0;

	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(tables_file_new(tables, &slots[i]), 0);
		tables_file_pending(tables, slots[i]);
		cr_assert_eq(
			row_server_request(server, slots[i], -1, &of, STR_LIT("/a/file"), NULL), 0);
	}
	cr_assert(!row_server_take_unopened(server, &slot));
	come(0);
	cr_assert(!row_server_idle(server));
	tables_file_free(tables, slots[0]);
	cr_assert(row_server_take_unopened(server, &slot) && slot == slots[1]);
	cr_assert(!row_server_take_unopened(server, &slot));
	cr_assert(row_server_idle(server));
}

/* --- failures of our own --- */

/* A whole answer, each message of which is sent alone. */
static void answer(uint64_t id)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_REG,
				    .cfa_reg = UNWIND_REG_RSP,
				    .cfa_off = 8 };
	struct unwind_row_wire row = { .offset = 0, .rule = 0 };
	const struct msg all[] = {
		{ .id = MSG_ROWS_BEGIN,
		  .rows_begin = { .id = id, .rows = 1, .rules = 1, .span = 4096 } },
		{ .id = MSG_ROWS_RULES,
		  .rows_rules = { .id = id,
				  .rules = { .data = (const uint8_t *)&rule,
					     .len = sizeof(rule) } } },
		{ .id = MSG_ROWS_CHUNK,
		  .rows_chunk = { .id = id,
				  .rows = { .data = (const uint8_t *)&row, .len = sizeof(row) } } },
		{ .id = MSG_ROWS_END, .rows_end = { .id = id, .cpu_ns = 5 } },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		buf_reset(&fake_peer.batch);
		cr_assert_eq(stream_put(&out, &all[i]), 0);
		cr_assert_eq(stream_flush(&out), 0);
		fake_peer.has_batch = true;
		/* If the message finds no memory, it is tried again. */
		for (int tries = 0; row_server_run(server, ++now_ns) && tries < 100; tries++)
			;
	}
}

Test(row_server, our_own_lack_of_memory_is_never_blamed_on_a_file)
{
	unsigned most;

	/* Once without a failure, to count the allocations. */
	ask(0);
	come(1);
	at_work_on(1);
	calls = 0;
	fails_at = UINT32_MAX;
	answer(1);
	most = calls;
	fails_at = 0;
	cr_assert_eq(tables_file_state(tables, slots[0]), TABLES_FILE_READY);
	cr_assert(most > 3);
	for (unsigned at = 1; at <= most; at++) {
		for (unsigned n = 1; n <= 3; n++) {
			struct quarantine_key of = key(1);
			struct row_server_figures f;

			tables_file_free(tables, slots[0]);
			now_ns += 3 * SECOND;
			tables_tick(tables, now_ns);
			now_ns += 3 * SECOND;
			tables_tick(tables, now_ns);
			ask(0);
			run();
			row_server_figures(server, &f);
			at_work_on(f.asked);
			calls = 0;
			fails_at = at;
			fails = n;
			answer(f.asked);
			fails_at = 0;
			cr_assert(!fake_peer.dropped, "at %u, %u times", at, n);
			cr_assert(blamed.count == 0 &&
				  quarantine_deaths(quarantine, QUARANTINE_ROWS, &of) == 0);
			cr_assert(row_server_idle(server), "at %u, %u times", at, n);
		}
	}
}

Test(row_server, an_answer_for_a_file_that_has_rows_blames_no_file)
{
	ask(0);
	come(1);
	tables_file_none(tables, slots[0]);
	answer(1);
	cr_assert(!fake_peer.dropped && blamed.count == 0);
	cr_assert(row_server_idle(server));
}

/* --- the order of requests --- */

Test(row_server, a_file_that_takes_long_is_put_aside_while_others_wait)
{
	struct owners *owners;
	struct row_server_figures f;

	cr_assert_eq(owners_new(&owners), 0);
	row_server_charge(server, owners);

	struct owner *rich = owners_get(owners, (struct owner_key){ .uid = 1 }),
		     *poor = owners_get(owners, (struct owner_key){ .uid = 2 });
	const struct quarantine_key of = key(1);
	const uint64_t now = clock_mono_ns();

	owner_spend(rich, OWNER_ROWS_CPU, SECOND, now);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(tables_file_new(tables, &slots[i]), 0);
		tables_file_pending(tables, slots[i]);
	}
	cr_assert_eq(row_server_request(server, slots[0], open("/dev/null", O_RDONLY | O_CLOEXEC),
					&of, STR_LIT("/long"), rich),
		     0);
	now_ns = now;
	come(1);
	/* No other request waits, so it does not give way. */
	cr_assert_eq(row_server_request(server, slots[1], open("/dev/null", O_RDONLY | O_CLOEXEC),
					&of, STR_LIT("/short"), rich),
		     0);
	run();
	cr_assert_eq(fake_peer.files, 1, "nothing is sent behind it");
	row_server_wanted(server, slots[1], poor, now_ns);
	run();
	say(&(struct msg){
		.id = MSG_ROWS_BEGIN,
		.rows_begin = { .id = 1, .status = MSG_ROWS_LATER, .cpu_ns = SECOND / 20 } });
	row_server_figures(server, &f);
	cr_assert(f.aside == 1 && rich->refused[OWNER_ROWS_CPU] == 1);
	cr_assert_eq(fake_peer.files, 2, "it waits for the other's file");
	say(&(struct msg){ .id = MSG_ROWS_BEGIN,
			   .rows_begin = { .id = 2, .status = MSG_ROWS_NONE, .cpu_ns = 1000 } });
	cr_assert_eq(fake_peer.files, 3, "it is tried again");
	cr_assert(owner_spent(poor, OWNER_ROWS_CPU, now) <= 1000);
	cr_assert_eq(poor->held[OWNER_QUEUE], 0);
	cr_assert_eq(rich->held[OWNER_QUEUE], 1);
	say(&(struct msg){ .id = MSG_ROWS_BEGIN,
			   .rows_begin = { .id = 3, .status = MSG_ROWS_NONE, .cpu_ns = 1000 } });
	cr_assert(row_server_idle(server) && rich->held[OWNER_QUEUE] == 0);
	cr_assert_eq(blamed.count, 0);
	owners_free(owners);
}

Test(row_server, each_owner_pauses_for_its_own_files)
{
	struct owners *owners;

	cr_assert_eq(owners_new(&owners), 0);
	row_server_charge(server, owners);

	struct owner *rich = owners_get(owners, (struct owner_key){ .uid = 1 }),
		     *poor = owners_get(owners, (struct owner_key){ .uid = 2 }),
		     *new = owners_get(owners, (struct owner_key){ .uid = 3 });
	struct owner *const of[] = { rich, poor, new };

	now_ns = clock_mono_ns();
	owner_spend(rich, OWNER_ROWS_CPU, SECOND, now_ns);
	owner_spend(poor, OWNER_ROWS_CPU, SECOND / 2, now_ns);
	come(0);
	row_server_rest(server, 400, 10 * SECOND);
	cr_expect_eq(fake_peer.rest_ms, 400, "nobody waits");
	for (unsigned i = 0; i < FILES; i++) {
		static const uint64_t least_ms[FILES] = { 400, 200, 0 };
		const struct quarantine_key file = key(i + 1);

		cr_assert_eq(tables_file_new(tables, &slots[i]), 0);
		tables_file_pending(tables, slots[i]);
		cr_assert_eq(row_server_request(server, slots[i],
						open("/dev/null", O_RDONLY | O_CLOEXEC), &file,
						STR_LIT("/a/file"), of[i]),
			     0);
		run();
		/* What they spent also becomes less with time. */
		cr_expect(fake_peer.rest_ms <= least_ms[i] &&
				  fake_peer.rest_ms + 400 / LASTWORD_PARTS >= least_ms[i],
			  "owner %u: %lu ms", i + 1, fake_peer.rest_ms);
	}
	row_server_rest(server, 0, 10 * SECOND);
	cr_expect_eq(fake_peer.rest_ms, 0, "the tools need less than their limit");
	go();
	owners_free(owners);
}
