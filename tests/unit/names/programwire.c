/* SPDX-License-Identifier: Apache-2.0 */
/* False answers of a worker. */
#include <criterion/criterion.h>
#include <string.h>
#include "common/names/program/program.h"
#include "common/names/program/programwire.h"

static struct names names;

static bool takes(const struct programwire_head *h, const struct programwire_call *c,
		  const char *text)
{
	struct programwire_answer answer;
	uint8_t bytes[sizeof(*h) + sizeof(*c) + 16];
	size_t n = sizeof(*h);

	memcpy(bytes, h, sizeof(*h));
	if (c) {
		memcpy(bytes + n, c, sizeof(*c));
		n += sizeof(*c);
	}
	memcpy(bytes + n, text, 8);
	n += h->text_len < 8 ? h->text_len : 8;
	return programwire_take((struct span){ .data = bytes, .len = n }, &answer, &names);
}

Test(programwire, answers_that_lie_are_refused)
{
	const struct programwire_head h = { .count = 1, .text_len = 8 };
	const struct programwire_call c = { .line = 1, .name = { 2, 6 } };
	struct programwire_head oh = h;
	struct programwire_call oc = c;

	cr_assert(takes(&h, &c, "abcdefgh"));
	cr_assert(str_eq(names.calls[0].name, STR_LIT("cdefgh")));
	cr_assert(!takes(&h, &c, "abc\0efgh"));
	cr_assert(!takes(&h, NULL, "abcdefgh"));
	oh.text_len = 9;
	cr_assert(!takes(&oh, &c, "abcdefgh"));
	oh = h;
	oh.count = NAMES_MAX + 1;
	cr_assert(!takes(&oh, &c, "abcdefgh"));
	oh = h;
	oh.verdict = SYMFILE_NONE;
	cr_assert(!takes(&oh, &c, "abcdefgh"));
	oc.name = (struct calltext){ 3, 6 };
	cr_assert(!takes(&h, &oc, "abcdefgh"));
	oc.name = (struct calltext){ UINT32_MAX, 2 };
	cr_assert(!takes(&h, &oc, "abcdefgh"));
	oc = c;
	oc.line = 1ull << 40;
	cr_assert(!takes(&h, &oc, "abcdefgh"));
}

Test(programwire, a_description_that_leads_out_of_what_is_read_is_refused)
{
	struct {
		struct programwire_head head;
		struct runtime_build build;
	} a = { .head.flags = PROGRAMWIRE_BUILD };
	const struct span bytes = { .data = (const uint8_t *)&a, .len = sizeof(a) };
	static struct programwire_answer answer;
	uint16_t offsets[RUNTIME_OWN_NAMING / 2];

	cr_assert(!programwire_take(bytes, &answer, &names), "no runtime");
	a.build.config.runtime = RUNTIME_PYTHON;
	cr_assert(programwire_take(bytes, &answer, &names), "not a known build");
	a.build.known = true;
	cr_assert(!programwire_take(bytes, &answer, &names), "nothing is read of an object");
	memset(offsets, 0xff, sizeof(offsets));
	memcpy(a.build.naming, offsets, sizeof(a.build.naming));
	cr_assert(!programwire_take(bytes, &answer, &names));
	memset(a.build.name, 'x', sizeof(a.build.name));
	a.build.known = false;
	cr_assert(!programwire_take(bytes, &answer, &names), "a name without an end");
}

Test(programwire, answers_that_came_ahead_are_found_by_their_offset)
{
	struct {
		struct programwire_more more;
		struct programwire_head head;
	} a[2] = { { .more = { .offset = 7, .size = sizeof(a[0].head) }, .head.address = 70 },
		   { .more = { .offset = 8, .size = sizeof(a[0].head) }, .head.address = 80 } };
	struct span bytes = { .data = (const uint8_t *)a, .len = sizeof(a) };
	static struct programwire_answer answer;

	cr_assert(programwire_find(bytes, 8, &answer, &names));
	cr_assert_eq(answer.head.address, 80);
	cr_assert(programwire_find(bytes, 7, &answer, &names));
	cr_assert_eq(answer.head.address, 70);
	cr_assert(!programwire_find(bytes, 9, &answer, &names));
	bytes.len--;
	cr_assert(!programwire_find(bytes, 8, &answer, &names), "it is cut");
	a[0].more.size = UINT32_MAX;
	cr_assert(!programwire_find(bytes, 7, &answer, &names));
	cr_assert(!programwire_find((struct span){ 0 }, 7, &answer, &names));
}
