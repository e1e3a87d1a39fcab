/* SPDX-License-Identifier: Apache-2.0 */
/* Whether RBP belongs to the frame in question, in code of SBCL (bpf/walk/owner_sbcl.h). */
#include "tests/unit/walk_fixture.h"

#define PAIR "\x48\x89\x2c\x24\x48\x8b\xec" /* mov [rsp], rbp; mov rbp, rsp */
#define CALLEE (CODE + 0x40)
#define ROUTINE (CODE + 0x70)

/* SBCL's: the frame that RBP points to was called before MAIN. An indirect call left a word on the
 * stack. */
static void sbcl(uint64_t pc)
{
	without_rows(pc);
	at_code(MAIN - 12, PAIR, 7);
	calls(MAIN, CALLEE);
	at_code(CALLEE, "\x8f\x45\x08", 3); /* pop [rbp+8] */
	at_code(SECOND - 2, "\xff\xd0", 2);
	*above(2) = SECOND;
}

/* RBP is the callee's, which has no return address yet; it leads to its caller's frame. */
static void sbcl_callee(uint64_t pc)
{
	sbcl(pc);
	*at(w.fp + 264) = MAIN;
	*at(w.fp + 8) = CALLER;
}

static void leads_over_second(const char *what)
{
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE, "%s: %d", what, w.reason);
	cr_assert_eq(w.count, 3, "%s: %u", what, w.count);
	cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, SECOND - CODE, "%s", what);
}

Test(owner_sbcl, an_sbcl_function_has_its_own_frame_despite_older_words)
{
	sbcl(LEAF);
	ends(WALK_COMPLETE, "by both");
	sbcl(LEAF);
	at_code(CALLEE, "\x90", 1);
	ends(WALK_COMPLETE, "by what is before the call");
	sbcl(LEAF);
	at_code(MAIN - 12, "\x90\x90\x90\x90", 4);
	ends(WALK_COMPLETE, "by what the call leads to");
	sbcl(LEAF);
	at_code(CALLEE, "\x90", 1);
	at_code(MAIN - 12, "\x90\x90\x90\x90", 4);
	ends(WALK_CALLER_UNSURE, "not SBCL's");
	static const char *const call[] = {
		"\x49\x89\x28\x49\x8b\xe8\xb8\x02\xd0\x2c\x50\xff\xd0", /* by r8, a constant */
		"\x49\x89\x29\x49\x8b\xe9\x90\x90\x90\xff\x50\xfd",
		"\x49\x89\x29\x49\x8b\xe9\xff\x50\xfd",
		"\x49\x89\x29\x49\x8b\xe9\x8d\x58\xf5\xf6\xc3\x0f\x74\x09\xff\x14\x25\x20\x04\x00"
		"\x50\xeb\x03\xff\x50\xfd",
		"\x49\x89\x29\x49\x8b\xea\xff\x50\xfd",
	};
	static const size_t length[] = { 13, 12, 9, 26, 9 };
	static const bool is[] = { true, false, true, true, false };
	for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		sbcl(LEAF);
		at_code(MAIN - 12, "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90", 12);
		at_code(MAIN - length[i], call[i], length[i]);
		ends(is[i] ? WALK_COMPLETE : WALK_CALLER_UNSURE, "a call");
	}
}

Test(owner_sbcl, before_sbcls_call_the_frame_pointer_is_the_callees)
{
	static const char *const before[] = { PAIR, PAIR "\xb8\x02\xd0\x2c\x50",
					      PAIR "\x8d\x58\xf5" };
	static const char *const behind[] = { "\xe8\x00\x01\x00\x00", "\xff\xd0",
					      "\xf6\xc3\x0f\x74\x07\xe8\x00\x00\x00\x00" };
	static const size_t length[] = { 7, 12, 10 }, rest[] = { 5, 2, 10 };

	for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		sbcl_callee(LEAF);
		at_code(LEAF - length[i], before[i], length[i]);
		at_code(LEAF, behind[i], rest[i]);
		ends(WALK_COMPLETE, "ahead");
	}
	sbcl(LEAF);
	at_code(LEAF - 10, PAIR, 7);
	ends(WALK_CALLER_UNSURE, "by code that is not known");
}

Test(owner_sbcl, the_return_address_is_on_top_where_sbcls_function_begins)
{
	static const char *const jump[] = { "\x8f\x45\x08", "\xff\x60\xfd",
					    "\x48\x8b\x05\xe9\xff\xff\xff\xff\x60\xfd",
					    "\x48\x8b\x40\xf9\xff\x60\xfd",
					    "\xff\x25\x10\x00\x00\x00" };
	static const size_t length[] = { 3, 3, 10, 7, 6 };

	for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		sbcl_callee(LEAF);
		at_code(LEAF, jump[i], length[i]);
		*above(0) = MAIN;
		ends(WALK_COMPLETE, "a function, or what jumps to one");
	}
}

Test(owner_sbcl, a_routine_of_sbcl_returns_behind_the_call_that_leads_to_it)
{
	for (uint64_t n = 0; n < 4; n++) {
		sbcl(LEAF);
		calls(SECOND, ROUTINE);
		*above(2) = 0;
		*above((unsigned)n) = SECOND;
		leads_over_second("a direct call");
	}
	sbcl(LEAF);
	at_code(SECOND - 7, "\xff\x14\x25\x20\x00\x40\x00", 7);
	image[0x20] = ROUTINE & 0xff;
	image[0x21] = ROUTINE >> 8 & 0xff;
	memcpy(image + 0x22, "\x40\x00\x00\x00\x00\x00", 6);
	leads_over_second("by a word");
	sbcl(LEAF);
	calls(SECOND, LEAF + 8);
	ends(WALK_COMPLETE, "to elsewhere");
	sbcl(LEAF);
	calls(SECOND, ROUTINE);
	at_code(ROUTINE, "\x8f\x45\x08", 3);
	ends(WALK_COMPLETE, "to a part of a function, which has its own frame");
	sbcl_callee(LEAF);
	at_code(SECOND - 12, PAIR, 7);
	calls(SECOND, ROUTINE);
	*at(w.fp + 8) = 0;
	leads_over_second("as a function is called");
}

Test(owner_sbcl, a_routine_of_sbcl_may_be_called_by_one_without_a_frame)
{
	sbcl(LEAF);
	calls(CODE + 0x20, ROUTINE);
	calls(SECOND, CODE + 0x10);
	*above(0) = CODE + 0x20;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE, "%d", w.reason);
	cr_assert_eq(w.count, 4, "%u", w.count);
	cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, 0x20);
	cr_assert_eq(w.words[2] & SAMPLE_FRAME_OFFSET_MASK, SECOND - CODE);
}

Test(owner_sbcl, many_values_of_sbcl_are_returned_below_where_rbx_points)
{
	sbcl(LEAF);
	at_code(LEAF - 4, "\x48\x8b\x6d\x00\xff\x73\xf8\xc3", 8);
	w.regs[UNWIND_REG_RBX] = w.sp + 32;
	calls(SECOND, CALLEE);
	*above(3) = SECOND;
	leads_over_second("values");
}
