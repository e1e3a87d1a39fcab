/* SPDX-License-Identifier: Apache-2.0 */
/* V8's builtins in a small file (v8blob.h), intact and with errors. */
#include <criterion/criterion.h>
#include "common/names/runtime/v8/builtins.h"
#include "tests/unit/v8blob.h"

static struct v8blob blob;
static struct symfile *file;

static int find(struct v8_builtins **ret)
{
	struct elfview im;

	cr_assert_eq(symfile_open_bytes((struct span){ blob.bytes, sizeof(blob.bytes) }, &file), 0);
	elfview_init(&im, file);

	const int r = v8_builtins_find(&im, ret);

	elfview_done(&im);
	return r;
}

static void expect_none(const char *why)
{
	struct v8_builtins *b = NULL;

	cr_expect_eq(find(&b), SYMFILE_NONE, "%s", why);
	v8_builtins_free(b);
	symfile_free(file);
}

static bool is_named(const struct v8_builtins *b, uint32_t offset, const char *name)
{
	char got[V8_BUILTIN_NAME] = "";
	const int r = v8_builtins_name(b, file, V8BLOB_BASE + V8BLOB_CODE + offset, got);

	return name ? r == 0 && strcmp(got, name) == 0 : r == SYMFILE_NONE;
}

Test(v8_builtins, are_found_by_their_tables)
{
	static const uint8_t strides[] = { 8, 12, 16, 28, 32 };

	for (size_t i = 0; i < sizeof(strides); i++) {
		struct v8_builtins *b;

		v8blob_make(&blob, strides[i]);
		cr_assert_eq(find(&b), 0, "%u bytes", strides[i]);
		cr_expect_eq(b->start, V8BLOB_BASE + V8BLOB_CODE);
		cr_expect_eq(b->end - b->start, (V8BLOB_COUNT - 1) * V8BLOB_ROOM + V8BLOB_BYTES);
		cr_expect_eq(b->count, V8BLOB_COUNT);
		cr_expect_eq(b->entry, V8BLOB_ENTRY);
		cr_expect_eq(b->handlers, V8BLOB_HANDLERS);
		cr_expect(is_named(b, 0, "Builtins_DeoptimizationEntry_Eager"));
		cr_expect(is_named(b, 3 * V8BLOB_ROOM + V8BLOB_BYTES - 1, "Builtins_Name3"));
		cr_expect(is_named(b, 3 * V8BLOB_ROOM + V8BLOB_BYTES, NULL), "room is nameless");
		cr_expect(is_named(b, 251 * V8BLOB_ROOM, "Builtins_Op1Handler"));
		cr_expect(is_named(b, V8BLOB_COUNT * V8BLOB_ROOM, NULL));
		v8_builtins_free(b);
		symfile_free(file);
	}
}

Test(v8_builtins, code_that_is_not_v8s_is_refused)
{
	v8blob_make(&blob, 12);
	blob.bytes[V8BLOB_CODE + 100 * V8BLOB_ROOM - 1] = 0x90;
	expect_none("room between two builtins is code");
}

Test(v8_builtins, names_that_are_not_v8s_are_refused)
{
	v8blob_make(&blob, 12);
	blob.bytes[blob.name[3]] = '-';
	expect_none("no name of C++");
	v8blob_make(&blob, 12);
	v8blob_entry(&blob, 3, V8BLOB_BASE + blob.name[3], 99);
	expect_none("no kind");
	v8blob_make(&blob, 12);
	v8blob_entry(&blob, 0, V8BLOB_BASE + blob.name[3], 0);
	expect_none("another one is the first");
	v8blob_make(&blob, 12);
	v8blob_entry(&blob, V8BLOB_COUNT, V8BLOB_BASE + blob.name[255], 6);
	expect_none("a handler too many");
	v8blob_make(&blob, 12);
	v8blob_entry(&blob, V8BLOB_COUNT - 2, 0, 0);
	expect_none("a handler is missing");
	v8blob_make(&blob, 12);
	v8blob_put(&blob, V8BLOB_LAYOUT + 255 * 12, 0, 8);
	expect_none("the layout ends before");
}

/* Some compilers fill entries only when the program starts. */
Test(v8_builtins, a_name_that_the_program_computes_is_unknown)
{
	struct v8_builtins *b;

	v8blob_make(&blob, 12);
	v8blob_entry(&blob, 3, 0, 0);
	cr_assert_eq(find(&b), 0);
	cr_expect_eq(b->entry, V8BLOB_ENTRY);
	cr_expect(is_named(b, 3 * V8BLOB_ROOM, NULL));
	cr_expect(is_named(b, 4 * V8BLOB_ROOM, "Builtins_Name4"));
	v8_builtins_free(b);
	symfile_free(file);
}

Test(v8_builtins, tables_beside_the_metadata_are_no_part_of_it)
{
	struct v8_builtins *b;

	v8blob_make(&blob, 12);
	v8blob_entry(&blob, V8BLOB_COUNT, V8BLOB_BASE + blob.name[V8BLOB_COUNT], 0);
	v8blob_entry(&blob, UINT32_MAX, V8BLOB_BASE + blob.name[V8BLOB_COUNT], 0);
	cr_assert_eq(find(&b), 0);
	cr_expect_eq(b->count, V8BLOB_COUNT);
	cr_expect_eq(b->entry, V8BLOB_ENTRY);
	v8_builtins_free(b);
	symfile_free(file);
}

Test(v8_builtins, two_more_numbers_may_follow_the_layout)
{
	struct v8_builtins *b;

	v8blob_make(&blob, 8);
	v8blob_put(&blob, V8BLOB_LAYOUT + V8BLOB_COUNT * 8, V8BLOB_COUNT * V8BLOB_ROOM, 4);
	v8blob_put(&blob, V8BLOB_LAYOUT + V8BLOB_COUNT * 8 + 4, 0x300, 4);
	v8blob_put(&blob, V8BLOB_LAYOUT + V8BLOB_COUNT * 8 + 8, 1, 4);
	cr_assert_eq(find(&b), 0);
	cr_expect_eq(b->count, V8BLOB_COUNT);
	cr_expect_eq(b->end - b->start, (V8BLOB_COUNT - 1) * V8BLOB_ROOM + V8BLOB_BYTES);
	v8_builtins_free(b);
	symfile_free(file);
}

Test(v8_builtins, a_file_that_does_not_say_that_it_is_v8_is_not_searched)
{
	struct v8_builtins *b = NULL;

	v8blob_make(&blob, 12);
	cr_assert_eq(symfile_open_bytes((struct span){ blob.bytes, sizeof(blob.bytes) }, &file), 0);
	cr_expect_eq(v8_builtins_open(file, &b), SYMFILE_NONE);
	cr_expect_null(b);
	symfile_free(file);
}
