/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of one owner: which are requested, read, taken and kept. */
#include <errno.h>
#include <stdio.h>
#include "common/cell/budget/budget.h"
#include "common/names/runtime/v8/v8.h"
#include "tests/unit/prof-symd/objects_bench.h"
#include "tools/prof-symd/objects/copies.h"

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
		/* Each time with the text of its name. */
		cr_expect_leq(settle(b, now), 2 * OBJECTS_ATTEMPTS);
		cr_expect_eq(objects_lookup(b->o, &b->k->build, P, PID, address, mark, false, now,
					    &b->names),
			     OBJECTS_UNNAMED);
		cr_expect(is_called(b, "[python: gone]"));
		cr_expect_eq(objects_why(b->o), UNNAMED_GONE);
	}
	bench_free(b);
}

Test(objects, withheld_objects_are_read_again)
{
	struct bench *b = bench_new();

	look(b, 0, false, SECOND);
	cr_assert_eq(objects_send(b->o, SECOND), 0);
	answer(b, 0, SECOND);
	cr_assert_eq(objects_send(b->o, SECOND), 0);
	b->withheld = true;
	answer(b, 0, SECOND);
	b->withheld = false;
	cr_expect_eq(look(b, 0, false, SECOND), OBJECTS_LATER);
	cr_expect_gt(settle(b, SECOND), 0);
	cr_expect_eq(look(b, 0, false, SECOND), 0);
	cr_expect(is_called(b, b->k->objects[0].name));
	bench_free(b);
}

Test(objects, withheld_objects_are_given_up_in_the_end)
{
	struct bench *b = bench_new();

	b->withheld = true;
	look(b, 0, false, SECOND);
	cr_expect_leq(settle(b, SECOND), 3 * OBJECTS_ATTEMPTS);
	cr_expect_eq(look(b, 0, false, SECOND), OBJECTS_UNNAMED);
	cr_expect(is_called(b, "[python: gone]"));
	bench_free(b);
}

Test(objects, refused_memory_is_shown_as_refused)
{
	struct bench *b = bench_new();

	look(b, 0, false, SECOND);
	objects_send(b->o, SECOND);
	answer(b, EACCES, SECOND);
	cr_expect_eq(look(b, 0, false, SECOND), OBJECTS_UNNAMED);
	cr_expect(is_called(b, "[python: memory not read]"));
	/* Also others of that process, without a request. */
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_UNNAMED);
	cr_expect(is_called(b, "[python: memory not read]"));
	cr_expect_eq(settle(b, SECOND), 0);
	cr_expect_eq(look(b, 1, false, SECOND + OBJECTS_RETRY_NS), OBJECTS_LATER);
	bench_free(b);
}

Test(objects, a_busy_answer_is_retried)
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
	/* The process may be asked again for other objects. */
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
	/* The next process with that number is another one. */
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
	cr_expect_eq(c.gone, c.kept); /* no object is there */
	cr_expect_eq(objects_deadline(b->o), 0);
	bench_free(b);
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

/* Copies a function of V8, which has a key and no address. */
static void take_called(struct bench *b, uint64_t identity, const char *name, const char *script)
{
	const size_t len = strlen(name), script_len = strlen(script);
	uint64_t told[V8_TOLD_WORDS] = {
		[V8_TOLD_IDENTITY] = identity,	   [V8_TOLD_KIND] = V8_FUNCTION,
		[V8_TOLD_LINE] = V8_NO_LINE,	   [V8_TOLD_NAME] = 0x10000,
		[V8_TOLD_NAME_SIZE] = len,	   [V8_TOLD_SCRIPT] = 0x20000,
		[V8_TOLD_SCRIPT_SIZE] = script_len
	};
	uint8_t bytes[sizeof(told) + 256];
	uint64_t addresses[] = { v8_key(identity), 0x10000, 0x20000 },
		 lengths[] = { sizeof(told), len, script_len };

	memcpy(bytes, told, sizeof(told));
	memcpy(bytes + sizeof(told), name, len);
	memcpy(bytes + sizeof(told) + len, script, script_len);
	cr_assert_eq(
		objects_take(b->o, &(struct msg_object){ .process = P,
							 .address = v8_key(identity),
							 .check = v8_check(identity),
							 .addresses = { addresses, 3 },
							 .lengths = { lengths, 3 },
							 .bytes = { bytes, lengths[0] + lengths[1] +
										   lengths[2] } }),
		0);
}

static void take_keyed(struct bench *b, uint64_t identity)
{
	take_called(b, identity, "keyed", "/srv/keyed.js");
}

static int look_keyed_at(struct bench *b, uint64_t identity, uint64_t now_ns)
{
	static const struct runtime_build v8 = { .known = true, .config.runtime = RUNTIME_V8 };

	return objects_lookup(b->o, &v8, P, PID, v8_key(identity),
			      v8_check(identity) << RUNTIME_CHECK_SHIFT, false, now_ns, &b->names);
}

static int look_keyed(struct bench *b, uint64_t identity)
{
	return look_keyed_at(b, identity, SECOND);
}

Test(objects, a_name_that_did_not_fit_is_told_apart_from_one_that_did_not_come)
{
	const uint64_t later = SECOND + OBJECTS_WAIT_NS;
	struct bench *b = bench_new();

	objects_budget(b->o, 64 << 10);
	for (uint64_t i = 1; i <= 1000; i++) {
		take_keyed(b, i);
		cr_assert_eq(look_keyed(b, i), 0);
	}
	cr_assert_gt(objects_counts(b->o).evicted, 0);
	cr_expect_eq(look_keyed(b, 1), OBJECTS_UNNAMED, "its copy comes with a later sample");
	cr_expect_eq(look_keyed(b, 1001), OBJECTS_LATER);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(look_keyed_at(b, 1, later), OBJECTS_UNNAMED);
		cr_expect_eq(objects_why(b->o), UNNAMED_MEMORY_LIMIT);
		cr_expect_eq(look_keyed_at(b, 1001, later), OBJECTS_UNNAMED);
		cr_expect_eq(objects_why(b->o), UNNAMED_SLOW);
		objects_send(b->o, later);
	}
	take_keyed(b, 1);
	cr_expect_eq(look_keyed_at(b, 1, later), 0, "its copy came again");
	bench_free(b);
}

/* 20,000 names are those of a large Java program, which take about 300 bytes each. */
Test(objects, twenty_thousand_that_are_in_use_stay_named_within_the_default_limit)
{
	struct bench *b = bench_new();
	struct budget budget;

	budget_split(BUDGET_DEFAULT, 0, &budget);
	objects_budget(b->o, budget.objects);
	for (int round = 0; round < 2; round++)
		for (uint64_t i = 1; i <= 20000; i++) {
			char name[121], script[81];

			snprintf(name, sizeof(name), "%0120lu", i);
			snprintf(script, sizeof(script), "/%079lu", i);
			if (!round)
				take_called(b, i, name, script);
			cr_assert_eq(look_keyed(b, i), 0, "%lu", i);
			cr_assert(is_called(b, name));
		}
	cr_expect_eq(objects_counts(b->o).evicted, 0);
	cr_expect_leq(objects_counts(b->o).held_bytes, budget.objects);
	bench_free(b);
}

Test(objects, another_copy_is_requested_of_one_with_a_key_that_was_evicted)
{
	struct bench *b = bench_new();

	objects_budget(b->o, 64 << 10);
	for (uint64_t i = 1; i <= 1000; i++) {
		take_keyed(b, i);
		cr_assert_eq(look_keyed(b, i), 0);
	}
	cr_expect_eq(look_keyed(b, 1), OBJECTS_UNNAMED);
	cr_expect_eq(look_keyed(b, 1001), OBJECTS_LATER, "it may still come");
	cr_assert_eq(objects_send(b->o, SECOND), 0);
	cr_assert_eq(b->count, 1);
	cr_assert_eq(b->asked[0].rq.addresses.len, 1);
	cr_expect_eq(b->asked[0].addresses[0], v8_key(1));
	answer(b, EAGAIN, SECOND);
	const uint64_t again = SECOND + OBJECTS_AGAIN_NS;

	cr_assert_eq(objects_send(b->o, again), 0);
	cr_assert_eq(b->count, 1, "the rate was exceeded");
	answer(b, EFAULT, again);
	cr_assert_eq(objects_send(b->o, again + OBJECTS_AGAIN_NS), 0);
	cr_expect_eq(b->count, 0, "it is requested once");
	take_keyed(b, 1);
	cr_expect_eq(look_keyed_at(b, 1, again), 0);
	cr_expect(is_called(b, "keyed"));
	/* Without a copy, it is requested again later. */
	cr_expect_eq(look_keyed_at(b, 2, again), OBJECTS_UNNAMED);
	cr_assert_eq(objects_send(b->o, again + 2 * OBJECTS_AGAIN_NS), 0);
	cr_assert_eq(b->count, 1);
	answer(b, EFAULT, again + 2 * OBJECTS_AGAIN_NS);
	cr_assert_eq(objects_send(b->o, again + OBJECTS_WAIT_NS), 0);
	cr_expect_eq(look_keyed_at(b, 2, again + 2 * OBJECTS_WAIT_NS), OBJECTS_UNNAMED);
	cr_assert_eq(objects_send(b->o, again + 2 * OBJECTS_WAIT_NS), 0);
	cr_assert_eq(b->count, 1);
	answer(b, EFAULT, again + 2 * OBJECTS_WAIT_NS);
	bench_free(b);
}

Test(objects, one_with_a_key_waits_for_its_copy_and_asks_for_nothing)
{
	struct bench *b = bench_new();
	const struct runtime_build v8 = { .known = true, .config.runtime = RUNTIME_V8 };
	const uint64_t key = v8_key(77), mark = v8_check(77) << RUNTIME_CHECK_SHIFT;

	cr_expect_eq(objects_lookup(b->o, &v8, P, PID, key, mark, false, SECOND, &b->names),
		     OBJECTS_LATER);
	objects_send(b->o, SECOND);
	cr_expect_eq(objects_counts(b->o).requests, 0);
	take_keyed(b, 77);
	cr_expect_eq(objects_lookup(b->o, &v8, P, PID, key, mark, false, SECOND + 1, &b->names), 0);
	cr_expect(is_called(b, "keyed"));
	bench_free(b);
}

Test(objects, one_with_a_key_that_was_given_up_is_named_when_its_copy_comes)
{
	struct bench *b = bench_new();
	const struct runtime_build v8 = { .known = true, .config.runtime = RUNTIME_V8 };
	const uint64_t key = v8_key(78), mark = v8_check(78) << RUNTIME_CHECK_SHIFT;

	cr_expect_eq(objects_lookup(b->o, &v8, P, PID, key, mark, false, SECOND, &b->names),
		     OBJECTS_LATER);
	objects_send(b->o, SECOND + OBJECTS_WAIT_NS);
	cr_expect_eq(objects_lookup(b->o, &v8, P, PID, key, mark, false, SECOND + OBJECTS_WAIT_NS,
				    &b->names),
		     OBJECTS_UNNAMED);
	take_keyed(b, 78);
	cr_expect_eq(objects_lookup(b->o, &v8, P, PID, key, mark, false,
				    SECOND + OBJECTS_WAIT_NS + 1, &b->names),
		     0);
	cr_expect(is_called(b, "keyed"));
	bench_free(b);
}

Test(objects, one_with_a_key_is_not_waited_for_if_its_memory_may_not_be_read)
{
	const struct runtime_build v8 = { .known = true, .config.runtime = RUNTIME_V8 };

	for (uint64_t identity = 80; identity < 82; identity++) {
		struct bench *b = bench_new();
		const uint64_t key = v8_key(identity), mark = v8_check(identity)
							      << RUNTIME_CHECK_SHIFT;
		const struct msg_object empty = { .process = P,
						  .address = key,
						  .check = v8_check(identity) };

		/* The copy comes before the frame, or after it. */
		if (identity == 80)
			cr_assert_eq(objects_take(b->o, &empty), 0);
		else
			cr_expect_eq(objects_lookup(b->o, &v8, P, PID, key, mark, false, SECOND,
						    &b->names),
				     OBJECTS_LATER);
		if (identity == 81)
			cr_assert_eq(objects_take(b->o, &empty), 0);
		for (unsigned minutes = 0; minutes < 120; minutes += 60) {
			cr_expect_eq(objects_lookup(b->o, &v8, P, PID, key, mark, false,
						    (1 + minutes * 60) * SECOND, &b->names),
				     OBJECTS_UNNAMED);
			cr_expect(is_called(b, "[v8: memory not read]"));
		}
		cr_expect_eq(objects_deadline(b->o), 0);
		bench_free(b);
	}
}

Test(objects, none_is_requested_or_waited_for_if_no_memory_may_be_read)
{
	const struct runtime_build v8 = { .known = true, .config.runtime = RUNTIME_V8 };
	struct bench *b = bench_new();
	const uint64_t key = v8_key(80), mark = v8_check(80) << RUNTIME_CHECK_SHIFT;

	objects_forbid(b->o, true);
	objects_want(b->o, &b->k->build, P, PID, b->k->objects[0].address, mark_of(b, 0), SECOND);
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_UNNAMED);
	cr_expect(is_called(b, "[python: memory not read]"));
	cr_expect_eq(objects_lookup(b->o, &v8, P, PID, key, mark, false, SECOND, &b->names),
		     OBJECTS_UNNAMED);
	cr_expect(is_called(b, "[v8: memory not read]"));
	cr_expect_eq(settle(b, 2 * SECOND), 0);
	cr_expect_eq(objects_deadline(b->o), 0);
	cr_expect_eq(objects_counts(b->o).refused, 2);

	objects_forbid(b->o, false);
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER);
	bench_free(b);
}

Test(objects, a_freed_object_has_the_name_but_not_the_lines_of_its_copy)
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

Test(objects, a_freed_object_with_truncated_strings_is_gone)
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

Test(objects, a_live_object_with_truncated_strings_is_named)
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

Test(objects, an_object_taken_from_another_names_nothing)
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

Test(objects, a_second_copy_of_a_named_object_is_dropped)
{
	struct bench *b = bench_new();

	take(b, 1, 1024);
	cr_expect_eq(look(b, 1, false, SECOND), 0);
	take(b, 1, 1024);
	objects_drop(b->o, P);
	cr_expect_eq(look(b, 1, false, SECOND), OBJECTS_LATER);
	bench_free(b);
}

Test(objects, the_number_of_unwanted_objects_is_bounded)
{
	struct bench *b = bench_new();
	uint64_t at = 0x1000, len = 8;

	take(b, 1, 1024);
	for (uint64_t i = 0; i < 2 * COPIES_MAX; i++)
		cr_assert_eq(
			objects_take(b->o, &(struct msg_object){ .process = P,
								 .address = i,
								 .check = 1,
								 .addresses = { &at, 1 },
								 .lengths = { &len, 1 },
								 .bytes = { (uint8_t *)&at, 8 } }),
			0);
	/* More than it has, and without pieces. */
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
	/* The ends of these processes are never reported. */
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
