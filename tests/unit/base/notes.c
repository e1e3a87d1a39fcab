/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <elf.h>
#include "common/base/bytes/notes.h"

static uint8_t bytes[256];
static size_t len;

static void add(const char *name, size_t name_len, uint32_t type, const char *content)
{
	const Elf64_Nhdr n = { .n_namesz = (uint32_t)name_len,
			       .n_descsz = (uint32_t)strlen(content),
			       .n_type = type };

	memcpy(bytes + len, &n, sizeof(n));
	memcpy(bytes + len + sizeof(n), name, name_len);
	len += sizeof(n) + ((name_len + 3) & ~3ull);
	memcpy(bytes + len, content, strlen(content));
	len += (strlen(content) + 3) & ~3ull;
}

static struct span all(void)
{
	return (struct span){ .data = bytes, .len = len };
}

Test(notes, a_note_is_found_by_its_name_and_its_type)
{
	struct span found;

	add("GNU", 4, 1, "abi");
	add("Go\0", 4, 4, "go/build/id");
	add("GNU", 4, 3, "build id");
	add("GNU", 4, 3, "second");
	cr_assert(notes_find(all(), "GNU", 3, 64, &found));
	cr_assert(found.len == 8 && memcmp(found.data, "build id", 8) == 0);
	cr_assert(notes_find(all(), "Go", 4, 64, &found));
	cr_assert(found.len == 11 && memcmp(found.data, "go/build/id", 11) == 0);
	cr_assert(!notes_find(all(), "GN", 3, 64, &found));
	cr_assert(!notes_find(all(), "GNU", 4, 64, &found));
}

Test(notes, contents_that_are_empty_or_too_long_are_passed_over)
{
	struct span found;

	add("GNU", 4, 3, "");
	add("GNU", 4, 3, "0123456789");
	add("GNU", 4, 3, "right");
	cr_assert(notes_find(all(), "GNU", 3, 8, &found));
	cr_assert(found.len == 5 && memcmp(found.data, "right", 5) == 0);
}

Test(notes, a_truncated_note_is_ignored)
{
	struct span rest, found;
	struct note n;

	add("GNU", 4, 3, "0123456");
	rest = (struct span){ .data = bytes, .len = len - 1 };
	cr_assert(notes_next(&rest, &n), "only its padding is missing");
	cr_assert_eq(n.content.len, 7);
	for (size_t cut = 2; cut <= len; cut++)
		cr_assert(!notes_find((struct span){ .data = bytes, .len = len - cut }, "GNU", 3,
				      64, &found));
	memset(bytes, 0xff, 8);
	cr_assert(!notes_find(all(), "GNU", 3, 64, &found), "lengths that overflow");
}
