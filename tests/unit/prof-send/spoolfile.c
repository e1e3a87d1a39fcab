/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/queue/spoolfile.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct spoolfile file = {
	.key = 0x0123456789abcdef,
	.serial = 42,
	.facts = { .id = 7, .samples = 99, .size = 1000 },
	.len = 400,
	.crc = 0xdeadbeef,
};

Test(spoolfile, a_head_is_read_as_it_was_written)
{
	uint8_t head[SPOOLFILE_HEAD];
	struct spoolfile f;

	spoolfile_encode(&file, head);
	cr_assert(spoolfile_parse((struct span){ .data = head, .len = sizeof(head) }, &f));
	cr_assert_eq(memcmp(&f, &file, sizeof(f)), 0);
}

Test(spoolfile, any_other_byte_is_noticed)
{
	uint8_t head[SPOOLFILE_HEAD];
	struct spoolfile f;

	for (size_t i = 0; i < sizeof(head); i++) {
		spoolfile_encode(&file, head);
		head[i] ^= 0x10;
		cr_assert_not(
			spoolfile_parse((struct span){ .data = head, .len = sizeof(head) }, &f));
	}
	cr_assert_not(spoolfile_parse((struct span){ .data = head, .len = sizeof(head) - 1 }, &f));
}

Test(spoolfile, only_names_of_ours_are_taken)
{
	static const char *const foreign[] = { "",
					       "notes.txt",
					       "0123456789abcdef-000000000000002a",
					       "0123456789abcdef-000000000000002a.otlp.part.part",
					       "0123456789ABCDEF-000000000000002a.otlp",
					       "0123456789abcdef_000000000000002a.otlp",
					       "0123456789abcde-0000000000000002a.otlp",
					       "../456789abcdef-000000000000002a.otlp" };
	char name[SPOOLFILE_NAME];
	uint64_t key, serial;
	bool part;

	spoolfile_name(file.key, file.serial, name);
	cr_assert_str_eq(name, "0123456789abcdef-000000000000002a.otlp");
	cr_assert(spoolfile_parse_name(name, &key, &serial, &part));
	cr_assert(key == file.key && serial == file.serial && !part);
	cr_assert(spoolfile_parse_name("0123456789abcdef-000000000000002a.otlp.part", &key, &serial,
				       &part));
	cr_assert(part);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		cr_assert_not(spoolfile_parse_name(foreign[i], &key, &serial, &part), "%s",
			      foreign[i]);
}
