/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that need a register of an earlier frame or a word of its memory. */
#include "tests/unit/walk_fixture.h"

Test(walk_registers, an_index_is_the_leafs_or_its_callers)
{
	struct unwind_rule indexed = { .cfa = UNWIND_CFA_DEREF,
				       .cfa_reg = UNWIND_REG_RSP,
				       .cfa_off = 8,
				       .cfa_add = 8,
				       .index_reg = 9,
				       .index = 4 };

	for (unsigned calls = 0; calls < 3; calls++) {
		program((struct unwind_rule[]){ by_rsp16, indexed, root }, 3);
		w.pc = calls ? CODE : CODE + 0x100;
		w.regs[9] = 6;
		for (unsigned i = 0; i < calls; i++)
			*at(w.sp + i * 16 + 8) = i + 1 < calls ? CODE + 0x20 : CODE + 0x110;
		*at(w.sp + calls * 16 + 56) = w.sp + 512;
		*at(w.sp + 512) = CODE + 0x210;
		run();
		cr_assert_eq(w.reason, calls < 2 ? WALK_COMPLETE : WALK_UNSUPPORTED_RULE);
		cr_assert_eq(w.count, calls < 2 ? calls + 2 : 3);
	}
}

Test(walk_registers, a_number_that_rsp_was_lowered_by_leads_to_the_cfa)
{
	struct unwind_rule sum = {
		.cfa = UNWIND_CFA_SUM, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 16, .cfa_add = 8
	};
	struct unwind_rule by_index = { .cfa = UNWIND_CFA_REG,
					.cfa_reg = UNWIND_REG_RSP,
					.cfa_off = 8,
					.index = 1,
					.index_reg = 11 };

	cr_assert(unwind_rule_valid(&sum) && unwind_rule_valid(&by_index));
	program((struct unwind_rule[]){ by_index, sum, root }, 3);
	w.pc = CODE + 0x10;
	w.regs[11] = 96;
	*at(w.sp + 96) = CODE + 0x110;
	*at(w.sp + 104 + 16) = 48;
	*at(w.sp + 104 + 48) = CODE + 0x210;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
	cr_assert_eq(w.sp, STACK + 1024 + 104 + 56);
	/* Down, or to no memory. */
	for (unsigned i = 0; i < 2; i++) {
		program((struct unwind_rule[]){ sum, root }, 2);
		w.pc = CODE + 0x10;
		*at(w.sp + 16) = -(i ? 8ull : 264ull);
		*at(w.sp - 264) = *at(w.sp - 8) = CODE + 0x110;
		run();
		cr_assert_eq(w.reason, WALK_NO_PROGRESS);
	}
}

/* If only assembly lies between, which saves its caller's registers. */
Test(walk_registers, a_cfa_in_a_register_is_known_behind_helpers_of_helpers)
{
	struct unwind_rule kept = { .cfa = UNWIND_CFA_REG, .cfa_reg = 10, .cfa_off = 8 };
	struct unwind_rule helper = by_rsp16;

	for (unsigned by_hand = 0; by_hand < 2; by_hand++) {
		helper.flags = by_hand ? UNWIND_DERIVED | UNWIND_GUESSED : 0;
		program((struct unwind_rule[]){ helper, kept, root }, 3);
		w.pc = CODE + 0x10;
		w.regs[10] = STACK + 2048;
		*at(w.sp + 8) = CODE + 0x20;
		*at(w.sp + 24) = CODE + 0x30;
		*at(w.sp + 40) = CODE + 0x110;
		*at(STACK + 2048) = CODE + 0x210;
		run();
		cr_assert_eq(w.reason, by_hand ? WALK_COMPLETE : WALK_UNSUPPORTED_RULE);
		cr_assert_eq(w.count, by_hand ? 5 : 4);
	}
}

/* The leaf's register tells the outermost frame of a nest from the inner ones, at any depth. */
Test(walk_registers, each_frame_of_a_nest_is_found)
{
	struct unwind_rule nest = { .cfa = UNWIND_CFA_NEST,
				    .cfa_reg = 11,
				    .cfa_off = 8,
				    .cfa_add = 64,
				    .cfa_mid = 16,
				    .index_reg = 5,
				    .flags = UNWIND_DERIVED | UNWIND_GUESSED };

	cr_assert(unwind_rule_valid(&nest));
	for (unsigned inner = 0; inner < 4; inner++) {
		program((struct unwind_rule[]){ nest, root }, 2);
		w.pc = CODE + 0x10;
		w.regs[11] = STACK + 2072; /* which is 2048, aligned */
		*at(w.regs[11]) = CODE + 0x110;
		w.sp = STACK + 2048 - 64 - 16 * inner;
		for (unsigned i = 0; i < inner; i++)
			*at(w.sp + 8 + 16 * i) = CODE + 0x20;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE);
		cr_assert_eq(w.count, inner + 2);
		cr_assert_eq(w.sp, STACK + 2080);
	}
	/* No frame above the outermost one belongs to the nest. */
	program((struct unwind_rule[]){ nest, root }, 2);
	w.pc = CODE + 0x10;
	w.regs[11] = STACK + 2072;
	w.sp = STACK + 2048 - 56;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS);
	/* The register of a frame that called something else is not known. */
	program((struct unwind_rule[]){ by_rsp16, by_rsp16, nest, root }, 4);
	w.pc = CODE + 0x10;
	w.regs[11] = STACK + 2072;
	w.sp = STACK + 2048 - 64 - 32;
	*at(w.sp + 8) = CODE + 0x110;
	*at(w.sp + 24) = CODE + 0x210;
	run();
	cr_assert_eq(w.reason, WALK_UNSUPPORTED_RULE);
}

Test(walk_registers, loads_may_lead_to_a_lower_stack_and_back)
{
	struct unwind_rule down = {
		.cfa = UNWIND_CFA_DEREF, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 8, .cfa_add = 8
	};
	struct unwind_rule twice = { .cfa = UNWIND_CFA_DEREF_TWICE,
				     .cfa_reg = UNWIND_REG_RSP,
				     .cfa_off = 56,
				     .cfa_mid = -16,
				     .cfa_add = 8 };

	program((struct unwind_rule[]){ down, twice, root }, 3);
	w.pc = CODE;
	*at(w.sp + 8) = STACK + 128; /* near by, as small stacks of one heap are */
	*at(STACK + 128) = CODE + 0x110;
	*at(STACK + 136 + 56) = STACK + 2048 + 16;
	*at(STACK + 2048) = STACK + 512;
	*at(STACK + 512) = CODE + 0x210;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
	cr_assert_eq(w.sp, STACK + 520);
}

Test(walk_registers, loads_that_lead_in_circles_end)
{
	struct unwind_rule to = {
		.cfa = UNWIND_CFA_DEREF, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 0, .cfa_add = 8
	};

	program(&to, 1);
	w.pc = CODE + 0x10;
	*at(w.sp) = w.sp - 520; /* two places that lead to each other */
	*at(w.sp - 520) = CODE + 0x10;
	*at(w.sp - 512) = w.sp - 8;
	*at(w.sp - 8) = CODE + 0x10;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS);
	cr_assert_eq(w.count, 2 * WALK_SWITCHES + 1);

	/* To itself: not followed even once. */
	program(&to, 1);
	w.pc = CODE + 0x10;
	*at(w.sp) = w.sp - 8;
	*at(w.sp - 8) = CODE + 0x10;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS);
	cr_assert_eq(w.count, 1);
}

Test(walk_registers, rbx_of_a_caller_is_where_rows_say_that_it_was_saved)
{
	struct unwind_rule saves = by_rsp16, uses = { .cfa = UNWIND_CFA_REG,
						      .cfa_reg = UNWIND_REG_RBX,
						      .cfa_off = 16 };

	saves.rbx = 2;
	for (int saved = 0; saved < 2; saved++) {
		program((struct unwind_rule[]){ saved ? saves : by_rsp16, by_rsp16, uses, root },
			4);
		w.pc = CODE + 0x10;
		w.regs[UNWIND_REG_RBX] = saved ? 99 : w.sp + 512;
		*at(w.sp) = saved ? w.sp + 512 : 98;
		*at(w.sp + 8) = CODE + 0x110;
		*at(w.sp + 24) = CODE + 0x210;
		*at(w.sp + 520) = CODE + 0x310;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE, "%d", w.reason);
		cr_assert_eq(w.count, 4);
	}
}

/* racecall of Go's race detector: its callee pushes R12, or leaves it alone. Rows without R12 do
 * not say that they leave it alone. */
Test(walk_registers, r12_of_a_caller_is_where_rows_that_speak_of_it_say)
{
	struct unwind_rule speaks = by_rsp16, uses = { .cfa = UNWIND_CFA_REG,
						       .cfa_reg = UNWIND_REG_R12,
						       .cfa_off = 16 };

	speaks.flags = UNWIND_R12;
	for (int kind = 0; kind < 3; kind++) {
		struct unwind_rule leaf = kind == 2 ? by_rsp16 : speaks, middle = speaks;

		leaf.rbx = kind == 1 ? 2 : 0;
		program((struct unwind_rule[]){ leaf, middle, uses, root }, 4);
		w.pc = CODE + 0x10;
		w.regs[UNWIND_REG_R12] = kind == 1 ? 99 : w.sp + 512;
		*at(w.sp) = kind == 1 ? w.sp + 512 : 98;
		*at(w.sp + 8) = CODE + 0x110;
		*at(w.sp + 24) = CODE + 0x210;
		*at(w.sp + 520) = CODE + 0x310;
		run();
		cr_assert_eq(w.reason, kind == 2 ? WALK_UNSUPPORTED_RULE : WALK_COMPLETE, "%d",
			     w.reason);
		cr_assert_eq(w.count, kind == 2 ? 3 : 4);
	}
}

Test(walk_registers, registers_of_an_interrupted_frame_are_in_the_ucontext)
{
	/* r10 at 40 + 16, rdi at 40 + 64 of the ucontext. */
	struct unwind_rule signal = { .flags = UNWIND_SIGNAL_FRAME },
			   by_r10 = { .cfa = UNWIND_CFA_REG, .cfa_reg = 10, .cfa_off = 8 },
			   vfork = { .cfa = UNWIND_CFA_REG,
				     .cfa_reg = UNWIND_REG_RSP,
				     .ra = UNWIND_RA_REG,
				     .ra_reg = 5 };

	for (int i = 0; i < 2; i++) {
		program((struct unwind_rule[]){ by_rsp16, signal, i ? by_r10 : vfork, root }, 4);
		w.pc = CODE;
		uint64_t frame = w.sp + 16;
		*at(w.sp + 8) = CODE + 0x101;
		*at(frame + 40 + 16) = frame + 3000;
		*at(frame + 40 + 64) = CODE + 0x310;
		*at(frame + 160) = frame + 2000;
		*at(frame + 168) = CODE + 0x200;
		*at(frame + 3000) = CODE + 0x310;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE, "%d: %d", i, w.reason);
		cr_assert_eq(w.count, 4);
	}
}
