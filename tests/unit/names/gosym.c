/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "tests/unit/gotable.h"
#include "common/names/program/gosym.h"

static struct names names;

static struct gosym *open_made(enum go_kind kind, struct symfile **ret_file)
{
	static struct gotable g;
	struct gosym *s;

	g = (struct gotable){ .kind = kind };
	gotable_make(&g);
	cr_assert_eq(symfile_open_bytes((struct span){ .data = g.bytes, .len = sizeof(g.bytes) },
					ret_file),
		     0);
	cr_assert_eq(gosym_open(*ret_file, &s), 0);
	return s;
}

static bool is(struct str s, const char *want)
{
	return str_eq(s, str_from(want));
}

Test(gosym, inlined_calls_come_innermost_first)
{
	struct symfile *f;
	struct gosym *g = open_made(GO_1_26, &f);

	cr_assert_eq(gosym_lookup(g, GO_TEXT + 0x52, &names), 0);
	cr_assert_eq(names.count, 3u);
	cr_assert(is(names.calls[0].name, "main.inner"));
	cr_assert(is(names.calls[0].source, "/src/b.go"));
	cr_assert_eq(names.calls[0].line, 5u);
	cr_assert_eq(names.calls[0].start_line, 4u);
	cr_assert(is(names.calls[1].name, "main.middle"));
	cr_assert_eq(names.calls[1].line, 7u);
	cr_assert(is(names.calls[2].source, "/src/a.go"));
	cr_assert_eq(names.calls[2].line, 22u);
	cr_assert(gosym_bytes(g) > 0);
	gosym_free(g);
	symfile_free(f);
}

Test(gosym, shapes_of_generic_functions_are_shown_as_dots)
{
	struct symfile *f;
	struct gosym *g = open_made(GO_1_20, &f);

	cr_assert_eq(gosym_lookup(g, GO_TEXT + 0x40, &names), 0);
	cr_assert_eq(names.count, 1u);
	cr_assert(is(names.calls[0].name, "main.work[...]"));
	cr_assert(is(names.calls[0].system_name, "main.work[go.shape.int]"));
	gosym_free(g);
	symfile_free(f);

	/* Before Go 1.18, brackets belonged to arrays. */
	g = open_made(GO_1_16, &f);
	cr_assert_eq(gosym_lookup(g, GO_TEXT + 0x40, &names), 0);
	cr_assert(is(names.calls[0].name, "main.work[go.shape.int]"));
	gosym_free(g);
	symfile_free(f);
}

Test(gosym, functions_without_lines_are_left_to_others)
{
	struct symfile *f;
	struct gosym *g = open_made(GO_1_18, &f);

	cr_assert_eq(gosym_lookup(g, GO_TEXT + 0x80, &names), SYMFILE_NONE);
	cr_assert_eq(gosym_lookup_name(g, GO_TEXT + 0x80, &names), 0);
	cr_assert_eq(names.count, 1u);
	cr_assert(is(names.calls[0].name, "crosscall"));
	cr_assert_eq(names.calls[0].source.len, 0u);
	cr_assert_eq(gosym_lookup(g, GO_TEXT + 0xc0, &names), SYMFILE_NONE);
	cr_assert_eq(gosym_lookup_name(g, GO_TEXT - 1, &names), SYMFILE_NONE);
	gosym_free(g);
	symfile_free(f);
}
