/* SPDX-License-Identifier: Apache-2.0 */
/* Code that a stub called (bpf/walk/stub.h). */
#include "tests/unit/walk_fixture.h"

/* CPython 3.14's stub. It pushes r15 to r12 and rbx. */
static const char cpython[] =
	"\x41\x57\x41\x56\x41\x55\x41\x54\x53\x49\x89\xfc\x49\x89\xf5\x49\x89\xd6"
	"\xe8\x0a\x00\x00\x00\x5b\x41\x5c\x41\x5d\x41\x5e\x41\x5f\xc3";
/* A stub with room, which pushes rbp and rbx. */
static const char other[] = "\x55\x53\x48\x83\xec\x18\xe8\x07\x00\x00\x00"
			    "\x48\x83\xc4\x18\x5b\x5d\xc3";

/* A trace at MADE + 0x100 with a frame of this many words. Each leads to the stub, but none from a
 * call. stub: at MADE; pops: the number of words that it pops. */
static void trace(const char *stub, size_t bytes, uint64_t back, unsigned words, unsigned pops)
{
	without_rows(LEAF);
	memset(made, 0x90, sizeof(made));
	memcpy(made, stub, bytes);
	w.pc = MADE + 0x100;
	w.fp = w.sp + 1600;
	for (unsigned i = 0; i <= words; i++)
		*at(w.sp + 8 * i) = MADE + back;
	for (unsigned i = 1; i <= pops; i++)
		*at(w.sp + 8 * (words + i)) = i;
	*at(w.sp + 8 * (words + pops + 1)) = MAIN;
}

static bool leads_to_main_by(uint32_t below)
{
	const uint64_t stub = walk_stub(&w, w.sp, below);

	if (!stub) {
		tables_free(t);
		return false;
	}
	cr_assert_eq(walk_by_stub(&w, stub, below), 0);
	cr_assert_eq(w.pc, MAIN);
	run();
	return w.reason == WALK_COMPLETE;
}

static bool leads_to_main(void)
{
	return leads_to_main_by(0);
}

Test(stub, its_caller_is_found_behind_any_small_frame)
{
	for (unsigned words = 0; words < WALK_STUB_WORDS; words++) {
		trace(cpython, sizeof(cpython) - 1, 0x17, words, 5);
		const uint64_t sp = w.sp;

		cr_expect(leads_to_main(), "%u words", words);
		cr_expect_eq(w.sp, sp + 8 * (words + 7));
		cr_expect_eq(w.fp, sp + 1600, "RBP is left alone");
		cr_expect_eq(w.tracked, WALK_TRACKS_RBX);
		cr_expect_eq(w.tracked_at, sp + 8 * (words + 1));
	}
	trace(cpython, sizeof(cpython) - 1, 0x17, WALK_STUB_WORDS, 5);
	cr_expect_not(leads_to_main());
}

Test(stub, it_may_save_rbp_and_have_room)
{
	trace(other, sizeof(other) - 1, 11, 2, 5);
	const uint64_t sp = w.sp;

	cr_expect(leads_to_main());
	cr_expect_eq(w.fp, 5);
	cr_expect_eq(w.tracked_at, sp + 8 * (2 + 4));
}

Test(stub, a_trace_may_push_rbp)
{
	trace(cpython, sizeof(cpython) - 1, 0x17, 3, 5);
	const uint64_t frame = w.fp;

	*at(w.sp + 16) = frame;
	w.fp = 0x123456;
	cr_expect(leads_to_main());
	cr_expect_eq(w.fp, frame);
}

Test(stub, c_code_that_calls_all_traces_is_found_below_rbp)
{
	for (unsigned words = 0; words <= WALK_STUB_WORDS; words++)
		for (unsigned call = 0; call < 2; call++) {
			trace(cpython, sizeof(cpython) - 1, 0x17, WALK_STUB_WORDS, 0);
			w.fp = w.sp + 8 * (words + 7);
			*at(w.fp - 56) = MAIN;
			if (call)
				at_code(MAIN - 2, "\xff\xd0", 2);
			cr_expect_eq(leads_to_main_by(7), call && words < WALK_STUB_WORDS);
		}
	trace(cpython, sizeof(cpython) - 1, 0x17, WALK_STUB_WORDS, 0);
	w.fp = w.sp + 48;
	cr_expect_not(leads_to_main_by(7), "below RSP");
}

Test(stub, changed_stubs_are_not_recognized)
{
	/* Any changed byte from the call on, except in numbers of registers: another register is
	 * popped then, or the same. */
	for (size_t i = 0x12; i < sizeof(cpython) - 1; i++) {
		trace(cpython, sizeof(cpython) - 1, 0x17, 1, 5);
		made[i] ^= 0x80;
		cr_expect_not(leads_to_main(), "byte %zu", i);
	}
	trace(cpython, sizeof(cpython) - 1, 0x17, 1, 5);
	*at(w.sp + 8 * 7) = LEAF;
	cr_expect_not(leads_to_main(), "its caller has no rows");
	trace(cpython, sizeof(cpython) - 1, 0x17, 1, 5);
	*at(w.sp + 8 * 7) = MADE + 0x200;
	cr_expect_not(leads_to_main(), "its caller is generated code");
	trace(cpython, sizeof(cpython) - 1, 0x17, 1, 5);
	w.sp = STACK + sizeof(stack) - 8;
	cr_expect_not(leads_to_main(), "the stack ends");
}
