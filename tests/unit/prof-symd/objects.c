/* SPDX-License-Identifier: Apache-2.0 */
/* Naming by batches, of a process that is a capture of a Python's memory, and a clock of our own.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/pycapture.h"
#include "tools/prof-symd/objects/objects.h"

#define SECOND 1000000000ull
#define P 7 /* the process */
#define Q 8 /* another one, of another owner */
#define PID 70
#define POSITION 3

struct asked {
	struct objects_request rq;
	uint64_t addresses[OBJECTS_PIECES], lengths[OBJECTS_PIECES];
};

struct bench {
	struct capture *k;
	struct objects *o;
	struct asked asked[32];
	unsigned count;
	int refuse; /* what ask says */
	struct names names;
};

static int ask(void *ctx, const struct objects_request *rq)
{
	struct bench *b = ctx;
	struct asked *a = &b->asked[b->count];

	if (b->refuse)
		return b->refuse;
	cr_assert_lt(b->count, 32);
	cr_assert_eq(rq->addresses.len, rq->lengths.len);
	a->rq = *rq;
	memcpy(a->addresses, rq->addresses.data, rq->addresses.len * 8);
	memcpy(a->lengths, rq->lengths.data, rq->lengths.len * 8);
	b->count++;
	return 0;
}

static struct bench *bench_new(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	cr_assert(b);
	b->k = capture_open("tests/data/python/3.11.txt");
	cr_assert_eq(objects_new(ask, b, &b->o), 0);
	return b;
}

static void bench_free(struct bench *b)
{
	objects_drop(b->o, P);
	cr_expect_eq(objects_counts(b->o).kept, 0);
	cr_expect_eq(objects_counts(b->o).held_bytes, 0);
	objects_free(b->o);
	capture_close(b->k);
	free(b);
}

/* Answers the oldest request. */
static void answer(struct bench *b, uint64_t status, uint64_t now_ns)
{
	static uint8_t bytes[OBJECTS_BYTES];
	uint64_t lengths[OBJECTS_PIECES];
	struct msg_memory_answer m = { .status = status };
	struct asked a;
	size_t used = 0;

	cr_assert_gt(b->count, 0);
	a = b->asked[0];
	memmove(b->asked, b->asked + 1, --b->count * sizeof(a));
	for (uint32_t i = 0; i < a.rq.addresses.len && !status; i++) {
		struct span s = capture_read(b->k, a.addresses[i], a.lengths[i]);

		cr_assert_leq(used + s.len, sizeof(bytes));
		if (s.len)
			memcpy(bytes + used, s.data, s.len);
		used += s.len;
		lengths[i] = s.len;
	}
	m.id = a.rq.id;
	if (!status) {
		m.lengths = (struct u64s){ .data = lengths, .len = a.rq.addresses.len };
		m.bytes = (struct span){ .data = bytes, .len = used };
	}
	cr_assert_eq(objects_answer(b->o, &m, now_ns), 0);
}

/* Rounds until nothing is asked for. */
static unsigned settle(struct bench *b, uint64_t now_ns)
{
	unsigned rounds = 0;

	for (;;) {
		cr_assert_eq(objects_send(b->o, now_ns), 0);
		if (!b->count)
			return rounds;
		answer(b, 0, now_ns);
		rounds++;
	}
}

static uint64_t mark_of(const struct bench *b, size_t i)
{
	return check_of(b->k, b->k->objects[i].address) << RUNTIME_CHECK_SHIFT | POSITION;
}

static int look(struct bench *b, size_t i, bool give_up, uint64_t now_ns)
{
	return objects_lookup(b->o, &b->k->build, P, PID, b->k->objects[i].address, mark_of(b, i),
			      give_up, now_ns, &b->names);
}

static bool is_called(const struct bench *b, const char *name)
{
	return b->names.count == 1 && str_eq(b->names.calls[0].system_name, str_from(name));
}

Test(objects, three_requests_name_any_number_of_objects)
{
	struct bench *b = bench_new();

	for (size_t i = 0; i < b->k->object_count; i++)
		objects_want(b->o, &b->k->build, P, PID, b->k->objects[i].address, mark_of(b, i),
			     SECOND);
	cr_expect_eq(look(b, 0, false, SECOND), OBJECTS_LATER);
	cr_expect_leq(settle(b, SECOND), 3);
	for (size_t i = 0; i < b->k->object_count; i++) {
		cr_expect_eq(look(b, i, false, SECOND), 0);
		if (strlen(b->k->objects[i].name) <= RUNTIME_TEXT)
			cr_expect(is_called(b, b->k->objects[i].name));
	}
	cr_expect_eq(settle(b, 2 * SECOND), 0);
	cr_expect_eq(objects_counts(b->o).named, b->k->object_count);
	bench_free(b);
}

Test(objects, positions_of_one_object_share_what_was_read)
{
	struct bench *b = bench_new();
	uint64_t mark = mark_of(b, 1) & ~RUNTIME_POSITION_MASK;
	uint64_t address = b->k->objects[1].address;

	look(b, 1, false, SECOND);
	settle(b, SECOND);
	cr_expect_eq(objects_lookup(b->o, &b->k->build, P, PID, address,
				    mark | RUNTIME_POSITION_MASK, false, SECOND, &b->names),
		     0);
	cr_expect_eq(b->names.calls[0].line, b->k->objects[1].first); /* not begun */
	cr_expect_eq(objects_lookup(b->o, &b->k->build, P, PID, address, mark | 0xfffffe, false,
				    SECOND, &b->names),
		     0);
	cr_expect_eq(b->names.calls[0].line, 0); /* beyond its end */
	cr_expect_eq(settle(b, SECOND), 0);
	bench_free(b);
}

Test(objects, another_object_is_gone_and_asked_for_again_later)
{
	struct bench *b = bench_new();
	uint64_t mark = mark_of(b, 0) ^ 1ull << RUNTIME_CHECK_SHIFT;
	uint64_t address = b->k->objects[0].address, now = SECOND;

	for (int i = 0; i < 2; i++, now += OBJECTS_RETRY_NS) {
		cr_expect_eq(objects_lookup(b->o, &b->k->build, P, PID, address, mark, false, now,
					    &b->names),
			     OBJECTS_LATER);
		cr_expect_leq(settle(b, now), 2); /* with the text of its name */
		cr_expect_eq(objects_lookup(b->o, &b->k->build, P, PID, address, mark, false, now,
					    &b->names),
			     OBJECTS_UNNAMED);
		cr_expect(is_called(b, "[python: gone]"));
	}
	bench_free(b);
}

Test(objects, memory_that_is_refused_is_said_to_be)
{
	struct bench *b = bench_new();

	look(b, 0, false, SECOND);
	objects_send(b->o, SECOND);
	answer(b, EACCES, SECOND);
	cr_expect_eq(look(b, 0, false, SECOND), OBJECTS_UNNAMED);
	cr_expect(is_called(b, "[python: memory not read]"));
	/* Also others of that process, and without asking. */
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_UNNAMED);
	cr_expect(is_called(b, "[python: memory not read]"));
	cr_expect_eq(settle(b, SECOND), 0);
	cr_expect_eq(look(b, 1, false, SECOND + OBJECTS_RETRY_NS), OBJECTS_LATER);
	bench_free(b);
}

Test(objects, what_is_too_much_for_now_is_asked_for_again)
{
	struct bench *b = bench_new();

	look(b, 0, false, SECOND);
	objects_send(b->o, SECOND);
	answer(b, EAGAIN, SECOND);
	objects_send(b->o, SECOND);
	cr_expect_eq(b->count, 0);
	cr_expect_eq(objects_deadline(b->o), SECOND + OBJECTS_AGAIN_NS);
	settle(b, SECOND + OBJECTS_AGAIN_NS);
	cr_expect_eq(look(b, 0, false, SECOND + OBJECTS_AGAIN_NS), 0);
	cr_expect(is_called(b, b->k->objects[0].name));
	bench_free(b);
}

Test(objects, an_answer_that_does_not_come_is_not_waited_for)
{
	struct bench *b = bench_new();

	look(b, 0, false, SECOND);
	objects_send(b->o, SECOND);
	cr_expect_eq(objects_deadline(b->o), SECOND + OBJECTS_WAIT_NS);
	cr_expect_eq(look(b, 0, true, SECOND), OBJECTS_UNNAMED);
	cr_expect(is_called(b, "[python: gone]"));
	objects_send(b->o, SECOND + OBJECTS_WAIT_NS);
	cr_expect_eq(look(b, 0, false, SECOND + OBJECTS_WAIT_NS), OBJECTS_UNNAMED);
	cr_expect(is_called(b, "[python: gone]"));
	cr_expect_eq(objects_deadline(b->o), 0);
	answer(b, 0, SECOND + OBJECTS_WAIT_NS); /* late, of no use */
	/* The process is asked again for others. */
	look(b, 1, false, 2 * SECOND);
	settle(b, 2 * SECOND);
	cr_expect_eq(look(b, 1, false, 2 * SECOND), 0);
	cr_expect(is_called(b, b->k->objects[1].name));
	bench_free(b);
}

Test(objects, a_full_queue_is_tried_again)
{
	struct bench *b = bench_new();

	b->refuse = -EAGAIN;
	look(b, 0, false, SECOND);
	cr_expect_eq(objects_send(b->o, SECOND), 0);
	b->refuse = 0;
	settle(b, SECOND);
	cr_expect_eq(look(b, 0, false, SECOND), 0);
	cr_expect(is_called(b, b->k->objects[0].name));
	bench_free(b);
}

Test(objects, a_process_that_ends_takes_its_objects_along)
{
	struct bench *b = bench_new();

	for (size_t i = 0; i < b->k->object_count; i++)
		look(b, i, false, SECOND);
	objects_send(b->o, SECOND);
	objects_drop(b->o, P);
	cr_expect_eq(objects_counts(b->o).kept, 0);
	answer(b, 0, SECOND);
	cr_expect_eq(objects_counts(b->o).named, 0);
	/* The next under that number is another. */
	look(b, 0, false, SECOND);
	settle(b, SECOND);
	cr_expect_eq(look(b, 0, false, SECOND), 0);
	cr_expect(is_called(b, b->k->objects[0].name));
	bench_free(b);
}

Test(objects, one_more_than_are_read_at_once_waits_for_its_turn)
{
	struct bench *b = bench_new();

	for (uint64_t i = 0; i < OBJECTS_READING / 2; i++)
		objects_lookup(b->o, &b->k->build, P + 1, PID, 0x10000 + i * 64,
			       i << RUNTIME_CHECK_SHIFT, false, SECOND, &b->names);
	cr_expect_eq(look(b, 0, false, SECOND), OBJECTS_LATER);
	settle(b, SECOND);
	cr_expect_eq(look(b, 0, false, SECOND), OBJECTS_LATER);
	settle(b, SECOND);
	cr_expect_eq(look(b, 0, false, SECOND), 0);
	cr_expect(is_called(b, b->k->objects[0].name));
	objects_drop(b->o, P + 1);
	bench_free(b);
}

Test(objects, many_objects_stay_within_their_ceilings)
{
	struct bench *b = bench_new();
	struct objects_counts c;

	for (uint64_t i = 0; i < 3 * (uint64_t)OBJECTS_READING; i++) {
		objects_want(b->o, &b->k->build, P, PID, 0x10000 + i * 64, i << RUNTIME_CHECK_SHIFT,
			     SECOND);
		if (i % 1000 == 999)
			settle(b, SECOND);
	}
	settle(b, SECOND);
	c = objects_counts(b->o);
	cr_expect_eq(c.gone, c.kept); /* none of them lies there */
	cr_expect_eq(objects_deadline(b->o), 0);
	bench_free(b);
}

enum { OBJECT, NAME, SOURCE, LINES, PIECES_TAKEN };

/* Has so much of the object, its strings and its lines taken, as the kernel's program does. */
static void take_most(struct bench *b, uint64_t process, size_t i,
		      const uint64_t most[static PIECES_TAKEN])
{
	uint64_t at[4] = { b->k->objects[i].address }, len[4];
	static uint8_t bytes[4096];
	struct msg_object m = { .process = process,
				.address = at[0],
				.check = check_of(b->k, at[0]),
				.addresses = { at, 4 },
				.lengths = { len, 4 } };
	struct python_naming naming;
	size_t n = 0;

	memcpy(&naming, b->k->build.naming, sizeof(naming));
	const struct runtime_copy c = python_copy(&naming);
	for (int piece = 0; piece < 4; piece++) {
		struct span s;

		if (piece)
			memcpy(&at[piece],
			       capture_read(b->k, at[0], c.step[0].bytes).data +
				       c.step[piece].pointer,
			       8);
		s = capture_read(b->k, at[piece], most[piece]);
		len[piece] = s.len;
		memcpy(bytes + n, s.data, s.len);
		n += s.len;
	}
	m.bytes = (struct span){ bytes, n };
	cr_assert_eq(objects_take(b->o, &m), 0);
}

static void take_of(struct bench *b, uint64_t process, size_t i, uint64_t lines)
{
	struct python_naming n;

	memcpy(&n, b->k->build.naming, sizeof(n));
	take_most(b, process, i, (uint64_t[]){ n.code_bytes, 128, 192, lines });
}

static void take(struct bench *b, size_t i, uint64_t lines)
{
	take_of(b, P, i, lines);
}

Test(objects, one_that_was_taken_is_named_without_asking)
{
	struct bench *b = bench_new();

	take(b, 1, 1024);
	cr_expect_eq(look(b, 1, false, SECOND), 0);
	cr_expect(is_called(b, b->k->objects[1].name));
	cr_expect_gt(b->names.calls[0].line, 0);
	cr_expect_eq(settle(b, SECOND), 0);
	bench_free(b);
}

Test(objects, one_that_is_freed_has_the_name_but_not_the_lines_of_what_was_taken)
{
	struct bench *b = bench_new();

	take(b, 1, 20);
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER);
	cr_expect_eq(look(b, 1, true, SECOND), 0);
	cr_expect(is_called(b, b->k->objects[1].name));
	objects_send(b->o, SECOND);
	answer(b, ESRCH, SECOND);
	cr_expect_eq(look(b, 1, false, SECOND), 0);
	cr_expect(is_called(b, b->k->objects[1].name));
	cr_expect_eq(b->names.calls[0].line, 0);
	bench_free(b);
}

Test(objects, one_whose_strings_were_not_taken_whole_is_gone_when_it_is_freed)
{
	static const uint64_t cut[][PIECES_TAKEN] = {
		{ 40, 128, 192, 1024 }, { 256, 50, 192, 1024 }, { 256, 128, 50, 1024 },
		{ 256, 20, 192, 1024 }, { 256, 0, 192, 1024 },	{ 0, 128, 192, 1024 }
	};

	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		struct bench *b = bench_new();

		take_most(b, P, 1, cut[i]);
		cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER);
		cr_expect_eq(look(b, 1, true, SECOND), OBJECTS_UNNAMED);
		cr_expect(str_eq(b->names.calls[0].name, STR_LIT("[python: gone]")), "%zu", i);
		objects_send(b->o, SECOND);
		answer(b, ESRCH, SECOND);
		cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_UNNAMED);
		cr_expect(str_eq(b->names.calls[0].name, STR_LIT("[python: gone]")), "%zu", i);
		bench_free(b);
	}
}

Test(objects, one_whose_strings_were_not_taken_whole_is_named_when_it_is_there)
{
	struct bench *b = bench_new();

	take_most(b, P, 1, (uint64_t[]){ 256, 50, 50, 20 });
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER);
	cr_expect_gt(settle(b, SECOND), 0);
	cr_expect_eq(look(b, 1, false, SECOND), 0);
	cr_expect(is_called(b, b->k->objects[1].name));
	cr_expect_gt(b->names.calls[0].line, 0);
	bench_free(b);
}

Test(objects, bytes_of_a_name_that_are_no_text_make_a_name_in_utf8)
{
	struct bench *b = bench_new();
	struct python_naming n;
	uint64_t name;

	memcpy(&n, b->k->build.naming, sizeof(n));
	memcpy(&name,
	       capture_read(b->k, b->k->objects[1].address, n.code_bytes).data +
		       python_copy(&n).step[1].pointer,
	       8);
	for (size_t i = 0; i < b->k->count; i++)
		if (b->k->pieces[i].address == name)
			memset(b->k->pieces[i].bytes + n.text_ascii, 0xff, 3);
	take(b, 1, 1024);
	cr_expect_eq(look(b, 1, false, SECOND), 0);
	cr_expect_eq(memcmp(b->names.calls[0].system_name.data, "\xc3\xbf\xc3\xbf\xc3\xbf", 6), 0);
	bench_free(b);
}

Test(objects, the_rest_of_one_that_was_taken_in_part_is_asked_for)
{
	struct bench *b = bench_new();

	take(b, 1, 20);
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER);
	cr_expect_gt(settle(b, SECOND), 0);
	cr_expect_eq(look(b, 1, false, SECOND), 0);
	cr_expect(is_called(b, b->k->objects[1].name));
	cr_expect_gt(b->names.calls[0].line, 0);
	bench_free(b);
}

Test(objects, what_was_taken_of_another_names_nothing)
{
	struct bench *b = bench_new();
	uint64_t mark = mark_of(b, 1) ^ 1ull << RUNTIME_CHECK_SHIFT;

	take(b, 1, 1024);
	cr_expect_eq(objects_lookup(b->o, &b->k->build, P, PID, b->k->objects[1].address, mark,
				    false, SECOND, &b->names),
		     OBJECTS_LATER);
	cr_expect_eq(objects_lookup(b->o, &b->k->build, P + 1, PID, b->k->objects[1].address,
				    mark_of(b, 1), false, SECOND, &b->names),
		     OBJECTS_LATER);
	objects_drop(b->o, P + 1);
	bench_free(b);
}

Test(objects, what_is_taken_again_of_a_named_one_is_not_kept)
{
	struct bench *b = bench_new();

	take(b, 1, 1024);
	cr_expect_eq(look(b, 1, false, SECOND), 0);
	take(b, 1, 1024);
	objects_drop(b->o, P);
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER);
	bench_free(b);
}

Test(objects, only_so_many_are_kept_that_nobody_wants)
{
	struct bench *b = bench_new();
	uint64_t at = 0x1000, len = 8;

	take(b, 1, 1024);
	for (uint64_t i = 0; i < 2 * OBJECTS_TAKEN; i++)
		cr_assert_eq(
			objects_take(b->o, &(struct msg_object){ .process = P,
								 .address = i,
								 .check = 1,
								 .addresses = { &at, 1 },
								 .lengths = { &len, 1 },
								 .bytes = { (uint8_t *)&at, 8 } }),
			0);
	/* More than it has, and no pieces. */
	len = 9;
	cr_assert_eq(objects_take(b->o, &(struct msg_object){ .process = P,
							      .addresses = { &at, 1 },
							      .lengths = { &len, 1 },
							      .bytes = { (uint8_t *)&at, 8 } }),
		     0);
	cr_assert_eq(objects_take(b->o, &(struct msg_object){ .process = P, .check = 2 }), 0);
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER);
	bench_free(b);
}

Test(objects, names_outlive_an_epoch_and_what_was_read_does_not)
{
	struct bench *b = bench_new();
	struct runtime_build build = b->k->build;

	look(b, 0, false, SECOND);
	settle(b, SECOND);
	take(b, 1, 1024);
	take(b, 2, 20);
	cr_expect_eq(look(b, 2, false, SECOND), OBJECTS_LATER);
	cr_expect_eq(look(b, 3, false, SECOND), OBJECTS_LATER);
	objects_send(b->o, SECOND);
	objects_renew(b->o, SECOND);
	memset(&b->k->build, 0xa5, sizeof(build));
	answer(b, 0, SECOND); /* of no use any more */
	b->k->build = build;
	for (size_t i = 0; i < 3; i++) {
		cr_expect_eq(look(b, i, false, SECOND), 0);
		cr_expect(is_called(b, b->k->objects[i].name));
	}
	cr_expect_eq(settle(b, SECOND), 0);
	cr_expect_eq(look(b, 3, false, SECOND), OBJECTS_LATER);
	cr_expect_gt(settle(b, SECOND), 0);
	cr_expect_eq(look(b, 3, false, SECOND), 0);
	cr_expect(is_called(b, b->k->objects[3].name));
	bench_free(b);
}

Test(objects, nothing_is_read_by_a_build_that_is_forgotten)
{
	struct bench *b = bench_new();
	const struct runtime_build build = b->k->build;

	look(b, 0, false, SECOND);
	settle(b, SECOND);
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER);
	objects_send(b->o, SECOND);
	objects_forget_build(b->o, &build, SECOND);
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER, "that is another one");
	objects_forget_build(b->o, &b->k->build, SECOND);
	memset(&b->k->build, 0xa5, sizeof(build));
	answer(b, 0, SECOND); /* of no use any more */
	b->k->build = build;
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_UNNAMED);
	cr_expect_eq(look(b, 0, false, SECOND), 0, "names stay");
	cr_expect(is_called(b, b->k->objects[0].name));
	bench_free(b);
}

Test(objects, a_process_that_an_epoch_did_not_sample_is_dropped)
{
	struct bench *b = bench_new();

	look(b, 0, false, SECOND);
	settle(b, SECOND);
	objects_renew(b->o, SECOND);
	cr_expect_eq(look(b, 0, false, SECOND), 0);
	objects_renew(b->o, SECOND);
	cr_expect_eq(objects_counts(b->o).kept, 1);
	objects_renew(b->o, SECOND);
	cr_expect_eq(objects_counts(b->o).kept, 0);
	/* The ends of these are never told. */
	for (uint64_t process = 100; process < 100 + 3 * OBJECTS_PROCESSES; process++) {
		if (process % OBJECTS_PROCESSES == 0) {
			objects_renew(b->o, SECOND);
			objects_renew(b->o, SECOND);
		}
		cr_assert_eq(objects_lookup(b->o, &b->k->build, process, PID,
					    b->k->objects[0].address, mark_of(b, 0), true, SECOND,
					    &b->names),
			     OBJECTS_UNNAMED);
	}
	for (uint64_t process = 100; process < 100 + 3 * OBJECTS_PROCESSES; process++)
		objects_drop(b->o, process);
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER, "there is room");
	bench_free(b);
}

static uint64_t owner_of(void *ctx, uint64_t process)
{
	return process == Q;
}

#define MANY_PROCESSES (2 * OBJECTS_PROCESSES)

/* Of process Q, which has another owner than all the others. */
static int look_other(struct bench *b)
{
	return objects_lookup(b->o, &b->k->build, Q, PID, b->k->objects[0].address, mark_of(b, 0),
			      false, SECOND, &b->names);
}

Test(objects, who_has_all_that_can_be_read_leaves_places_to_others)
{
	struct bench *b = bench_new();

	objects_owners(b->o, owner_of, b);
	for (uint64_t i = 0; i < OBJECTS_READING; i++)
		objects_want(b->o, &b->k->build, P, PID, 0x10000 + i * 64, i << RUNTIME_CHECK_SHIFT,
			     SECOND);
	cr_expect_eq(look(b, 0, false, SECOND), OBJECTS_LATER);
	cr_expect_eq(look_other(b), OBJECTS_LATER);
	settle(b, SECOND);
	cr_expect_eq(look_other(b), 0);
	cr_expect(is_called(b, b->k->objects[0].name));
	objects_drop(b->o, Q);
	bench_free(b);
}

static void drop_many(struct bench *b, uint64_t count)
{
	for (uint64_t process = 1000; process < 1000 + count; process++)
		objects_drop(b->o, process);
	objects_drop(b->o, Q);
}

Test(objects, processes_that_never_answer_leave_requests_to_others)
{
	struct bench *b = bench_new();

	objects_owners(b->o, owner_of, b);
	for (uint64_t process = 1000; process < 1000 + OBJECTS_IN_FLIGHT; process++)
		objects_want(b->o, &b->k->build, process, PID, b->k->objects[0].address,
			     mark_of(b, 0), SECOND);
	cr_assert_eq(objects_send(b->o, SECOND), 0);
	cr_expect_eq(b->count, OBJECTS_IN_FLIGHT / 2);
	/* Nobody answers these. */
	b->count = 0;
	cr_expect_eq(look_other(b), OBJECTS_LATER);
	settle(b, SECOND);
	cr_expect_eq(look_other(b), 0);
	drop_many(b, OBJECTS_IN_FLIGHT);
	bench_free(b);
}

Test(objects, who_has_many_processes_displaces_its_own)
{
	struct bench *b = bench_new();

	objects_owners(b->o, owner_of, b);
	(void)look_other(b);
	settle(b, SECOND);
	for (uint64_t process = 1000; process < 1000 + MANY_PROCESSES; process++) {
		objects_want(b->o, &b->k->build, process, PID, b->k->objects[0].address,
			     mark_of(b, 0), SECOND);
		if (process % 100 == 0)
			settle(b, SECOND);
	}
	cr_expect_eq(look_other(b), 0, "its name is still known");
	settle(b, SECOND);
	cr_expect_eq(objects_lookup(b->o, &b->k->build, 1000 + MANY_PROCESSES - 1, PID,
				    b->k->objects[0].address, mark_of(b, 0), false, SECOND,
				    &b->names),
		     0);
	drop_many(b, MANY_PROCESSES);
	bench_free(b);
}

Test(objects, who_has_many_copies_displaces_its_own)
{
	struct bench *b = bench_new();
	uint64_t at = 0x1000, len = 8;

	objects_owners(b->o, owner_of, b);
	take_of(b, Q, 0, 1024);
	for (uint64_t i = 0; i < 2 * OBJECTS_TAKEN; i++)
		cr_assert_eq(
			objects_take(b->o, &(struct msg_object){ .process = P,
								 .address = i,
								 .check = 1,
								 .addresses = { &at, 1 },
								 .lengths = { &len, 1 },
								 .bytes = { (uint8_t *)&at, 8 } }),
			0);
	take(b, 1, 1024);
	cr_expect_eq(look_other(b), 0);
	cr_expect_eq(look(b, 1, false, SECOND), 0, "the newest of the other owner is there too");
	objects_drop(b->o, Q);
	bench_free(b);
}

Test(objects, who_has_many_makes_room_for_who_has_few)
{
	for (int owners = 0; owners <= 1; owners++) {
		struct bench *b = bench_new();

		if (owners)
			objects_owners(b->o, owner_of, b);
		/* Of the other process one object, which is the oldest. */
		(void)objects_lookup(b->o, &b->k->build, Q, PID, b->k->objects[0].address,
				     mark_of(b, 0), false, SECOND, &b->names);
		settle(b, SECOND);
		for (size_t i = 0; i < b->k->object_count; i++)
			(void)look(b, i, false, SECOND);
		settle(b, SECOND);
		objects_budget(b->o, objects_counts(b->o).held_bytes * 3 / 4);
		objects_want(b->o, &b->k->build, P, PID, b->k->objects[0].address,
			     (uint64_t)5 << RUNTIME_CHECK_SHIFT, SECOND);
		cr_expect_gt(objects_counts(b->o).evicted, 0);
		const int r = objects_lookup(b->o, &b->k->build, Q, PID, b->k->objects[0].address,
					     mark_of(b, 0), false, SECOND, &b->names);

		cr_expect_eq(r, owners ? 0 : OBJECTS_LATER);
		settle(b, SECOND);
		objects_drop(b->o, Q);
		bench_free(b);
	}
}
