/* SPDX-License-Identifier: Apache-2.0 */
/* Which owners' samples were truncated, lost or left without names, and why. */
#include "tests/unit/model_fixture.h"

Test(blames, losses_are_reported_by_owner_and_reason)
{
	const uint64_t ann = 5ull << 32 | 1000, ben = 1001;
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	struct status st;

	take(m, (struct msg){ .id = MSG_PROCESS, .process = { .id = 1, .pid = 9, .owner = ann } });
	take(m, (struct msg){ .id = MSG_THREAD, .thread = { .id = 1, .process = 1, .tid = 9 } });
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .reason = WALK_STALE } });
	sample(m, 1, 1);
	for (uint64_t owner = 0; owner <= ben + 1; owner += ben + 1)
		take(m,
		     (struct msg){
			     .id = MSG_LOST,
			     .lost = { .reason = LOST_QUEUE_FULL, .count = 3, .owner = owner } });
	model_status(m, &st, false);
	cr_expect_eq(st.lost[LOST_QUEUE_FULL], 6);
	cr_expect_eq(st.blames[0].owner, ben);
	cr_expect_eq(st.blames[0].harm, STATUS_LOST);
	cr_expect_eq(st.blames[0].reason, LOST_QUEUE_FULL);
	cr_expect_eq(st.blames[0].samples, 3);
	cr_expect_eq(st.blames[1].owner, ann);
	cr_expect_eq(st.blames[1].harm, STATUS_TRUNCATED);
	cr_expect_eq(st.blames[1].reason, WALK_STALE);
	cr_expect_eq(st.blames[1].samples, 1);
	cr_expect_eq(st.blames[2].samples, 0);
	model_free(m);
}

Test(blames, samples_without_names_are_told_by_owner_and_reason)
{
	const uint64_t ann = 1000;

	for (int detail = MODEL_NAMES; detail <= MODEL_ADDRESSES; detail++) {
		struct model *m = new_model((enum model_detail)detail, true, 1 << 20);
		struct msg f = { .id = MSG_FRAME, .frame = { .id = 9, .offset = 9, .address = 9 } };
		struct status st;

		simple(m);
		take(m, (struct msg){ .id = MSG_PROCESS,
				      .process = { .id = 2, .pid = 9, .owner = ann } });
		take(m, (struct msg){ .id = MSG_THREAD,
				      .thread = { .id = 2, .process = 2, .tid = 9 } });
		for (uint64_t flags = MSG_FRAME_UNNAMED_SLOW; flags <= MSG_FRAME_UNNAMED_GONE;
		     flags *= 2) {
			f.frame.flags = flags;
			take(m, f);
			take(m, (struct msg){ .id = MSG_STACK,
					      .stack = { .id = flags, .frames = LIST(9, 1) } });
			sample(m, flags, 2);
		}
		/* An interpreted frame has a placeholder as its function. */
		f.frame.kind = MSG_FRAME_INTERPRETED;
		f.frame.functions = (struct msg_list)LIST(1);
		f.frame.lines = (struct msg_list)LIST(0);
		take(m, f);
		take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 300, .frames = LIST(9) } });
		sample(m, 300, 2);
		sample(m, MSG_FRAME_UNNAMED_MEMORY, 2);
		sample(m, 1, 2);
		model_status(m, &st, false);
		cr_expect_eq(st.unnamed[UNNAMED_SLOW], 1);
		cr_expect_eq(st.unnamed[UNNAMED_MEMORY_LIMIT], 2);
		cr_expect_eq(st.unnamed[UNNAMED_NO_FILE], 1);
		cr_expect_eq(st.unnamed[UNNAMED_GONE], 2);
		cr_expect_eq(st.blames[0].owner, ann);
		cr_expect_eq(st.blames[0].harm, STATUS_UNNAMED);
		cr_expect_eq(st.blames[0].reason, UNNAMED_MEMORY_LIMIT);
		cr_expect_eq(st.blames[0].samples, 2);
		cr_expect_eq(st.blames[2].reason, UNNAMED_SLOW);
		cr_expect_eq(st.blames[2].samples, 1);
		/* The name came late: the frame has it from then on. */
		frame(m, 9, 9, 1);
		take(m,
		     (struct msg){ .id = MSG_STACK, .stack = { .id = 7, .frames = LIST(9, 1) } });
		sample(m, 7, 2);
		model_status(m, &st, false);
		cr_expect_eq(st.unnamed[UNNAMED_SLOW] + st.unnamed[UNNAMED_MEMORY_LIMIT], 3);
		model_free(m);
	}
}
