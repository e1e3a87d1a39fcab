/* SPDX-License-Identifier: Apache-2.0 */
/* The walker on handmade stacks: the effect of each rule, and how each walk ends. */
#include "tests/unit/walk_fixture.h"

Test(walk, the_return_address_below_the_cfa_leads_to_the_root)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = CODE + 0x10;
	*at(w.sp + 8) = CODE + 0x20;
	*at(w.sp + 24) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
	cr_assert_eq(w.words[0], 0x10 | SAMPLE_FRAME_EXACT | 2ull << SAMPLE_FRAME_SLOT_SHIFT);
	cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, 0x20);
	cr_assert_eq(w.words[2] & SAMPLE_FRAME_OFFSET_MASK, 0x110);
}

Test(walk, the_vsyscall_page_leads_to_its_caller)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = 0xffffffffff600400;
	*at(w.sp) = CODE + 0x20;
	*at(w.sp + 16) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
	cr_assert_eq(w.words[0], 0xffffff600400 | SAMPLE_FRAME_EXACT);
	cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, 0x20);
}

Test(walk, a_call_through_a_null_pointer_leads_to_its_caller)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = 0;
	*at(w.sp) = CODE + 0x20;
	*at(w.sp + 16) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
	cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, 0x20);
}

Test(walk, an_unsupported_rule_is_not_bypassed_by_a_frame_pointer)
{
	program(
		(struct unwind_rule[]){
			{ .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_UNSUPPORTED }, root },
		2);
	w.pc = CODE + 0x10;
	w.fp = w.sp + 64;
	*at(w.fp + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_UNSUPPORTED_RULE);
	cr_assert_eq(w.count, 1);
}

Test(walk, a_false_return_address_sets_no_bits_of_its_frame)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = CODE + 0x10;
	*at(w.sp + 8) = 0xfff5123456789abc;
	run();
	cr_assert_eq(w.reason, WALK_NO_MAPPING);
	cr_assert_eq(w.count, 2);
	cr_assert_eq(w.words[1], 0x123456789abc);
}

Test(walk, a_return_address_at_the_end_of_a_range_belongs_to_the_call_before_it)
{
	program((struct unwind_rule[]){ by_rsp16,
					root,
					{ .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_GAP } },
		3);
	w.pc = CODE + 0x10;
	*at(w.sp + 8) = CODE + 0x200;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 2);
}

Test(walk, rbp_is_restored_from_the_frame_and_used_by_the_caller)
{
	struct unwind_rule saves = { .cfa = UNWIND_CFA_REG,
				     .cfa_reg = UNWIND_REG_RSP,
				     .cfa_off = 24,
				     .rbp = UNWIND_RBP_CFA,
				     .rbp_off = -16 };
	struct unwind_rule uses = { .cfa = UNWIND_CFA_REG,
				    .cfa_reg = UNWIND_REG_RBP,
				    .cfa_off = 16 };

	program((struct unwind_rule[]){ saves, uses, root }, 3);
	w.pc = CODE;
	*at(w.sp + 8) = w.sp + 512;
	*at(w.sp + 16) = CODE + 0x150;
	*at(w.sp + 520) = CODE + 0x250;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
}

Test(walk, a_plt_slot_behind_its_push_has_one_word_more)
{
	struct unwind_rule plt = { .cfa = UNWIND_CFA_PLT, .cfa_off = 11 };

	for (int pushed = 0; pushed < 2; pushed++) {
		program((struct unwind_rule[]){ plt, root }, 2);
		w.pc = CODE + 0x20 + (pushed ? 11 : 6);
		*at(w.sp + (pushed ? 8 : 0)) = CODE + 0x110;
		*at(w.sp + (pushed ? 0 : 8)) = 5;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE);
		cr_assert_eq(w.count, 2);
	}
}

Test(walk, a_cfa_may_lie_in_memory)
{
	struct unwind_rule deref = {
		.cfa = UNWIND_CFA_DEREF, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 8, .cfa_add = 8
	};

	program((struct unwind_rule[]){ deref, root }, 2);
	w.pc = CODE;
	*at(w.sp + 8) = w.sp + 800;
	*at(w.sp + 800) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.sp, STACK + 1024 + 808);
}

Test(walk, a_return_address_in_a_register_is_the_leafs_alone)
{
	struct unwind_rule vfork = {
		.cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP, .ra = UNWIND_RA_REG, .ra_reg = 5
	};

	program((struct unwind_rule[]){ vfork, root }, 2);
	w.pc = CODE;
	w.regs[5] = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 2);

	program((struct unwind_rule[]){ by_rsp16, vfork }, 2);
	w.pc = CODE;
	*at(w.sp + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_UNSUPPORTED_RULE);
}

Test(walk, a_leafs_caller_may_keep_its_cfa_in_a_register_of_the_leaf)
{
	struct unwind_rule rax = { .cfa = UNWIND_CFA_REG, .cfa_reg = 0, .cfa_off = 8 };

	program((struct unwind_rule[]){ by_rsp16, rax, root }, 3);
	w.pc = CODE;
	w.regs[0] = w.sp + 512;
	*at(w.sp + 8) = CODE + 0x110;
	*at(w.sp + 512) = CODE + 0x210;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);

	/* Not two calls above the leaf. */
	program((struct unwind_rule[]){ by_rsp16, rax, root }, 3);
	w.pc = CODE;
	w.regs[0] = w.sp + 512;
	*at(w.sp + 8) = CODE + 0x10;
	*at(w.sp + 24) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_UNSUPPORTED_RULE);
	cr_assert_eq(w.count, 3);
}

Test(walk, a_signal_frame_goes_on_from_the_interrupted_registers)
{
	struct unwind_rule signal = { .flags = UNWIND_SIGNAL_FRAME };

	program((struct unwind_rule[]){ by_rsp16, signal, by_rsp16, root }, 4);
	w.pc = CODE;
	uint64_t frame = w.sp + 16;
	*at(w.sp + 8) = CODE + 0x101;
	*at(frame + 120) = 77;
	*at(frame + 160) = frame + 2000;
	*at(frame + 168) = CODE + 0x200;
	*at(frame + 2008) = CODE + 0x310;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 4);
	cr_assert(w.words[2] & SAMPLE_FRAME_EXACT, "interrupted at the first byte of its function");
}

Test(walk, without_rows_the_frame_pointer_is_followed_and_the_frames_say_so)
{
	program(NULL, 0);
	w.pc = CODE + 0x10;
	w.fp = w.sp + 64;
	*at(w.fp) = w.sp + 128;
	*at(w.fp + 8) = CODE + 0x20;
	*at(w.sp + 128) = 0;
	*at(w.sp + 136) = CODE + 0x30;
	run();
	cr_assert_eq(w.reason, WALK_NO_ROOT);
	cr_assert_eq(w.count, 3);
	cr_assert(!(w.words[0] & SAMPLE_FRAME_FP));
	cr_assert(w.words[1] & w.words[2] & SAMPLE_FRAME_FP);
}

Test(walk, a_frame_pointer_that_leads_nowhere_ends_as_no_rows)
{
	program(NULL, 0);
	w.pc = CODE;
	w.fp = 12345;
	run();
	cr_assert_eq(w.reason, WALK_NO_ROWS);
	cr_assert_eq(w.at_slot, slot);

	program(NULL, 0);
	w.pc = CODE;
	w.fp = w.sp + 64;
	*at(w.fp) = w.fp + 64;
	*at(w.fp + 8) = 0x1234567;
	run();
	cr_assert_eq(w.reason, WALK_NO_ROWS);
	cr_assert_eq(w.count, 1, "what is not mapped is no frame");
}

Test(walk, a_stack_that_does_not_rise_is_cut)
{
	struct unwind_rule still = { .cfa = UNWIND_CFA_REG,
				     .cfa_reg = UNWIND_REG_RSP,
				     .cfa_off = 0 };

	program(&still, 1);
	w.pc = CODE;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS);
}

Test(walk, a_stack_of_more_than_the_limit_is_cut_as_too_deep)
{
	struct unwind_rule leaf = { .cfa = UNWIND_CFA_REG,
				    .cfa_reg = UNWIND_REG_RSP,
				    .cfa_off = 8 };

	program(&leaf, 1);
	w.pc = CODE;
	for (size_t i = 0; i < 4096; i++)
		stack[i] = CODE + 0x10;
	w.sp = STACK + 8;
	run();
	cr_assert_eq(w.reason, WALK_DEPTH);
	cr_assert_eq(w.count, SAMPLE_MAX_USER);
}

Test(walk, a_walk_to_the_end_of_readable_memory_says_so)
{
	program(&by_rsp16, 1);
	w.pc = CODE;
	w.sp = STACK + sizeof(stack) - 8;
	run();
	cr_assert_eq(w.reason, WALK_STACK_UNREADABLE);
}

Test(walk, the_last_words_of_a_stack_are_read_one_by_one)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = CODE;
	w.sp = STACK + sizeof(stack) - 16;
	*at(w.sp + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
}

Test(walk, a_pc_in_no_mapping_is_shown_with_the_reason)
{
	program((struct unwind_rule[]){ by_rsp16 }, 1);
	w.pc = CODE;
	*at(w.sp + 8) = 0x123456;
	run();
	cr_assert_eq(w.reason, WALK_NO_MAPPING);
	cr_assert_eq(w.count, 2);
	cr_assert_eq(w.words[1], 0x123456);
}

Test(walk, a_walk_into_pending_rows_says_so)
{
	program(&root, 1);
	w.pc = CODE;
	cr_assert_eq(tables_file_new(t, &slot), 0);
	struct tables_mapping m = {
		.start = CODE, .end = CODE + 0x10000, .offset = 0, .slot = slot
	};
	struct process_entry p;
	cr_assert_eq(tables_walk_maps(t, &m, 1, &p), 0);
	walk_begin(&w, &p, true);
	walk_place(&w);
	run();
	cr_assert_eq(w.reason, WALK_ROWS_PENDING);
}

/* The bytes around a leaf's pc, and the place of its return address, in words above RSP. */
static const struct {
	const char *code; /* four bytes before pc, four from it on */
	int above;
} leaf_code[] = {
	{ "\x90\x90\x90\x90\x55\x48\x89\xe5", 0 }, /* push rbp; mov rbp, rsp */
	{ "\x90\x90\x90\x90\x55\x48\x8b\xec", 0 }, /* the same in another encoding */
	{ "\x90\x90\x90\x90\xf3\x0f\x1e\xfa", 0 }, /* endbr64 */
	{ "\x90\x90\x90\x55\x48\x89\xe5\x90", 1 }, /* behind the push */
	{ "\x90\x90\x90\x90\x5d\xc3\x90\x90", 1 }, /* pop rbp; ret */
	{ "\x90\x90\x90\x5d\xc3\x90\x90\x90", 0 }, /* ret */
	{ "\x90\x90\x90\x90\xc2\x08\x00\x90", 0 }, /* ret 8 */
};

Test(walk, a_frame_pointer_step_at_either_end_keeps_the_caller)
{
	for (size_t i = 0; i < sizeof(leaf_code) / sizeof(leaf_code[0]); i++) {
		memcpy(image + 0x10 - 4, leaf_code[i].code, 8);
		program(NULL, 0);
		w.pc = CODE + 0x10;
		w.fp = w.sp + 64; /* the caller's, or pushed */
		*at(w.sp) = leaf_code[i].above ? w.fp : CODE + 0x20;
		*at(w.sp + 8) = leaf_code[i].above ? CODE + 0x20 : 3;
		*at(w.fp) = 0;
		*at(w.fp + 8) = CODE + 0x30;
		run();
		cr_assert_eq(w.reason, WALK_NO_ROOT, "case %zu: %d", i, w.reason);
		cr_assert_eq(w.count, 3, "case %zu: %u", i, w.count);
		cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, 0x20);
	}
}

Test(walk, the_code_after_its_call_identifies_a_trampoline)
{
	program(NULL, 0);
	memcpy(image + 0x20, "\x48\x83\xc4\x18\xc3\x90\x90\x90", 8);
	w.pc = CODE + 0x10;
	w.fp = w.sp + 64;
	*at(w.fp) = w.sp + 160;
	*at(w.fp + 8) = CODE + 0x20; /* in the trampoline: 24 bytes, then its return address */
	*at(w.fp + 16 + 24) = CODE + 0x30;
	*at(w.sp + 160) = 0;
	*at(w.sp + 168) = CODE + 0x40;
	run();
	cr_assert_eq(w.reason, WALK_NO_ROOT, "%d", w.reason);
	cr_assert_eq(w.count, 4);
	cr_assert_eq(w.words[2] & SAMPLE_FRAME_OFFSET_MASK, 0x30);
}

Test(walk, a_frame_pointer_of_zero_is_no_root)
{
	program(NULL, 0);
	w.pc = CODE + 0x10;
	run();
	cr_assert_eq(w.reason, WALK_NO_ROWS);
}

/* Rule 0 leads to code that returns to zero by rule 1. */
static int ends_at_zero(uint8_t leaf_flags, uint8_t caller_flags)
{
	struct unwind_rule leaf = by_rsp16, caller = by_rsp16;

	leaf.flags = leaf_flags;
	caller.flags = caller_flags;
	program((struct unwind_rule[]){ leaf, caller }, 2);
	w.pc = CODE + 0x10;
	*at(w.sp + 8) = CODE + 0x110;
	*at(w.sp + 24) = 0;
	run();
	cr_assert_eq(w.count, 2);
	return w.reason;
}

Test(walk, a_return_address_of_zero_is_a_root_where_no_guess_led_to_it)
{
	const uint8_t table = UNWIND_DERIVED, guess = UNWIND_DERIVED | UNWIND_GUESSED;

	cr_assert_eq(ends_at_zero(0, 0), WALK_COMPLETE);
	cr_assert_eq(ends_at_zero(table, table), WALK_COMPLETE, "Go's tables");
	cr_assert_eq(ends_at_zero(guess, 0), WALK_NO_ROOT);
	cr_assert_eq(ends_at_zero(0, guess), WALK_NO_ROOT);
	cr_assert_eq(w.at_slot, slot);

	/* Nor in the leaf, by any row, as in code of GHC. */
	for (int by_table = 0; by_table < 2; by_table++) {
		struct unwind_rule rule = by_rsp16;

		rule.flags = by_table ? 0 : guess;
		program(&rule, 1);
		w.pc = CODE;
		*at(w.sp + 8) = 0;
		run();
		cr_assert_eq(w.reason, WALK_NO_ROOT);
	}
}

Test(walk, guesses_and_frame_pointers_that_lead_to_a_root_are_complete)
{
	const struct unwind_rule gap = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_GAP };
	struct unwind_rule guess = by_rsp16;

	guess.flags = UNWIND_DERIVED | UNWIND_GUESSED;
	program((struct unwind_rule[]){ guess, gap, root }, 3);
	w.pc = CODE + 0x10;
	w.fp = w.sp + 64;
	*at(w.sp + 8) = CODE + 0x110;
	*at(w.fp) = 0;
	*at(w.fp + 8) = CODE + 0x210;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
}

Test(walk, entries_of_two_runtimes_are_marked_where_they_lie)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = CODE + 0x10;
	w.sample.kernel_frames = w.sample.items = 0;
	/* Frames of 16 bytes each: the first and the third belong to one runtime, the second to
	 * another. */
	const __u64 entries[] = { w.sp + 8, w.sp + 40, w.sp + 24 };

	w.slot = 5;
	walk_entry(&w, entries[0]);
	walk_entry(&w, entries[1]);
	w.turn++;
	w.slot = 6;
	walk_entry(&w, entries[2]);
	walk_place(&w);
	for (unsigned i = 0; i < 3; i++)
		*at(w.sp + 8 + 16 * i) = CODE + 0x20;
	*at(w.sp + 56) = CODE + 0x110;
	struct walk again = w;

	run();
	cr_assert_eq(w.count, 5);
	cr_assert_eq(w.words[2] >> RUNTIME_ITEM_SLOT_SHIFT & RUNTIME_ITEM_SLOT_MASK, 5);
	cr_assert_eq(w.words[4] >> RUNTIME_ITEM_SLOT_SHIFT & RUNTIME_ITEM_SLOT_MASK, 6);
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(!!(w.words[w.base + i] & SAMPLE_FRAME_ENTRY), i < 3);

	again.turn = 0;
	again.entry_at = 0;
	memset(again.entries, 0, sizeof(again.entries));
	walk_find_entries(&again);
	cr_expect_eq(again.entry_at, entries[0]);
	cr_expect_eq(again.entries[0].at, entries[0]);
	cr_expect_eq(again.entries[1].at, entries[2]);
	walk_mark(&again, again.base + again.count - 1);
	cr_expect_eq(again.entry_at, entries[2]);
	walk_mark(&again, again.base + again.count - 1);
	cr_expect_eq(again.entry_at, entries[1]);
	walk_mark(&again, again.base + again.count - 1);
	cr_expect_eq(again.entry_at, 0);
}

/* The mapping of generated code whose frames the first runtime may take. */
static void made_is_taken(uint32_t takers)
{
	const uint32_t position = w.maps + 8;
	struct slab *s = (struct slab *)env_slab(position, 8);
	struct map_entry *m = (struct map_entry *)ENV_AT(s, position, struct map_entry, 8);

	cr_assert_eq(m->start, MADE);
	m->takers = takers;
}

Test(walk, a_runtime_is_asked_for_frames_behind_its_code)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	made_is_taken(1);
	w.pc = MADE + 0x1800;
	cr_assert_eq(walk_step(&w), WALK_IS_TAKEN);
	cr_assert_eq(w.taker, 0);
	cr_assert_eq(w.count, 0);
	walk_decline(&w);
	w.fp = w.sp + 64;
	*at(w.fp + 8) = CODE + 0x110;
	cr_assert_eq(walk_step(&w), 1);
	cr_assert_eq(w.reason, WALK_NO_MAPPING, "its frame pointer is not followed");
	cr_assert_eq(w.count, 1);
	tables_free(t);
}

Test(walk, a_pc_far_outside_a_runtimes_code_is_not_its_frame)
{
	for (int far = 0; far < 2; far++) {
		program((struct unwind_rule[]){ by_rsp16, root }, 2);
		made_is_taken((uint32_t)far);
		w.pc = MADE + 0x1000 + (far ? WALK_GROWS : 0);
		cr_assert_eq(walk_step(&w), 1);
		cr_assert_eq(w.reason, WALK_NO_MAPPING);
		tables_free(t);
	}
}
