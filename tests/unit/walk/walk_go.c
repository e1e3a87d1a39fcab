/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for Go: switches between stacks, and goroutines that are being moved. */
#include "tests/unit/walk_fixture.h"

/* Go's asyncPreempt: the first byte of the next row is where its caller stopped. */
Test(walk_go, asyncpreempt_interrupts_its_caller_at_the_pc_itself)
{
	struct unwind_rule puts = by_rsp16, other = by_rsp16;

	other.cfa_off = 512;
	for (int interrupts = 0; interrupts < 2; interrupts++) {
		puts.flags = interrupts ? UNWIND_INTERRUPTS | UNWIND_DERIVED : UNWIND_DERIVED;
		program((struct unwind_rule[]){ puts, other, by_rsp16, root }, 4);
		w.pc = CODE + 0x10;
		*at(w.sp + 8) = CODE + 0x200;
		*at(w.sp + 24) = CODE + 0x310;
		*at(w.sp + 16 + 512 - 8) = CODE + 0x350;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE, "%d", w.reason);
		cr_assert_eq(w.count, 3);
		cr_assert_eq(w.words[2] & SAMPLE_FRAME_OFFSET_MASK, interrupts ? 0x310 : 0x350);
	}
}

Test(walk_go, go_switches_of_stacks_are_followed_in_either_direction)
{
	/* g at tls - 8, g.m at 48, m's other g at 192, its sched.sp at 56. */
	struct unwind_rule go = { .cfa = UNWIND_CFA_GO_SWITCH,
				  .cfa_add = -8,
				  .rbp_reg = 6,
				  .cfa_reg = 24,
				  .ra_reg = 7,
				  .cfa_off = 8 };
	const uint64_t tls = STACK + 20000, g = STACK + 21000, m = STACK + 22000,
		       other = STACK + 23000, left[] = { STACK + 512, STACK + 4096 };

	for (int i = 0; i < 2; i++) {
		program((struct unwind_rule[]){ go, root }, 2);
		w.pc = CODE + 0x10;
		env.tls = tls;
		*at(tls - 8) = g;
		*at(g + 48) = m;
		*at(m + 192) = other;
		*at(other + 56) = left[i];
		*at(left[i]) = CODE + 0x110;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE);
		cr_assert_eq(w.sp, left[i] + 8);
	}
	program(&go, 1);
	w.pc = CODE + 0x10;
	env.tls = 0;
	run();
	cr_assert_eq(w.reason, WALK_STACK_UNREADABLE);
}

Test(walk_go, g_of_a_shared_library_is_where_a_word_of_it_says)
{
	const uint64_t tls = STACK + 20000, g = STACK + 21000, m = STACK + 22000,
		       other = STACK + 23000;
	const struct unwind_rule go = { .cfa = UNWIND_CFA_GO_SWITCH,
					.flags = UNWIND_TLS_WORD,
					.cfa_add = 0x20,
					.rbp_reg = 6,
					.cfa_reg = 24,
					.ra_reg = 7,
					.cfa_off = 8 };
	const struct unwind_rule senseless = { .cfa = UNWIND_CFA_REG, .flags = UNWIND_TLS_WORD };

	cr_assert(unwind_rule_valid(&go) && !unwind_rule_valid(&senseless));
	for (int i = 0; i < 2; i++) {
		program((struct unwind_rule[]){ go, root }, 2);
		w.pc = CODE + 0x10;
		env.tls = tls;
		env.g_below = i ? 160 : 0;
		memcpy(image + 0x20, &(int64_t){ i ? 0 : -160 }, 8);
		*at(tls - 160) = g;
		*at(g + 48) = m;
		*at(m + 192) = other;
		*at(other + 56) = STACK + 512;
		*at(STACK + 512) = CODE + 0x110;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE);
		cr_assert_eq(w.sp, STACK + 520);
	}
}

Test(walk_go, the_pc_of_a_goroutine_whose_stack_is_being_moved_is_in_its_g)
{
	struct unwind_rule go = { .cfa = UNWIND_CFA_GO_SWITCH,
				  .cfa_add = -8,
				  .rbp_reg = 6,
				  .cfa_reg = 24,
				  .ra_reg = 7,
				  .rbp = UNWIND_RBP_UNDEFINED,
				  .ra = UNWIND_RA_CFA_OFF,
				  .rbp_off = 64 };
	const uint64_t tls = STACK + 20000, g = STACK + 21000, m = STACK + 22000,
		       other = STACK + 23000;

	cr_assert(unwind_rule_valid(&go));
	program((struct unwind_rule[]){ go, root }, 2);
	w.pc = CODE + 0x10;
	env.tls = tls;
	*at(tls - 8) = g;
	*at(g + 48) = m;
	*at(m + 192) = other;
	*at(other + 56) = STACK + 4096;
	*at(other + 64) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.sp, STACK + 4096);
	cr_assert_eq(w.count, 2);

	/* Meanwhile the goroutine was taken off the thread. */
	program((struct unwind_rule[]){ go, root }, 2);
	w.pc = CODE + 0x10;
	env.tls = tls;
	*at(m + 192) = 0;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 1);
	go.rbp = UNWIND_RBP_CFA;
	cr_assert_not(unwind_rule_valid(&go));
}

Test(walk_go, a_frame_pointer_may_lead_down_to_another_stack_but_not_in_circles)
{
	const struct unwind_rule by_rbp = { .cfa = UNWIND_CFA_REG,
					    .cfa_reg = UNWIND_REG_RBP,
					    .cfa_off = 16,
					    .rbp = UNWIND_RBP_CFA,
					    .rbp_off = -16 };

	program((struct unwind_rule[]){ by_rbp, root }, 2);
	w.pc = CODE + 0x10;
	w.sp = STACK + 20000;
	w.fp = STACK + 1024;
	*at(w.fp + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 2);

	program(&by_rbp, 1);
	w.pc = CODE + 0x10;
	w.sp = STACK + 20000;
	w.fp = STACK + 1024;
	*at(w.fp) = STACK + 10000;
	*at(w.fp + 8) = CODE + 0x20;
	*at(STACK + 10000) = STACK + 1024;
	*at(STACK + 10008) = CODE + 0x20;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS);
	cr_assert_leq(w.count, 2 * WALK_JUMPS + 2);

	program((struct unwind_rule[]){ by_rbp, root }, 2);
	w.pc = CODE + 0x10;
	w.fp = w.sp - 512;
	*at(w.fp + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS, "the same stack");
}

Test(walk_go, go_calls_of_c_keep_the_depth_of_the_stack_they_left)
{
	struct unwind_rule go = {
		.cfa = UNWIND_CFA_GO_DEPTH, .cfa_reg = 1, .cfa_add = 0, .cfa_off = 16
	};
	const uint64_t g = STACK + 21000, high = STACK + 12000;

	program((struct unwind_rule[]){ go, root }, 2);
	w.pc = CODE + 0x10;
	*at(w.sp) = 4000;
	*at(w.sp + 8) = g;
	*at(g + 8) = high;
	*at(high - 4000 + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.sp, high - 4000 + 16);
}
