/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a frame pointer belongs to the frame in question, in code without rows
 * (bpf/walk/owner.h). */
#include "tests/unit/walk_fixture.h"

Test(owner, a_leaf_without_rows_may_have_no_frame_where_a_word_leads_into_code)
{
	without_rows(LEAF);
	*above(3) = STACK + 2000;
	ends(WALK_COMPLETE, "none does");
	without_rows(LEAF);
	*above(0) = MAIN;
	ends(WALK_CALLER_UNSURE, "the first");
	without_rows(LEAF);
	*above(5) = MAIN;
	ends(WALK_CALLER_UNSURE, "the sixth");
	without_rows(LEAF);
	*above(6) = MAIN;
	ends(WALK_COMPLETE, "what older calls left");
	without_rows(LEAF);
	*above(8) = CALLER;
	*at(w.fp) = MAIN;
	ends(WALK_COMPLETE, "where RBP points");
}

Test(owner, a_leaf_without_rows_may_have_no_frame_where_a_register_leads_into_code)
{
	without_rows(LEAF);
	w.regs[0] = CODE + 0x20; /* rax */
	calls(CODE + 0x20, LEAF);
	ends(WALK_COMPLETE, "not popped");
	for (int back = 1; back < 80; back++) {
		for (int call = 0; call < 2; call++) {
			without_rows(FAR);
			at_code(FAR - back, "\x58", 1);
			if (call)
				calls(CODE + 0x20, LEAF);
			w.regs[0] = CODE + 0x20;
			ends(back <= 32 || (call && back <= 64) ? WALK_CALLER_UNSURE
								: WALK_COMPLETE,
			     "popped");
		}
	}
	without_rows(CODE + 0x38);
	w.regs[0] = CODE + 0x20;
	ends(WALK_CALLER_UNSURE, "where little code is before");
	static const uint8_t numbers[] = { 0, 2, 1, 3, 7, 6, 4, 5 };
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 5)
			continue;
		for (int other = 0; other < 2; other++) {
			without_rows(LEAF);
			at_code(LEAF - 9, i < 8 ? "\x48\x58" : "\x41\x58", 2);
			image[LEAF - 8 - CODE] += i & 7;
			w.regs[(i < 8 ? numbers[i] : i) ^ other] = CODE + 0x20;
			if ((i ^ other) == 4 || (i < 8 && (numbers[i] ^ other) >= 6))
				continue;
			ends(other ? WALK_COMPLETE : WALK_CALLER_UNSURE, "the one that is popped");
		}
	}
	without_rows(INNER);
	calls(CODE + 0x20, LEAF);
	w.regs[0] = CODE + 0x20;
	ends(WALK_COMPLETE, "not what a caller had");

	/* As if a signal had interrupted it. */
	for (int held = 0; held < 2; held++) {
		struct unwind_rule signal = { .flags = UNWIND_SIGNAL_FRAME };
		const struct unwind_rule gap = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_GAP };

		memset(stack, 0, sizeof(stack));
		program((struct unwind_rule[]){ gap, root, signal }, 3);
		w.pc = CODE + 0x200;
		*at(w.sp + 120) = w.sp + 1064;
		*at(w.sp + 144) = held ? CODE + 0x20 : 0; /* rax */
		*at(w.sp + 160) = w.sp + 1000;
		*at(w.sp + 168) = LEAF;
		*at(w.sp + 1072) = MAIN;
		run();
		cr_assert_eq(w.reason, held ? WALK_CALLER_UNSURE : WALK_COMPLETE, "%d", w.reason);
		cr_assert_eq(w.count, 3);
	}
}

Test(owner, a_frame_that_was_set_up_shortly_before_is_the_functions_own)
{
	for (int i = 0; i < 2; i++) {
		without_rows(LEAF);
		at_code(LEAF - 40, i ? PUSH_MOV_2 : PUSH_MOV, 4);
		*above(0) = MAIN;
		ends(WALK_COMPLETE, "set up");
	}
	static const char *const over[] = { "\xc3", "\xc9", "\x5d", "\xe9", "\xeb", "\xcc" };
	for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++) {
		without_rows(LEAF);
		at_code(LEAF - 40, PUSH_MOV, 4);
		at_code(LEAF - 20, over[i], 1);
		*above(0) = MAIN;
		ends(WALK_CALLER_UNSURE, "and taken down, or another function's");
	}
}

Test(owner, a_caller_without_rows_returns_behind_a_call)
{
	without_rows(INNER);
	ends(WALK_COMPLETE, "no word");
	without_rows(INNER);
	*above(2) = SECOND;
	ends(WALK_COMPLETE, "behind no call");
	without_rows(INNER);
	*above(2) = MADE + 0x40;
	ends(WALK_CALLER_UNSURE, "behind no call of generated code");
	static const char *const call[] = {
		"\xff\xd0",
		"\xff\x17",
		"\xff\x14\x24",
		"\xff\x50\x08",
		"\xff\x54\x24\x08",
		"\xff\x90\x00\x01\x00\x00",
		"\x41\xff\xd7",
		"\xff\x15\x00\x00\x00\x00",
		"\xff\x94\x24\x00\x01\x00\x00",
		"\xe8\x10\x00\x00\x00",
	};
	static const size_t length[] = { 2, 2, 3, 3, 4, 6, 3, 6, 7, 5 };
	for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
		without_rows(INNER);
		at_code(SECOND - length[i], call[i], length[i]);
		*above(2) = SECOND;
		ends(WALK_CALLER_UNSURE, "behind a call");
	}
}

Test(owner, a_function_has_the_frame_that_the_one_which_was_called_makes)
{
	for (int larger = 0; larger < 2; larger++) {
		without_rows(INNER);
		calls(MAIN, CODE + 0x30);
		at_code(CODE + 0x34, PUSH_MOV_2 "\x48\x83\xec\x40", 8);
		if (larger)
			image[0x34 + 7] = 0x30;
		calls(SECOND, CODE + 0x60);
		*above(1) = SECOND;
		ends(larger ? WALK_CALLER_UNSURE : WALK_COMPLETE, "64 bytes");
	}
	without_rows(INNER);
	calls(MAIN, CODE + 0x30);
	at_code(CODE + 0x34, PUSH_MOV "\x48\x81\xec\x40\x00\x00\x00", 11);
	calls(SECOND, CODE + 0x60);
	*above(1) = SECOND;
	ends(WALK_COMPLETE, "in four bytes");
}

Test(owner, a_word_without_room_for_its_functions_frame_is_a_leftover)
{
	for (int room = 0; room < 2; room++) {
		without_rows(INNER);
		at_code(SECOND - 100, PUSH_MOV "\x48\x83\xec\x20", 8);
		at_code(SECOND - 2, "\xff\xd6", 2);
		*above(room ? 3 : 4) = SECOND;
		ends(room ? WALK_CALLER_UNSURE : WALK_COMPLETE, "32 bytes above");
	}
}

Test(owner, a_frame_is_set_up_by_hotspots_stubs_too)
{
	without_rows(LEAF);
	at_code(LEAF - 40, "\x48\x89\x6c\x24\x10\x48\x8b\xec\x48\x83\xc5\x10", 12);
	*above(0) = MAIN;
	ends(WALK_COMPLETE, "mov rbp, rsp; add rbp, 16");
}

Test(owner, no_return_address_between_equal_stack_and_frame_pointers)
{
	without_rows(LEAF);
	w.sp = w.fp;
	*at(w.fp) = MAIN;
	ends(WALK_COMPLETE, "pop rbp");
}

Test(owner, a_frame_pointer_restored_early_makes_the_caller_unsure)
{
	static const char give[] = "\x48\x8b\x6d\x00";

	without_rows(LEAF);
	at_code(LEAF - 20, give, 4);
	ends(WALK_CALLER_UNSURE, "mov rbp, [rbp]");
	without_rows(LEAF);
	at_code(LEAF - 40, PUSH_MOV, 4);
	at_code(LEAF - 4, give, 4);
	ends(WALK_CALLER_UNSURE, "of a frame");
	without_rows(LEAF);
	at_code(LEAF - 20, give, 4);
	at_code(LEAF - 4, "\xff\xe1", 2);
	ends(WALK_COMPLETE, "before a jump away");
	without_rows(INNER);
	at_code(CALLER - 20, give, 4);
	ends(WALK_COMPLETE, "a caller");
}

/* LEAF's bytes, of which the first `back` lie before pc. */
static void returns_to(const char *bytes, size_t n, unsigned back, unsigned above_sp, bool pushed)
{
	without_rows(LEAF);
	w.fp = 0;
	at_code(LEAF - back, bytes, n);
	*at(w.sp + above_sp) = SECOND;
	if (pushed)
		*at(w.sp + above_sp - 8) = w.sp + 512;
	else
		w.fp = w.sp + 512;
	*at(w.sp + 512) = 0;
	*at(w.sp + 520) = MAIN;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE, "%u of %zu bytes: %d", back, n, w.reason);
	cr_assert_eq(w.count, 3);
}

#define RETURNS(bytes, back, above_sp, pushed) \
	returns_to(bytes, sizeof(bytes) - 1, back, above_sp, pushed)

Test(owner, prologues_and_epilogues_tell_where_the_return_address_is)
{
	static const char bang[] = "\x89\x84\x24\x00\xc0\xfe\xff\x55\x48\x83\xec\x10";
	static const char poll[] = "\x48\x83\xc4\x20\x5d\x49\x3b\xa7\x40\x03\x00\x00"
				   "\x0f\x87\x10\x00\x00\x00\xc3";

	RETURNS(PUSH_MOV, 0, 0, false);
	RETURNS(PUSH_MOV, 1, 8, true);
	RETURNS("\xf3\x0f\x1e\xfa", 0, 0, false);
	RETURNS("\x5d\xc3", 0, 8, true);
	RETURNS("\x5d\xc3", 1, 0, false);
	RETURNS("\xc2\x10\x00", 0, 0, false);
	RETURNS("\x48\x83\xc4\x20\x5d\xc3", 0, 40, true);
	RETURNS(bang, 0, 0, false);
	RETURNS(bang, 7, 0, false);
	RETURNS(bang, 8, 8, true);
	RETURNS(poll, 0, 40, true);
	RETURNS(poll, 4, 8, true);
	RETURNS(poll, 5, 0, false);
	RETURNS(poll, 12, 0, false);
	RETURNS(poll, 18, 0, false);
	RETURNS("\x48\x8b\xe5\x5d\x48\x83\xf9\x02\x7f\x03\xc2\x10\x00", 4, 0, false);
	RETURNS("\x48\x8b\xe5\x5d\x48\x83\xf9\x02\x7f\x03\xc2\x10\x00", 8, 0, false);
	RETURNS("\x48\x89\xec\x5d", 4, 0, false);
}

Test(owner, a_store_above_the_stack_pointer_is_no_prologue)
{
	without_rows(LEAF);
	at_code(LEAF, "\x89\x84\x24\x00\x40\x01\x00\x55", 8);
	ends(WALK_COMPLETE, "mov [rsp + N], eax; push rbp");
}

Test(owner, a_stub_that_saves_the_callers_frame_pointer_does_not_own_it)
{
	for (int still = 0; still < 2; still++) {
		without_rows(INNER);
		w.fp = w.sp + 512;
		at_code(CALLER - 40, "\x52\x48\x83\xec\x08\x48\x89\x2c\x24", 9);
		*at(w.sp + 8) = still ? w.fp : 0;
		calls(SECOND, CALLER);
		*at(w.sp + 16) = SECOND;
		*at(w.fp) = 0;
		*at(w.fp + 8) = MAIN;
		run();
		cr_assert_eq(w.count, still ? 4 : 3);
		cr_assert_eq(w.reason, still ? WALK_COMPLETE : WALK_CALLER_UNSURE, "%d", w.reason);
	}
}

#define FUNCTION (MADE + 0x100)

/* A function of generated code that has called itself. */
Test(owner, a_function_that_has_its_frame_was_not_called_by_a_word_in_it)
{
	for (int kind = 0; kind < 4; kind++) {
		without_rows(LEAF);
		memset(made, 0x90, sizeof(made));
		w.pc = kind == 1 ? FUNCTION + 0x10 : FUNCTION + 0xa0;
		if (kind != 2)
			at_code(FUNCTION, PUSH_MOV, 4);
		if (kind == 3)
			at_code(w.pc - 4, "\x5d", 1);
		/* Far enough for the frame to be forgotten. */
		at_code(FUNCTION + 8, "\xeb", 1);
		calls(FUNCTION + 0x80, FUNCTION);
		*above(1) = FUNCTION + 0x80;
		run();
		cr_assert_eq(w.reason, kind ? WALK_CALLER_UNSURE : WALK_COMPLETE, "%d: %d", kind,
			     w.reason);
	}
}

Test(owner, a_frame_of_no_known_size_is_not_anothers)
{
	for (int between = 0; between < 2; between++) {
		without_rows(INNER);
		at_code(SECOND - 100, PUSH_MOV "\x48\x83\xec\x20", 8);
		if (between)
			at_code(SECOND - 40, PUSH_MOV "\x41\x57", 6);
		at_code(SECOND - 2, "\xff\xd6", 2);
		*above(4) = SECOND;
		ends(between ? WALK_CALLER_UNSURE : WALK_COMPLETE, "of the function before");
	}
}

/* Generated code that generated code called has a frame; the contents of the frame prove
 * nothing. */
Test(owner, behind_a_frame_pointer_that_was_followed_none_is_asked_about)
{
	without_rows(LEAF);
	*at(w.fp) = w.fp + 64;
	*at(w.fp + 8) = CALLER;
	calls(CODE + 0x20, LEAF);
	*at(w.fp + 16) = CODE + 0x20;
	*at(w.fp + 72) = MAIN;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE, "%d", w.reason);
	cr_assert_eq(w.count, 3);
}

/* The called function returns there, not the code that RBP leads to. */
Test(owner, a_call_of_a_function_with_rows_says_that_it_is_skipped)
{
	static const uint64_t targets[] = { INNER, LEAF - 40 };

	for (int rows = 0; rows < 2; rows++) {
		const uint16_t reason = rows ? WALK_COMPLETE : WALK_CALLER_UNSURE;

		without_rows(LEAF);
		at_code(LEAF - 40, PUSH_MOV, 4);
		calls(MAIN, targets[rows]);
		ends(reason, "direct");
		without_rows(LEAF);
		at_code(LEAF - 40, PUSH_MOV, 4);
		at_code(MAIN - 12, "\x48\xb8", 2);
		memcpy(code_at(MAIN - 10), &targets[rows], sizeof(targets[rows]));
		at_code(MAIN - 2, "\xff\xd0", 2);
		ends(reason, "by a register that was loaded before");
		without_rows(LEAF);
		*at(w.fp) = w.fp + 64;
		*at(w.fp + 8) = CALLER;
		*at(w.fp + 72) = MAIN;
		calls(MAIN, targets[rows]);
		run();
		cr_assert_eq(w.reason, reason, "further up: %d", w.reason);
		cr_assert_eq(w.count, 3);
	}
}

/* It was not found through RBP, which may still be its caller's. */
Test(owner, at_a_return_the_owner_of_the_frame_pointer_is_checked)
{
	for (int word = 0; word < 2; word++) {
		without_rows(LEAF);
		at_code(LEAF, "\xc3", 1);
		*above(0) = CALLER;
		calls(CODE + 0x20, LEAF - 40);
		*above(3) = word ? CODE + 0x20 : 0;
		run();
		cr_assert_eq(w.reason, word ? WALK_CALLER_UNSURE : WALK_COMPLETE, "%d", w.reason);
		cr_assert_eq(w.count, 3);
	}
}

/* As on a copy of the stack. */
Test(owner, code_that_cannot_be_read_proves_nothing)
{
	without_rows(CODE + 4);
	ends(WALK_CALLER_UNSURE, "nothing before it");
	without_rows(CODE + 8);
	ends(WALK_COMPLETE, "enough before it");
}

/* libjvm jumps to a stub of HotSpot that has no frame. */
Test(owner, a_function_with_rows_may_have_jumped_to_a_leaf)
{
	for (unsigned n = 0; n < 2; n++) {
		without_rows(LEAF);
		calls(CODE + 0x20, INNER);
		*above(n) = CODE + 0x20;
		ends(n ? WALK_COMPLETE : WALK_CALLER_UNSURE, "on top of the stack");
	}
	without_rows(INNER);
	calls(CODE + 0x20, INNER);
	*above(0) = CODE + 0x20;
	ends(WALK_COMPLETE, "a caller");
}
