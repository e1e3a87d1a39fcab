/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's code that lowers RSP further than its frame (bpf/hotspot/hotspot_lowered.h). */
/* First, since the fixture's variable has the name of the parameters. */
#include "bpf/hotspot/hotspot_lowered.h"
#include "tests/unit/walk_fixture.h"

#define BACK (MADE + 0x600) /* where a call returns to */

static struct hotspot_walk p;

/* Code before and after a call, with instructions that do not matter in between. */
static void code(const char *before, size_t before_bytes, const char *after, size_t after_bytes)
{
	memset(made, 0x90, sizeof(made));
	memcpy(made + 0x600 - 64, before, before_bytes);
	memcpy(made + 0x600 - 5, "\xe8\x00\x10\x00", 5);
	memcpy(made + 0x600, after, after_bytes);
}
#define CODE_IS(before, after) code(before, sizeof(before) - 1, after, sizeof(after) - 1)

static uint64_t after(void)
{
	return hotspot_after(&w, &p, BACK);
}

/* A walk whose leaf is generated code with an empty stack. */
static void begin(void)
{
	memset(&p, 0, sizeof(p));
	without_rows(LEAF);
	p.heap[0] = (struct hotspot_heap){ .start = MADE, .end = MADE + sizeof(made) };
	p.heaps = 1;
	w.pc = MADE + 0x200;
	w.fp = 0;
}

Test(hotspot_lowered, slow_paths_tell_what_they_saved_and_where_they_go_on)
{
	begin();
	CODE_IS("\x48\x83\xec\x40", "\x48\x8b\x04\x24\x48\x83\xc4\x40\xe9\xf3\xfe\xff\xff");
	cr_assert_eq(HOTSPOT_RAISED(after()), 0x40);
	cr_assert_eq(HOTSPOT_JUMPED(after()), 0x100);
	cr_assert_not(after() & HOTSPOT_IN_LINE);
	CODE_IS("\x48\x81\xec\x40\x01\x00\x00", "\x90\x48\x81\xc4\x40\x01\x00\x00\xeb\xc6");
	cr_assert_eq(HOTSPOT_RAISED(after()), 0x140);
	cr_assert_eq(HOTSPOT_JUMPED(after()), 48);
	CODE_IS("\x90", "\xeb\xee");
	cr_assert_eq(after(), 16ull << 32, "nothing was saved");
	CODE_IS("\x90", "\x48\x8b\xd8\xeb\xeb");
	cr_assert_eq(after(), 16ull << 32, "the result is moved");
	tables_free(t);
}

Test(hotspot_lowered, other_code_saved_nothing)
{
	begin();
	CODE_IS("\x90", "\x48\x83\xc4\x40\xe9\xf7\xfe\xff\xff");
	cr_assert_eq(after(), 0, "RSP was not lowered");
	CODE_IS("\x48\x83\xec\x48", "\x48\x83\xc4\x40\xe9\xf7\xfe\xff\xff");
	cr_assert_eq(after(), 0, "by another number");
	CODE_IS("\x48\x83\xec\x40", "\x90\x48\x83\xc4\x40\x5d\xc3");
	cr_assert_eq(after(), 0, "the end of a method");
	CODE_IS("\x48\x83\xec\x40", "\x90\x48\x83\xc4\x40\xe9\x00\x01\x00\x00");
	cr_assert_eq(after(), 0, "a jump ahead");
	CODE_IS("\x48\x83\xec\x43", "\x48\x83\xc4\x43\xeb\x80");
	cr_assert_eq(after(), 0, "no words");
	cr_assert_eq(hotspot_after(&w, &p, 0x1000), 0, "unreadable");
	tables_free(t);
}

Test(hotspot_lowered, pops_after_a_call_tell_what_was_pushed)
{
	begin();
	CODE_IS("", "\x58\xc3");
	cr_assert_eq(after(), 8 | HOTSPOT_IN_LINE);
	CODE_IS("", "\x41\x5d\xc3");
	cr_assert_eq(after(), 8 | HOTSPOT_IN_LINE);
	CODE_IS("", "\x5f\x5f\xc3");
	cr_assert_eq(after(), 16 | HOTSPOT_IN_LINE);
	CODE_IS("", "\x5f\x5d\xc3");
	cr_assert_eq(after(), 8 | HOTSPOT_IN_LINE);
	CODE_IS("", "\x5d\xc3");
	cr_assert_eq(after(), 0, "the end of a method");
	CODE_IS("", "\x5a\xeb\xed");
	cr_assert_eq(after(), 8 | HOTSPOT_IN_LINE | 16ull << 32, "and jumps");
	tables_free(t);
}

Test(hotspot_lowered, compiled_code_returns_to_the_nearest_call)
{
	for (unsigned i = 0; i < 20; i++) {
		begin();
		CODE_IS("", "");
		for (unsigned k = 0; k < 20; k++)
			*at(w.sp + k * 8) = k & 1 ? MADE + 0x300 : STACK;
		*at(w.sp + i * 8) = BACK;
		*at(w.sp + 22 * 8) = BACK;
		p.lowered = HOTSPOT_ASKS;
		cr_assert_eq(hotspot_above(&w, &p, w.sp), i < HOTSPOT_PUSHES ? 1 + i * 8 : 0, "%u",
			     i);
		tables_free(t);
	}
}

Test(hotspot_lowered, a_walk_searches_a_limited_number_of_times)
{
	begin();
	CODE_IS("", "");
	*at(w.sp + 8) = BACK;
	p.lowered = 0;
	for (unsigned i = 0; i < HOTSPOT_SEARCHES; i++)
		cr_assert_eq(hotspot_above(&w, &p, w.sp), 1 + 8);
	cr_assert_eq(hotspot_above(&w, &p, w.sp), 0);
	cr_assert_eq(hotspot_above(&w, &p, w.sp + 8), 1, "it needs no search");
	tables_free(t);
}

Test(hotspot_lowered, saved_registers_count_more_than_the_nearest_call)
{
	begin();
	CODE_IS("", "");
	w.exact = 0;
	*at(w.sp) = *at(w.sp + 0x40) = BACK;
	p.lowered = 0x40;
	cr_assert_eq(hotspot_above(&w, &p, w.sp), 1 + 0x40);
	p.lowered = 0x38;
	cr_assert_eq(hotspot_above(&w, &p, w.sp), 1 + 0x40, "one more register was pushed");
	p.lowered = 0x20;
	cr_assert_eq(hotspot_above(&w, &p, w.sp), 1);
	w.exact = 1;
	p.lowered = 0x40;
	cr_assert_eq(hotspot_above(&w, &p, w.sp), 1, "in the leaf it may not be saved yet");
	tables_free(t);
}

Test(hotspot_lowered, stubs_are_found_by_the_call_of_their_entry)
{
	const int32_t to = (int32_t)(MADE + 0x100 - BACK);

	for (unsigned i = 0; i < 70; i++) {
		for (int pushes = 0; pushes < 2; pushes++) {
			begin();
			CODE_IS("", "");
			for (unsigned k = 0; k < 70; k++)
				*at(w.sp + k * 8) = MADE + 0x300;
			*at(w.sp + i * 8) = BACK;
			memcpy(made + 0x600 - 4, &to, 4);
			made[0x100] = pushes ? 0x55 : 0x90;
			cr_assert_eq(hotspot_stub_above(&w, &p, w.pc),
				     i < HOTSPOT_STUB_WORDS ? i * 8 + 8 + (pushes && i) : 0, "%u",
				     i);
			w.fp = w.sp + i * 8 - 8;
			if (i)
				cr_assert_eq(hotspot_stub_above(&w, &p, w.pc), i * 8 + 9);
			w.fp = 0;
			made[0x600 - 2]++;
			cr_assert_eq(hotspot_stub_above(&w, &p, w.pc), 0, "a call of other code");
			tables_free(t);
		}
	}
}
