/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/model_fixture.h"
#include "common/wire/reason.h"

Test(model, the_same_stack_in_two_epochs_is_one)
{
	struct model *m = new_model(MODEL_ADDRESSES, true, 1 << 20);
	const struct model_bucket *b;

	simple(m);
	cr_assert_eq(sample(m, 1, 1), MODEL_SAMPLE);
	model_forget(m);
	cr_assert_eq(sample(m, 1, 1), 0, "ids of the epoch before are void");
	cr_assert_eq(model_totals(m)->lost[LOST_MALFORMED], 1);
	simple(m);
	cr_assert_eq(sample(m, 1, 1), MODEL_SAMPLE);
	cr_assert_eq(model_buckets(m, &b), 1);
	cr_assert_eq(b[0].samples, 2);
	cr_assert_eq(b[0].value, 14);
	cr_assert_eq(model_totals(m)->processes, 1);
	cr_assert_eq(model_totals(m)->threads, 1);
	model_free(m);
}

/* Samples that the sampler reported as lost are not counted again. */
Test(model, samples_missing_without_a_report_count_as_lost_by_restart)
{
	static const struct str began = STR_LIT("began"), taken = STR_LIT("taken");

	for (uint64_t told = 0; told <= 4; told += 4) {
		struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

		simple(m);
		take(m, (struct msg){ .id = MSG_FIGURE, .figure = { .name = began, .value = 1 } });
		for (int i = 0; i < 5; i++)
			sample(m, 1, 1);
		if (told)
			take(m,
			     (struct msg){ .id = MSG_LOST,
					   .lost = { .reason = LOST_RING_FULL, .count = told } });
		/* These reasons count events, not samples. */
		for (uint64_t i = 0; i < LOST_REASONS; i++)
			if (!reason_lost_is_samples(i))
				take(m, (struct msg){ .id = MSG_LOST,
						      .lost = { .reason = i, .count = 1000 } });
		take(m, (struct msg){ .id = MSG_FIGURE, .figure = { .name = taken, .value = 12 } });
		take(
			m, (struct msg) {
				.id = MSG_END
				, .end = {.reason = MSG_END_DONE }
			});
		cr_assert_eq(model_totals(m)->lost[LOST_RESTART], 12 - 5 - told);
		model_free(m);
	}
}

Test(model, addresses_within_a_function_differ_only_where_they_are_shown)
{
	for (int detail = MODEL_NAMES; detail <= MODEL_ADDRESSES; detail++) {
		struct model *m = new_model((enum model_detail)detail, true, 1 << 20);
		const struct model_stack *stacks;

		simple(m);
		frame(m, 3, 204, 2);
		take(m,
		     (struct msg){ .id = MSG_STACK, .stack = { .id = 2, .frames = LIST(3, 1) } });
		cr_assert_eq(model_stacks(m, &stacks), detail == MODEL_NAMES ? 1 : 2);
		model_free(m);
	}
}

Test(model, inlined_calls_are_frames_of_their_own)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	simple(m);
	take(m, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = 3,
					 .offset = 5,
					 .functions = LIST(2, 1, 2),
					 .lines = LIST(1, 2, 3) } });
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 2, .frames = LIST(3, 1) } });
	sample(m, 2, 1);
	cr_assert_str_eq(folded(m, false), "a;main;leaf;main;leaf 1\n");
	model_free(m);
}

Test(model, sample_after_a_gap_is_lost_to_the_gap)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	simple(m);
	model_missing(m, 3);
	cr_assert_eq(sample(m, 9, 1), 0);
	cr_assert_eq(model_totals(m)->lost[LOST_SEQUENCE], 4);
	cr_assert_eq(model_totals(m)->samples, 0);
	model_free(m);
}

Test(model, frame_without_one_of_its_functions_is_not_shown)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	simple(m);
	take(m, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = 3, .offset = 5, .functions = LIST(1, 99) } });
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 2, .frames = LIST(3, 1) } });
	cr_assert_eq(sample(m, 2, 1), 0);
	cr_assert_eq(model_totals(m)->lost[LOST_MALFORMED], 1);
	model_free(m);
}

Test(model, a_second_definition_of_a_process_updates_the_first)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	const struct model_process *p;
	const struct model_file *f;

	simple(m);
	cr_assert_eq(sample(m, 1, 1), MODEL_SAMPLE);
	take(m,
	     (struct msg){ .id = MSG_FILE, .file = { .id = 9, .path = STR_LIT("/usr/bin/late") } });
	take(m, (struct msg){ .id = MSG_PROCESS,
			      .process = { .id = 1,
					   .pid = 10,
					   .start_ns = 10,
					   .comm = STR_LIT("late"),
					   .exe = 9 } });
	cr_assert_eq(sample(m, 1, 1), MODEL_SAMPLE);
	cr_assert_eq(model_processes(m, &p), 1);
	cr_assert_eq(model_files(m, &f), 1);
	cr_expect_eq(p->exe, 0);
	cr_expect(str_eq(model_string(m, p->comm), STR_LIT("late")));
	cr_expect_eq(model_totals(m)->processes, 1);
	cr_expect_str_eq(folded(m, false), "late;main;leaf 2\n");
	/* A later epoch without it changes nothing. */
	model_forget(m);
	simple(m);
	cr_assert_eq(sample(m, 1, 1), MODEL_SAMPLE);
	model_processes(m, &p);
	cr_expect_eq(p->exe, 0);
	model_free(m);
}

Test(model, the_period_of_cycles_is_what_samples_stand_for_on_average)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	simple(m);
	take(m, (struct msg){ .id = MSG_HELLO, .hello = { .unit = STR_LIT("cycles") } });
	cr_expect_eq(model_period(m), 0);
	for (uint64_t value = 1000; value <= 3000; value += 500)
		take(m, (struct msg){ .id = MSG_SAMPLE,
				      .sample = { .stack = 1, .thread = 1, .value = value } });
	cr_expect_eq(model_period(m), 2000);
	model_free(m);
	m = new_model(MODEL_NAMES, true, 1 << 20);
	simple(m);
	take(m, (struct msg){ .id = MSG_HELLO, .hello = { .period = 7000 } });
	cr_assert_eq(sample(m, 1, 1), MODEL_SAMPLE);
	cr_expect_eq(model_period(m), 7000);
	model_free(m);
}

Test(model, a_second_definition_of_a_file_updates_the_first)
{
	struct model *m = new_model(MODEL_ADDRESSES, true, 1 << 20);
	const struct model_file *f;
	struct msg file = { .id = MSG_FILE,
			    .file = { .id = 9, .inode = 3, .path = STR_LIT("/usr/bin/x") } };

	take(m, file);
	file.file.flags = MSG_FILE_DELETED;
	file.file.build_id = (struct span){ .data = (const uint8_t *)"\xab", .len = 1 };
	take(m, file);
	cr_assert_eq(model_files(m, &f), 1);
	cr_expect_eq(f->flags, MSG_FILE_DELETED);
	cr_expect(str_eq(model_string(m, f->build_id), STR_LIT("ab")));
	/* A later epoch without it changes nothing. */
	model_forget(m);
	file.file.build_id.len = 0;
	take(m, file);
	cr_assert_eq(model_files(m, &f), 1);
	cr_expect(str_eq(model_string(m, f->build_id), STR_LIT("ab")));
	/* Another file with this name is a different one. */
	file.file.inode = 4;
	take(m, file);
	cr_assert_eq(model_files(m, &f), 2);
	model_free(m);
}

Test(model, thread_that_ended_is_void_and_its_place_is_used_again)
{
	struct model *m = new_model(MODEL_NAMES, true, 64 << 10);
	const uint64_t stack = 1;

	simple(m);
	/* These do not all fit at once. */
	for (uint64_t id = 10; id < 20000; id++) {
		take(m, (struct msg){ .id = MSG_THREAD,
				      .thread = { .id = id, .process = 1, .tid = 10 } });
		take(m, (struct msg){ .id = MSG_THREAD,
				      .thread = { .id = id + 1000000, .process = 1, .tid = 10 } });
		cr_assert_eq(sample(m, stack, id), MODEL_SAMPLE);
		take(m, (struct msg){ .id = MSG_THREAD_END, .thread_end = { .id = id } });
		take(m, (struct msg){ .id = MSG_THREAD_END, .thread_end = { .id = id + 1000000 } });
	}
	cr_assert_eq(sample(m, stack, 10), 0, "its id is void");
	cr_expect_eq(model_totals(m)->lost[LOST_MALFORMED], 1);
	cr_assert_eq(sample(m, stack, 1), MODEL_SAMPLE, "others are not");
	take(m, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	cr_assert_eq(sample(m, stack, 1), 0);
	model_free(m);
}

Test(model, a_frame_that_is_defined_again_is_shown_so_from_then_on)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	simple(m);
	cr_assert_eq(sample(m, 1, 1), MODEL_SAMPLE);
	function(m, 3, STR_LIT("known"));
	frame(m, 2, 200, 3);
	cr_assert_eq(sample(m, 1, 1), MODEL_SAMPLE);
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .frames = LIST(2, 1) } });
	for (int i = 0; i < 3; i++)
		cr_assert_eq(sample(m, 1, 1), MODEL_SAMPLE);
	cr_expect_str_eq(folded(m, false), "a;main;known 3\na;main;leaf 2\n");
	model_free(m);
}

Test(model, process_that_ended_is_void_and_its_place_is_used_again)
{
	struct model *m = new_model(MODEL_NAMES, false, 64 << 10);

	simple(m);
	for (uint64_t i = 100; i < 100000; i++) {
		process(m, i, i, STR_LIT("short"));
		cr_assert_eq(sample(m, 1, i), MODEL_SAMPLE, "process %llu", (unsigned long long)i);
		take(m, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = i } });
		cr_assert_eq(sample(m, 1, i), 0);
	}
	cr_assert_eq(model_totals(m)->processes, 99901);
	model_free(m);
}

Test(model, ceiling_is_kept_and_what_was_collected_stays)
{
	struct model *m = new_model(MODEL_ADDRESSES, true, 256 << 10);
	const struct model_bucket *b;
	uint64_t taken = 0;

	simple(m);
	for (uint64_t i = 10; i < 20000; i++) {
		frame(m, i, i, 1);
		take(m,
		     (struct msg){ .id = MSG_STACK, .stack = { .id = i, .frames = LIST(i, 1) } });
		taken += sample(m, i, 1) == MODEL_SAMPLE;
		cr_assert_leq(model_definitions(m)->pool.used, 256 << 10);
	}
	/* Samples whose stacks did not fit count in one stack. */
	cr_assert_eq(taken, 19990);
	cr_assert_eq(model_totals(m)->lost[LOST_LIMIT], 0);
	cr_assert_eq(model_totals(m)->samples, taken);
	const size_t kept = model_buckets(m, &b) - 1;

	cr_assert_gt(kept, 500);
	cr_assert_eq(model_totals(m)->truncated[WALK_DEFINITIONS], taken - kept);
	cr_assert_eq(sample(m, 10, 1), MODEL_SAMPLE, "what is known still counts");
	cr_assert_eq(model_totals(m)->truncated[WALK_DEFINITIONS], taken - kept);
	model_free(m);
}

/* A process with one thread that belongs to an owner. The ids of process, thread and owner are
 * equal. */
static void owned(struct model *m, uint64_t owner)
{
	take(m, (struct msg){ .id = MSG_PROCESS,
			      .process = { .id = owner,
					   .pid = owner,
					   .start_ns = owner,
					   .comm = STR_LIT("p"),
					   .owner = owner } });
	take(m, (struct msg){ .id = MSG_THREAD,
			      .thread = { .id = owner,
					  .process = owner,
					  .tid = owner,
					  .comm = STR_LIT("p") } });
}

/* A sample with its own frames, functions and stack, which are charged to the owner. Returns
 * whether it was counted. */
static bool fresh_sample(struct model *m, uint64_t owner, uint64_t id, bool names)
{
	char name[32];

	snprintf(name, sizeof(name), "function %llu", (unsigned long long)(names ? id : owner));
	take(m, (struct msg){ .id = MSG_FUNCTION,
			      .function = { .id = id, .name = str_from(name), .payer = owner } });
	take(m, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = id,
					 .offset = id,
					 .address = id,
					 .functions = LIST(id),
					 .lines = LIST(id),
					 .payer = owner } });
	take(m, (struct msg){ .id = MSG_STACK,
			      .stack = { .id = id, .frames = LIST(id, id), .payer = owner } });
	return sample(m, id, owner) == MODEL_SAMPLE;
}

#define ATTACKER 1000000
#define VICTIM 2000000

static uint64_t cut(const struct model *m)
{
	return model_totals(m)->truncated[WALK_DEFINITIONS];
}

Test(model, an_owner_of_endless_stacks_costs_others_nothing)
{
	for (int names = 0; names < 2; names++) {
		struct model *m = new_model(names ? MODEL_NAMES : MODEL_ADDRESSES, true, 4 << 20);
		uint64_t id = 10000000, folded;

		/* In several epochs, each of which defines everything again. */
		for (int epoch = 0; epoch < 4; epoch++) {
			owned(m, ATTACKER);
			for (int i = 0; i < 30000; i++)
				cr_assert(fresh_sample(m, ATTACKER, id++, names));
			owned(m, VICTIM);
			folded = cut(m);
			cr_assert(epoch == 0 || folded > 0);
			for (uint64_t i = 0; i < 200; i++)
				cr_assert(
					fresh_sample(m, VICTIM, 100 * (uint64_t)epoch + i, names));
			cr_assert_eq(cut(m), folded, "the victim lost %u",
				     (unsigned)(cut(m) - folded));
			model_forget(m);
		}
		cr_assert_eq(model_totals(m)->lost[LOST_LIMIT], 0);
		model_free(m);
	}
}

Test(model, many_who_have_endless_stacks_leave_room_for_one_more)
{
	struct model *m = new_model(MODEL_NAMES, true, 8 << 20);
	uint64_t id = 10000000;

	for (uint64_t a = 0; a < 20; a++) {
		owned(m, ATTACKER + a);
		for (int i = 0; i < 30000; i++)
			(void)fresh_sample(m, ATTACKER + a, id++, true);
	}
	const uint64_t folded = cut(m);

	cr_assert_gt(folded, 0);
	owned(m, VICTIM);
	for (uint64_t i = 1; i < 50; i++)
		cr_assert(fresh_sample(m, VICTIM, i, true));
	cr_assert_eq(cut(m), folded);
	model_free(m);
}

Test(model, a_stack_refused_for_one_owner_is_accepted_for_another)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	uint64_t id = 10000000;

	owned(m, ATTACKER);
	owned(m, VICTIM);
	while (id < 10100000)
		(void)fresh_sample(m, ATTACKER, id++, true);
	const uint64_t folded = cut(m);

	cr_assert(fresh_sample(m, ATTACKER, 7, true));
	cr_assert_eq(cut(m), folded + 1, "%u of %u", (unsigned)cut(m), (unsigned)folded);
	cr_assert(fresh_sample(m, VICTIM, 7, true));
	cr_assert_eq(cut(m), folded + 1, "%u of %u", (unsigned)cut(m), (unsigned)folded);
	/* Later refusals do not undo that. */
	cr_assert(fresh_sample(m, ATTACKER, 7, true));
	cr_assert(sample(m, 7, VICTIM) == MODEL_SAMPLE);
	cr_assert_eq(cut(m), folded + 1, "%u of %u", (unsigned)cut(m), (unsigned)folded);
	model_free(m);
}

Test(model, endless_threads_are_lost_alone)
{
	struct model *m = new_model(MODEL_NAMES, true, 2 << 20);

	owned(m, ATTACKER);
	cr_assert(fresh_sample(m, ATTACKER, 5, false));
	for (uint64_t i = 1; i < 100000; i++) {
		take(m, (struct msg){ .id = MSG_THREAD,
				      .thread = { .id = 10000000 + i,
						  .process = ATTACKER,
						  .tid = i,
						  .comm = STR_LIT("t") } });
		(void)sample(m, 5, 10000000 + i);
	}
	const uint64_t lost = model_totals(m)->lost[LOST_LIMIT];

	cr_assert_gt(lost, 0);
	owned(m, VICTIM);
	for (uint64_t i = 10; i < 100; i++)
		cr_assert(fresh_sample(m, VICTIM, i, true));
	cr_assert_eq(model_totals(m)->lost[LOST_LIMIT], lost);
	cr_assert_eq(cut(m), 0);
	model_free(m);
}

Test(model, hottest_functions_are_sorted_and_survive_epochs)
{
	for (int aggregate = 0; aggregate < 2; aggregate++) {
		struct model *m = new_model(MODEL_ADDRESSES, aggregate, 1 << 20);
		struct status st = { 0 };

		for (int epoch = 0; epoch < 2; epoch++) {
			simple(m);
			take(m, (struct msg){ .id = MSG_STACK,
					      .stack = { .id = 2, .frames = LIST(1) } });
			sample(m, 1, 1);
			sample(m, 1, 1);
			sample(m, 2, 1);
			model_forget(m);
		}
		model_status(m, &st, true);
		cr_assert_str_eq(st.top[0].name, "leaf");
		cr_assert_eq(st.top[0].self, 4);
		cr_assert_str_eq(st.top[1].name, "main");
		cr_assert_eq(st.top[1].self, 2);
		cr_assert_eq(st.top[2].self, 0);
		cr_assert_eq(st.samples, 6);
		model_free(m);
	}
}

Test(model, eleventh_hottest_function_is_left_out)
{
	struct model *m = new_model(MODEL_ADDRESSES, true, 1 << 20);
	struct status st = { 0 };
	char name[8];

	process(m, 1, 10, STR_LIT("a"));
	for (uint64_t i = 1; i <= 30; i++) {
		snprintf(name, sizeof(name), "f%02u", (unsigned)(i * 7 % 30));
		function(m, i, str_from(name));
		frame(m, i, i, i);
		take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = i, .frames = LIST(i) } });
		for (uint64_t k = 0; k <= i * 7 % 30; k++)
			sample(m, i, 1);
	}
	model_status(m, &st, true);
	for (unsigned i = 0; i < STATUS_TOP; i++) {
		snprintf(name, sizeof(name), "f%02u", 29 - i);
		cr_assert_str_eq(st.top[i].name, name);
		cr_assert_eq(st.top[i].self, 30 - i);
	}
	model_free(m);
}

Test(model, figures_and_user_stacks_are_counted)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	struct status st = { 0 };

	simple(m);
	take(m,
	     (struct msg){ .id = MSG_FIGURE, .figure = { .name = STR_LIT("bpf_ns"), .value = 5 } });
	take(m,
	     (struct msg){ .id = MSG_FIGURE, .figure = { .name = STR_LIT("bpf_ns"), .value = 9 } });
	take(m, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = 7, .kind = MSG_FRAME_KERNEL, .offset = 9 } });
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 2, .frames = LIST(7) } });
	take(m, (struct msg){ .id = MSG_STACK,
			      .stack = { .id = 3, .frames = LIST(7), .reason = WALK_NO_PROCESS } });
	sample(m, 1, 1);
	sample(m, 2, 1);
	sample(m, 3, 1);
	model_status(m, &st, false);
	cr_assert_eq(st.user_stacks, 2);
	cr_assert_eq(st.complete, 2);
	cr_assert_eq(st.truncated[WALK_NO_PROCESS], 1);
	cr_assert_eq(st.bpf_ns, 9);
	cr_assert_eq(st.first_complete_ns, 1000);
	model_free(m);
}

static void figure(struct model *m, struct str name, uint64_t value)
{
	take(m, (struct msg){ .id = MSG_FIGURE, .figure = { .name = name, .value = value } });
}

static void sample_at(struct model *m, uint64_t time_ns)
{
	take(m, (struct msg){ .id = MSG_SAMPLE,
			      .sample = { .stack = 1, .thread = 1, .time_ns = time_ns } });
}

#define S 1000000000ull

/* 50 samples in 5 s, a gap of 8 s after the last sample, and 1 s at the end. The launcher knows of
 * 3 samples that did not arrive, and which tools were restarted. */
Test(model, a_gap_lasts_from_the_last_sample_to_the_restart)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	struct status st;

	take(m, (struct msg){ .id = MSG_HELLO, .hello = { .hz = 99, .cpus = 2, .mono_ns = 1 } });
	simple(m);
	figure(m, STR_LIT("began"), 1);
	figure(m, STR_LIT("sampling_since"), 10 * S);
	figure(m, STR_LIT("sampled_until"), 13 * S);
	for (uint64_t i = 1; i <= 50; i++)
		sample_at(m, 10 * S + i * S / 10);
	figure(m, STR_LIT("began"), 2);
	figure(m, STR_LIT("sampling_since"), 23 * S);
	for (uint64_t i = 1; i <= 7; i++)
		sample_at(m, 23 * S + i);
	figure(m, STR_LIT("sampled_until"), 24 * S);
	figure(m, STR_LIT("run_taken"), 60);
	figure(m, STR_LIT("restarts_bpf"), 1);
	figure(m, STR_LIT("restarts_export"), 2);
	take(
		m, (struct msg) {
			.id = MSG_END
			, .end = {.reason = MSG_END_DONE, .time_ns = 25 * S }
		});
	model_conclude(m);
	model_status(m, &st, false);
	cr_assert_eq(st.unsampled_ns, 8 * S);
	cr_assert_eq(st.unsampled, 80);
	cr_assert_eq(st.duration_ns, 14 * S);
	cr_assert_eq(st.lost[LOST_RESTART], 3);
	cr_assert(st.restarts[0] == 1 && !st.restarts[1] && !st.restarts[2] && st.restarts[3] == 2);
	model_free(m);
}

/* No count of the first life arrived. The launcher knew of 9 samples when the second life began,
 * whose own count at the end is newer than the launcher's. */
Test(model, unreported_samples_of_a_former_life_are_added)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	take(m, (struct msg){ .id = MSG_HELLO, .hello = { .hz = 99, .cpus = 2, .mono_ns = 1 } });
	simple(m);
	figure(m, STR_LIT("run_taken"), 9);
	figure(m, STR_LIT("began"), 2);
	figure(m, STR_LIT("taken"), 1);
	figure(m, STR_LIT("run_taken"), 10);
	for (uint64_t i = 1; i <= 7; i++)
		sample_at(m, 23 * S + i);
	figure(m, STR_LIT("taken"), 8);
	take(
		m, (struct msg) {
			.id = MSG_END
			, .end = {.reason = MSG_END_DONE, .time_ns = 25 * S }
		});
	model_conclude(m);
	cr_assert_eq(model_totals(m)->lost[LOST_RESTART], 9 + 1);
	model_free(m);
}

/* Of 12 samples taken, five are in the first output and all others but two in the second. */
Test(model, the_next_output_begins_where_the_former_one_ended)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	const struct model_bucket *b;
	const struct model_stack *s;
	struct status st;

	take(m, (struct msg){ .id = MSG_HELLO,
			      .hello = { .hz = 10, .cpus = 1, .mono_ns = 1, .wall_ns = 1001 } });
	simple(m);
	figure(m, STR_LIT("began"), 1);
	figure(m, STR_LIT("sampling_since"), 10 * S);
	for (uint64_t i = 1; i <= 5; i++)
		sample_at(m, 10 * S + i);
	take(m, (struct msg){ .id = MSG_LOST, .lost = { .reason = LOST_RING_FULL, .count = 2 } });
	figure(m, STR_LIT("sampled_until"), 13 * S);
	figure(m, STR_LIT("taken"), 12);
	figure(m, STR_LIT("run_taken"), 12);
	model_hand_on(m);
	cr_assert(model_ended_well(m), "it was not cut short");
	model_status(m, &st, false);
	cr_assert_eq(st.samples, 5);
	cr_assert_eq(st.duration_ns, 3 * S);
	cr_assert_eq(st.lost[LOST_RESTART], 0, "they are on their way");
	model_next(m);
	cr_assert_eq(model_buckets(m, &b) + model_stacks(m, &s), 0);
	cr_assert(!model_ended_well(m));
	model_forget(m);
	simple(m);
	for (uint64_t i = 1; i <= 3; i++)
		sample_at(m, 13 * S + i);
	figure(m, STR_LIT("sampled_until"), 14 * S);
	take(
		m, (struct msg) {
			.id = MSG_END
			, .end = {.reason = MSG_END_DONE, .time_ns = 14 * S }
		});
	model_conclude(m);
	model_status(m, &st, false);
	cr_assert_eq(st.samples, 3);
	cr_assert_eq(st.lost[LOST_RING_FULL], 0, "the former output has them");
	cr_assert_eq(st.lost[LOST_RESTART], 12 - 5 - 2 - 3);
	cr_assert_eq(st.duration_ns, S);
	cr_assert_eq(st.unsampled_ns, 0);
	cr_assert_eq(model_start_wall_ns(m), 1000 + 13 * S);
	cr_assert_eq(model_buckets(m, &b), 1);
	cr_assert_eq(b[0].samples, 3);
	model_free(m);
}

/* A killed prof-export wrote the first outputs, and its successor does not know what they
 * contain. */
Test(model, a_joining_model_excludes_the_counts_of_former_outputs)
{
	struct model_options o = {
		.detail = MODEL_NAMES, .aggregate = true, .memory_max = 1 << 20, .joins = true
	};
	struct model *m;

	cr_assert_eq(model_new(&o, &m), 0);
	take(m, (struct msg){ .id = MSG_HELLO, .hello = { .hz = 10, .cpus = 1, .mono_ns = 1 } });
	simple(m);
	figure(m, STR_LIT("began"), 1);
	for (uint64_t i = 1; i <= 5; i++)
		sample_at(m, 10 * S + i);
	figure(m, STR_LIT("taken"), 1005);
	figure(m, STR_LIT("run_taken"), 3005);
	sample_at(m, 11 * S);
	figure(m, STR_LIT("taken"), 1008);
	figure(m, STR_LIT("run_taken"), 3008);
	take(
		m, (struct msg) {
			.id = MSG_END
			, .end = {.reason = MSG_END_DONE, .time_ns = 12 * S }
		});
	model_conclude(m);
	cr_assert_eq(model_totals(m)->lost[LOST_RESTART], 2);
	model_free(m);
}

/* Impossible times and rates do not make the result larger than it can be. */
Test(model, hostile_times_make_no_more_samples_than_ticks)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	struct status st;

	take(m, (struct msg){ .id = MSG_HELLO, .hello = { .hz = 10, .cpus = 2 } });
	simple(m);
	figure(m, STR_LIT("sampling_since"), 1);
	for (int i = 0; i < 100; i++)
		sample_at(m, 2);
	figure(m, STR_LIT("began"), 2);
	figure(m, STR_LIT("sampling_since"), 10 * S + 2);
	model_status(m, &st, false);
	cr_assert_eq(st.unsampled_ns, 10 * S);
	cr_assert_eq(st.unsampled, 200);
	figure(m, STR_LIT("began"), 3);
	figure(m, STR_LIT("sampling_since"), UINT64_MAX);
	figure(m, STR_LIT("run_taken"), UINT64_MAX);
	model_conclude(m);
	model_status(m, &st, false);
	model_free(m);
}

/* The program may have any name; a library in one of its stacks identifies the runtime. Earlier
 * samples of the process count, and those of other processes do not. */
Test(model, a_runtime_is_known_by_a_library_in_a_stack)
{
	static const struct str jvm = STR_LIT("/usr/lib/jvm/lib/server/libjvm.so");
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	struct status st;

	simple(m);
	process(m, 2, 200, STR_LIT("other"));
	take(m, (struct msg){ .id = MSG_FILE, .file = { .id = 9, .path = jvm } });
	take(m, (struct msg){ .id = MSG_FRAME, .frame = { .id = 7, .offset = 9, .process = 1 } });
	take(m, (struct msg){ .id = MSG_FRAME, .frame = { .id = 8, .offset = 9, .file = 9 } });
	take(m, (struct msg){ .id = MSG_STACK,
			      .stack = { .id = 2, .frames = LIST(7), .reason = WALK_NO_ROWS } });
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 3, .frames = LIST(8) } });
	sample(m, 2, 1);
	sample(m, 2, 2);
	model_status(m, &st, false);
	cr_assert_eq(st.runtime_samples[0], 0);
	sample(m, 3, 1);
	sample(m, 2, 1);
	model_status(m, &st, false);
	cr_assert_eq(st.runtime_samples[0], 3);
	cr_assert_eq(st.runtime_truncated[0], 2);
	cr_assert_eq(st.runtime_unnamed[0], 2);
	take(m,
	     (struct msg){ .id = MSG_STACK,
			   .stack = { .id = 4, .frames = LIST(7), .reason = WALK_CALLER_UNSURE } });
	sample(m, 4, 1);
	model_status(m, &st, false);
	cr_assert_eq(st.runtime_truncated[0], 3);
	model_free(m);
}

/* Options of a runtime do not help if a walk ends in the runtime itself. An address outside of all
 * code is not generated code. */
Test(model, a_stack_that_is_cut_outside_of_generated_code_asks_for_no_remedy)
{
	static const struct str jvm = STR_LIT("/usr/lib/jvm/lib/server/libjvm.so");
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	struct status st;

	simple(m);
	take(m, (struct msg){ .id = MSG_FILE, .file = { .id = 9, .path = jvm } });
	take(m, (struct msg){ .id = MSG_FRAME, .frame = { .id = 7, .offset = 1, .process = 1 } });
	take(m, (struct msg){ .id = MSG_FRAME, .frame = { .id = 8, .offset = 9, .file = 9 } });
	take(m,
	     (struct msg){ .id = MSG_STACK,
			   .stack = { .id = 2, .frames = LIST(8, 7), .reason = WALK_NO_MAPPING } });
	take(m, (struct msg){ .id = MSG_STACK,
			      .stack = { .id = 3, .frames = LIST(8), .reason = WALK_NO_ROWS } });
	sample(m, 2, 1);
	sample(m, 3, 1);
	model_status(m, &st, false);
	cr_assert_eq(st.runtime_samples[0], 2);
	cr_assert_eq(st.runtime_truncated[0], 0);
	cr_assert_eq(st.runtime_unnamed[0], 0);
	/* The same behind generated code. */
	take(m, (struct msg){
			.id = MSG_STACK,
			.stack = { .id = 4, .frames = LIST(8, 7, 7), .reason = WALK_NO_MAPPING } });
	sample(m, 4, 1);
	model_status(m, &st, false);
	cr_assert_eq(st.runtime_truncated[0], 1);
	cr_assert_eq(st.runtime_unnamed[0], 1);
	model_free(m);
}

/* A sample that stands for a million, with labels and a link. */
static struct model_sample heavy(struct model *m)
{
	struct model_sample ret = { 0 };
	const struct msg of = { .id = MSG_SAMPLE,
				.sample = { .stack = 1,
					    .thread = 1,
					    .time_ns = 1000,
					    .value = 7,
					    .count = 1000000,
					    .labels = 1,
					    .link = 1 } };

	cr_assert_eq(model_take(m, &of, &ret), MODEL_SAMPLE);
	return ret;
}

Test(model, numbers_that_prof_bpf_never_sends_are_ignored_if_it_reports)
{
	const struct witness_word word = { .magic = WITNESS_MAGIC, .final = 1, .taken = 1 };

	for (int reports = 0; reports < 2; reports++) {
		struct model *m = model_of(&(struct model_options){
			.detail = MODEL_NAMES, .memory_max = 1 << 20, .surroundings = true });

		take(m, (struct msg){ .id = MSG_HELLO });
		simple(m);
		take(m, (struct msg){ .id = MSG_LABELS, .labels = { .id = 1 } });
		take(m,
		     (struct msg){ .id = MSG_LINK,
				   .link = { .id = 1,
					     .trace = { .data = (const uint8_t *)"0123456789abcdef",
							.len = 16 },
					     .span = { .data = (const uint8_t *)"01234567",
						       .len = 8 } } });
		if (reports)
			model_witness(m, &word);
		const struct model_sample s = heavy(m);

		cr_expect_eq(s.count, reports ? 1 : 1000000);
		cr_expect_eq(s.labels == MODEL_NONE, reports);
		cr_expect_eq(s.link == MODEL_NONE, reports);
		model_free(m);
	}
}
