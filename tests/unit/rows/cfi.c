/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that result from the instructions of a function. */
#include "tests/unit/cfi_fixture.h"

TestSuite(cfi, .init = setup, .fini = teardown);

Test(cfi, push_and_frame_pointer)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2);
	BYTES(DW_CFA_advance_loc | 3, DW_CFA_def_cfa_register, 6);
	BYTES(DW_CFA_advance_loc1, 0x3b, DW_CFA_def_cfa, 7, 8, DW_CFA_restore | 6);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401001 rsp+16 cfa-16 cfa-8\n"
	      "0x401004 rbp+16 cfa-16 cfa-8\n0x40103f rsp+8 same cfa-8\n"
	      "0x401040 end undefined undefined\n");
}

Test(cfi, pieces_of_any_size_give_the_same)
{
	for (size_t piece = 1; piece < 40; piece++) {
		size_t of;

		teardown();
		setup();
		of = cie();
		fde(of, 0, 0x40);
		BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16);
		end();
		fde(of, 0x40, 0x40);
		end();
		run(piece);
		gives("0x401000 rsp+8 same cfa-8\n0x401001 rsp+16 same cfa-8\n"
		      "0x401040 rsp+8 same cfa-8\n0x401080 end undefined undefined\n");
	}
}

Test(cfi, registers_that_do_not_matter_make_no_rows)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_offset | 3, 2, DW_CFA_advance_loc | 1,
	      DW_CFA_offset_extended, 12, 3, DW_CFA_GNU_args_size, 16, DW_CFA_restore | 3);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401040 end undefined undefined\n");
}

Test(cfi, remembered_states_nest)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_remember_state, DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16,
	      DW_CFA_remember_state);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_def_cfa, 6, 32, DW_CFA_advance_loc | 4,
	      DW_CFA_restore_state, DW_CFA_advance_loc | 4, DW_CFA_restore_state);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401004 rsp+16 same cfa-8\n0x401008 rbp+32 same cfa-8\n"
	      "0x40100c rsp+16 same cfa-8\n0x401010 rsp+8 same cfa-8\n"
	      "0x401040 end undefined undefined\n");
}

Test(cfi, restore_without_remember_ends_only_this_function)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_restore_state);
	end();
	fde(of, 0x40, 0x40);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401004 end undefined undefined\n"
	      "0x401040 rsp+8 same cfa-8\n0x401080 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_INSTRUCTIONS], 1);
}

Test(cfi, remembered_states_of_any_depth)
{
	size_t of = cie();

	fde(of, 0, 0x1000);
	for (unsigned i = 1; i <= 1000; i++)
		BYTES(DW_CFA_remember_state, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset,
		      (uint8_t)(8 + i % 2 * 8));
	for (unsigned i = 1; i <= 1000; i++)
		BYTES(DW_CFA_advance_loc | 1, DW_CFA_restore_state);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 64);
	end();
	run(SIZE_MAX / 2);
	cr_assert_eq(rows.skipped[ROWS_SKIP_INSTRUCTIONS], 0);
	/* Up, down, and the last one. The turn at the top adds no row of its own. */
	cr_assert_eq(rows.count, 1 + 1000 + 1000 + 1 + 1);
}

Test(cfi, unknown_instruction_is_unsupported_from_there_on)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 4, 0x3f);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401004 rsp+16 same cfa-8\n"
	      "0x401008 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_OPCODE], 1);

	struct rows_cursor c;
	struct unwind_row_wire row;

	rows_cursor_init(&c, &rows);
	for (int i = 0; i < 3; i++)
		cr_assert(rows_next(&c, &row));
	cr_assert_eq(rows.rules.rule[row.rule].cfa_add, UNWIND_END_UNSUPPORTED);
}

Test(cfi, return_address_undefined_in_a_register_or_elsewhere)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_undefined, 16, DW_CFA_advance_loc | 4, DW_CFA_register, 16, 5,
	      DW_CFA_advance_loc | 4, DW_CFA_offset | 16, 3);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_restore_extended, 16, DW_CFA_advance_loc | 4,
	      DW_CFA_same_value, 16);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same undefined\n0x401004 rsp+8 same rdi\n0x401008 rsp+8 same cfa-24\n"
	      "0x40100c rsp+8 same cfa-8\n0x401010 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_RA_RULE], 1);
}

Test(cfi, return_column_that_is_a_register_is_that_register)
{
	size_t of = cie_full(1, "", NULL, 0, 5);

	fde(of, 0, 0x40);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same rdi\n0x401040 end undefined undefined\n");
}

Test(cfi, frame_pointer_saved_by_expression_undefined_or_unsayable)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_expression, 6, 2, DW_OP_breg6, 0, DW_CFA_advance_loc | 4, DW_CFA_undefined, 6);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_offset_extended_sf, 6, 0x02, DW_CFA_advance_loc | 4,
	      DW_CFA_GNU_negative_offset_extended, 6, 4);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_same_value, 6, DW_CFA_advance_loc | 4,
	      DW_CFA_val_offset, 6, 1);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 rbp+0 cfa-8\n0x401004 rsp+8 undefined cfa-8\n"
	      "0x401008 rsp+8 cfa-16 cfa-8\n0x40100c rsp+8 cfa+32 cfa-8\n"
	      "0x401010 rsp+8 same cfa-8\n"
	      "0x401014 rsp+8 undefined cfa-8\n0x401040 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_RBP_RULE], 1);
}

Test(cfi, cfa_by_expression_other_register_and_unsayable)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 8, DW_OP_deref, DW_OP_plus_uconst, 8);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_def_cfa_sf, 10, 0x7e, DW_CFA_advance_loc | 4,
	      DW_CFA_def_cfa_offset_sf, 0x7d);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 0, DW_OP_abs,
	      DW_CFA_advance_loc | 4, DW_CFA_def_cfa, 17, 8);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_def_cfa, 7, 8);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 *(rsp+8)+8 same cfa-8\n0x401004 r10+16 same cfa-8\n"
	      "0x401008 r10+24 same cfa-8\n0x40100c end undefined undefined\n"
	      "0x401014 rsp+8 same cfa-8\n0x401040 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_CFA_EXPRESSION], 1);
	cr_assert_eq(rows.skipped[ROWS_SKIP_CFA_REGISTER], 1);
}

Test(cfi, cfa_by_two_loads_or_an_index)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_def_cfa_expression, 8, DW_OP_breg7, 56, DW_OP_deref, DW_OP_plus_uconst, 0,
	      DW_OP_deref, DW_OP_plus_uconst, 8, DW_CFA_advance_loc | 4);
	BYTES(DW_CFA_def_cfa_expression, 10, DW_OP_breg7, 8, DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul,
	      DW_OP_plus, DW_OP_deref, DW_OP_plus_uconst, 8, DW_CFA_advance_loc | 4);
	/* A register makes it an ordinary rule again. An index without a load has no rule. */
	BYTES(DW_CFA_def_cfa, 13, 8, DW_CFA_advance_loc | 4);
	BYTES(DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 8, DW_OP_breg9, 0, DW_OP_plus);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 *(*(rsp+56)+0)+8 same cfa-8\n0x401004 *(rsp+8*r9+8)+8 same cfa-8\n"
	      "0x401008 r13+8 same cfa-8\n0x40100c end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_CFA_EXPRESSION], 1);
}

/* Checks a function of 0x40 bytes that says where it saved RAX and RDX, or only RAX. The CFA is
 * relative to RBP from 0x10 on, and to RCX from 0x20 on. */
static void throws(bool both, const char *want)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_advance_loc | 16, DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 0, 4);
	if (both)
		BYTES(DW_CFA_offset | 1, 5);
	BYTES(DW_CFA_advance_loc | 16, DW_CFA_def_cfa, 2, 8);
	end();
	run(SIZE_MAX / 2);
	gives(want);
	teardown();
	setup();
}

Test(cfi, rules_end_where_an_exception_is_installed)
{
	static const struct {
		struct ehreturn spoils;
		const char *want;
	} cases[] = {
		{ { 0x18, 0x20, 0, 0 },
		  "0x401000 rsp+8 same cfa-8\n0x401010 rbp+16 same cfa-8\n"
		  "0x401018 end undefined undefined derived\n"
		  "0x401020 rcx+8 same cfa-8\n0x401040 end undefined undefined\n" },
		{ { 0x18, 0x1c, 0, 0 },
		  "0x401000 rsp+8 same cfa-8\n0x401010 rbp+16 same cfa-8\n"
		  "0x401018 end undefined undefined derived\n"
		  "0x40101c rbp+16 same cfa-8\n0x401020 rcx+8 same cfa-8\n"
		  "0x401040 end undefined undefined\n" },
		{ { 0x10, 0x28, 0, 0 },
		  "0x401000 rsp+8 same cfa-8\n0x401010 end undefined undefined derived\n"
		  "0x401028 rcx+8 same cfa-8\n0x401040 end undefined undefined\n" },
		{ { 0, 0x40, 0, 0 },
		  "0x401000 end undefined undefined derived\n0x401040 end undefined undefined\n" },
		/* The return address is still known, but not where the CFA is relative to RSP. */
		{ { 0x18, 0x20, -0x88, 0x1e },
		  "0x401000 rsp+8 same cfa-8\n0x401010 rbp+16 same cfa-8\n"
		  "0x401018 rbp+16 undefined cfa-152 derived\n"
		  "0x40101e end undefined undefined derived\n"
		  "0x401020 rcx+8 same cfa-8\n0x401040 end undefined undefined\n" },
		{ { 0x8, 0x20, -0x88, 0x1e },
		  "0x401000 rsp+8 same cfa-8\n0x401008 end undefined undefined derived\n"
		  "0x401020 rcx+8 same cfa-8\n0x401040 end undefined undefined\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		spoils = cases[i].spoils;
		throws(true, cases[i].want);
	}
	cr_assert_eq(asked, 6);
	throws(false,
	       "0x401000 rsp+8 same cfa-8\n0x401010 rbp+16 same cfa-8\n0x401020 rcx+8 same cfa-8\n"
	       "0x401040 end undefined undefined\n");
	cr_assert_eq(asked, 6, "it passes no two values to a handler");
}

/* Checks a function of OCaml 5 with the call frame information that OCaml writes. It has a frame of
 * 24 bytes in [0x14, 0x2c) and [0x2d, 0x31), and claims one in its slow path. grows: the
 * information includes the push and the pop there. */
static void enlarges(bool grows, bool beyond, uint8_t factor, const char *want)
{
	teardown();
	setup();

	size_t c = cie();

	fde(c, 0, 0x3a);
	BYTES(DW_CFA_advance_loc | 0x14, DW_CFA_def_cfa_offset, 8 + factor);
	BYTES(DW_CFA_advance_loc | 0x18, DW_CFA_def_cfa_offset, 8);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 8 + factor);
	if (grows) {
		BYTES(DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16 + factor);
		BYTES(DW_CFA_advance_loc | 7, DW_CFA_def_cfa_offset, 8 + factor);
		BYTES(DW_CFA_advance_loc | 2);
	} else {
		BYTES(DW_CFA_advance_loc | 13);
	}
	if (beyond)
		BYTES(DW_CFA_def_cfa_offset, 8);
	else
		s.n--; /* nothing advances to the end */
	end();
	run(s.n);
	gives(want);
}

Test(cfi, slow_path_of_a_stack_check_has_no_frame)
{
	static const char frame[] = "0x401000 rsp+8 same cfa-8\n0x401014 rsp+32 same cfa-8\n"
				    "0x40102c rsp+8 same cfa-8\n0x40102d rsp+32 same cfa-8\n";
	char mended[512], said[512];

	check = (struct stackcheck){ .back = 0x10, .slow = 0x2f, .call = 0x31, .jump = 0x38 };
	snprintf(mended, sizeof(mended),
		 "%s0x40102f rsp+8 same cfa-8 derived\n0x401031 rsp+16 same cfa-8 derived\n"
		 "0x401038 rsp+8 same cfa-8 derived\n0x40103a end undefined undefined\n",
		 frame);
	snprintf(said, sizeof(said),
		 "%s0x401031 rsp+40 same cfa-8\n0x401038 rsp+32 same cfa-8\n"
		 "0x40103a end undefined undefined\n",
		 frame);
	/* As in OCaml 5.1 and later, then as in OCaml 5.0. */
	enlarges(true, true, 24, mended);
	enlarges(false, true, 24, mended);
	cr_assert_eq(asked_check, 2);
	/* The slow path's frame exists already; then rules without a contradiction. */
	check.back = 0x18;
	enlarges(true, true, 24, said);
	check.back = 0x10;
	enlarges(false, true, 0, "0x401000 rsp+8 same cfa-8\n0x40103a end undefined undefined\n");
	cr_assert_eq(asked_check, 4);
	/* No check is found; then no rules for the byte after the function. */
	check.slow = 0;
	enlarges(true, true, 24, said);
	cr_assert_eq(asked_check, 5);
	check.slow = 0x2f;
	enlarges(true, false, 24, said);
	cr_assert_eq(asked_check, 5, "nothing shows that its code is OCaml's");
}

Test(cfi, fde_without_rules_of_code_that_moves_the_stack_gives_no_rows)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_nop, DW_CFA_nop);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401040 end undefined undefined\n");
	cr_assert_eq(asked_moved, 1);
	moves = true;
	teardown();
	setup();
	of = cie();
	fde(of, 0, 0x40);
	end();
	fde(of, 0x40, 0x10);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16);
	end();
	run(SIZE_MAX / 2);
	gives("0x401040 rsp+8 same cfa-8\n0x401041 rsp+16 same cfa-8\n"
	      "0x401050 end undefined undefined\n");
	cr_assert_eq(asked_moved, 2, "rules speak for themselves");
	cr_assert_eq(rows.skipped[ROWS_SKIP_NO_RULES], 1);
}

Test(cfi, plt)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 6, DW_CFA_def_cfa_offset, 24,
	      DW_CFA_advance_loc | 10);
	BYTES(DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15,
	      DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+16 same cfa-8\n0x401006 rsp+24 same cfa-8\n0x401010 plt same cfa-8\n"
	      "0x401040 end undefined undefined\n");
	cr_assert_eq(rows.rules.rule[3].cfa_off, 11);
}

Test(cfi, kernel_signal_frame_is_marked_and_another_is_ordinary)
{
	size_t of = cie_full(1, "zRS", (const uint8_t[]){ DW_EH_PE_absptr }, 1, 16);

	fde(of, 0, 0x40);
	u8(0);
	BYTES(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 0x01, DW_OP_deref, DW_CFA_expression,
	      6, 3, DW_OP_breg7, 0xf8, 0x00);
	BYTES(DW_CFA_expression, 16, 3, DW_OP_breg7, 0xa8, 0x01);
	end();
	fde(of, 0x40, 0x40);
	u8(0);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 *(rsp+160)+0 rsp+120 rsp+168 signal\n0x401040 rsp+8 same cfa-8\n"
	      "0x401080 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_SIGNAL_LAYOUT], 1);
}

Test(cfi, advance_over_the_end_of_the_function_ends_it)
{
	size_t of = cie();

	fde(of, 0, 0x10);
	BYTES(DW_CFA_MIPS_advance_loc8);
	u64(UINT64_MAX);
	BYTES(DW_CFA_def_cfa_offset, 99);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401010 end undefined undefined\n");
}

Test(cfi, rbx_is_kept_where_it_is_saved_in_reach_of_the_cfa)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 3, 2);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_remember_state, DW_CFA_offset_extended, 3, 0xff, 1);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_offset_extended, 3, 0x80, 2); /* too far away */
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_offset_extended_sf, 3, 0x7f); /* above the CFA */
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_restore_state, DW_CFA_advance_loc | 1,
	      DW_CFA_restore | 3);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_expression, 3, 2, DW_OP_breg6, 0x70);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_register, 3, 0);
	end();
	run(SIZE_MAX / 2);
	gives_with(true, "0x401000 rsp+8 same cfa-8\n0x401001 rsp+16 same cfa-8 rbx=cfa-16\n"
			 "0x401002 rsp+16 same cfa-8 rbx=cfa-2040\n0x401003 rsp+16 same cfa-8\n"
			 "0x401005 rsp+16 same cfa-8 rbx=cfa-16\n0x401006 rsp+16 same cfa-8\n"
			 "0x401040 end undefined undefined\n");
	gives("0x401000 rsp+8 same cfa-8\n0x401001 rsp+16 same cfa-8\n"
	      "0x401040 end undefined undefined\n");
}

Test(cfi, stack_pointer_that_is_not_the_cfa)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	/* As in glibc's longjmp: everything comes from a buffer or from registers. */
	BYTES(DW_CFA_def_cfa, 5, 0, DW_CFA_register, 7, 8, DW_CFA_register, 16, 1,
	      DW_CFA_offset | 3, 0);
	/* A shift: places of saved registers are relative to the new CFA. */
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_def_cfa, 6, 8, DW_CFA_restore_extended, 16,
	      DW_CFA_offset | 6, 2, DW_CFA_offset | 3, 3, DW_CFA_val_offset_sf, 7, 0x7e);
	/* By value: the caller's RSP is RDI + 24. The return address is still relative to the
	 * CFA. */
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_val_expression, 7, 2, DW_OP_breg5, 24);
	/* RSP is in a register, and so is the return address. */
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_register, 16, 2, DW_CFA_same_value, 6);
	/* RSP is the CFA, by an explicit rule. */
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_restore_extended, 16, DW_CFA_val_offset, 7, 0);
	end();
	run(SIZE_MAX / 2);
	gives_with(true,
		   "0x401000 r8+0 same rdx\n0x401004 rbp+24 cfa-32 cfa-24 rbx=cfa-40\n"
		   "0x401008 end undefined undefined\n0x40100c rdi+24 same rcx\n"
		   "0x401010 rbp+8 same cfa-8 rbx=cfa-24\n0x401040 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_RSP_RULE], 1);
}

Test(cfi, register_after_an_expression_takes_the_offset_from_before_it)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_def_cfa_offset, 56, DW_CFA_advance_loc | 4, DW_CFA_def_cfa_expression, 3,
	      DW_OP_breg7, 16, DW_OP_deref, DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 48);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_def_cfa_register, 7);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+56 same cfa-8\n0x401004 *(rsp+16)+0 same cfa-8\n"
	      "0x40100c rsp+48 same cfa-8\n"
	      "0x401040 end undefined undefined\n");
}

Test(cfi, expressions_of_registers_begin_with_the_cfa)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_expression, 6, 2, DW_OP_lit16, DW_OP_minus, DW_CFA_val_expression, 16, 2,
	      DW_OP_breg2, 0);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_val_expression, 16, 3, DW_OP_breg7, 0, DW_OP_deref);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 cfa-16 rcx\n0x401004 end undefined undefined\n");
}

Test(cfi, sparc_window_save_costs_its_function_only)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	BYTES(DW_CFA_advance_loc | 4, DW_CFA_GNU_window_save);
	end();
	fde(of, 0x40, 0x40);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401004 end undefined undefined\n"
	      "0x401040 rsp+8 same cfa-8\n0x401080 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_OPCODE], 1);
}
