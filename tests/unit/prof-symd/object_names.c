/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a kept object, beside the object itself. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include "tools/prof-symd/objects/object_names.h"

static void set(struct runtime_text *t, const char *s)
{
	t->len = 0;
	runtime_append(t, s, strlen(s));
}

static struct runtime_object *object(const char *name, const char *system, const char *source)
{
	struct runtime_object *o = calloc(1, sizeof(*o));

	cr_assert(o);
	o->lines = BUF_INIT(0);
	o->start_line = 40;
	set(&o->name, name);
	set(&o->system_name, system);
	set(&o->source, source);
	return o;
}

static void drop(struct runtime_object *o)
{
	runtime_object_done(o);
	free(o);
}

static struct object_names *keep(const struct runtime_object *o, struct object_names_sources *s,
				 size_t *bytes)
{
	struct object_names *k;

	cr_assert_eq(object_names_new(o, s, &k, bytes), 0);
	return k;
}

Test(object_names, every_position_has_the_line_of_the_object)
{
	static const struct runtime_line odd[] = {
		{ 1, 40 },
		{ 2, 0 },
		{ 130, 41 },
		{ 131, 1 },
		{ 20000, INT32_MAX },
		{ 20001, 0 },
		{ 20002, UINT32_MAX },
		{ 0xfffffe, 3 },
	};
	struct runtime_object *o = object("m.f", "f", "/m.py");
	struct object_names_sources sources = { .seed = 7 };
	static struct names names;
	size_t bytes;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		cr_assert_eq(runtime_add_line(o, odd[i].end, odd[i].line), 0);
	struct object_names *k = keep(o, &sources, &bytes);
	for (uint32_t position = 0; position < 0xffffff; position += position < 30000 ? 1 : 997) {
		names_reset(&names);
		object_names_tell(k, position, &names);
		cr_assert_eq(names.calls[0].line,
			     runtime_line((const struct runtime_line *)o->lines.data,
					  o->lines.len / sizeof(struct runtime_line), position),
			     "position %u", position);
	}
	names_reset(&names);
	object_names_tell(k, RUNTIME_POSITION_MASK, &names);
	cr_expect_eq(names.calls[0].line, 40);
	object_names_free(k);
	object_names_sources_done(&sources);
	drop(o);
}

Test(object_names, names_are_told_as_they_were_and_a_source_is_there_once)
{
	static const char *const all[][3] = { { "m.C.f", "C.f", "/srv/m.py" },
					      { "other", "f", "/srv/m.py" },
					      { "", "", "" },
					      { "x.g", "g", "/srv/x.py" } };
	struct object_names_sources sources = { 0 };
	static struct names names;
	struct object_names *k[4];
	size_t bytes[4];

	for (size_t i = 0; i < 4; i++) {
		struct runtime_object *o = object(all[i][0], all[i][1], all[i][2]);

		o->hidden = i == 2;
		k[i] = keep(o, &sources, &bytes[i]);
		drop(o);
	}
	cr_expect_eq(bytes[0] - strlen("m.C.f"), bytes[3] - strlen("x.g"));
	cr_expect_lt(bytes[1] - strlen("otherf"), bytes[3] - strlen("x.g"));
	object_names_sources_done(&sources); /* they share them on */
	for (size_t i = 0; i < 4; i++) {
		names_reset(&names);
		object_names_tell(k[i], 3, &names);
		cr_expect_eq(names.count, 1);
		cr_expect(str_eq(names.calls[0].name, str_from(all[i][0])));
		cr_expect(str_eq(names.calls[0].system_name, str_from(all[i][1])));
		cr_expect(str_eq(names.calls[0].source, str_from(all[i][2])));
		cr_expect_eq(names.calls[0].start_line, 40);
		cr_expect_eq(names.calls[0].line, 0);
		cr_expect_eq(object_names_hidden(k[i]), i == 2);
		object_names_free(k[i]);
	}
}

Test(object_names, inlined_calls_are_told_from_the_innermost_one_on)
{
	struct runtime_object *o = object("outer", "outer", "/o.js");
	struct object_names_sources sources = { .seed = 7 };
	static struct names names;
	struct runtime_call calls[4];
	uint32_t one, two, none;
	size_t bytes;

	cr_assert_eq(runtime_add_inlined(o, 0, 41, STR_LIT("one"), STR_LIT("/i.js"), 7, &one), 0);
	cr_assert_eq(runtime_add_inlined(o, one, 9, STR_LIT("two"), STR_LIT(""), 0, &two), 0);
	cr_assert_eq(runtime_add_inlined(o, 99, 9, STR_LIT("odd"), STR_LIT(""), 0, &none), 0);
	cr_assert(one == 1 && two == 2 && none == 3);
	cr_assert_eq(runtime_add_line(o, 10, 40), 0);
	cr_assert_eq(runtime_add_line_in(o, 20, 50, two), 0);
	cr_assert_eq(runtime_add_line_in(o, 30, 50, one), 0);
	cr_assert_eq(runtime_add_line(o, 40, 50), 0);

	struct object_names *k = keep(o, &sources, &bytes);

	static const struct {
		uint32_t position;
		unsigned count;
		const char *innermost;
		uint64_t line, last;
	} expected[] = { { 5, 1, "outer", 40, 40 }, { 10, 3, "two", 50, 41 },
			 { 29, 2, "one", 50, 41 },  { 30, 1, "outer", 50, 50 },
			 { 40, 1, "outer", 0, 0 },  { RUNTIME_POSITION_MASK, 1, "outer", 40, 40 } };

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		names_reset(&names);
		object_names_tell(k, expected[i].position, &names);
		cr_assert_eq(names.count, expected[i].count);
		cr_assert(str_eq(names.calls[0].name, str_from(expected[i].innermost)));
		cr_assert_eq(names.calls[0].line, expected[i].line);
		cr_assert_eq(names.calls[names.count - 1].line, expected[i].last);
		cr_assert(str_eq(names.calls[names.count - 1].source, STR_LIT("/o.js")));
		/* The same if it is not kept. */
		cr_assert_eq(runtime_calls(o, expected[i].position, calls, 4), names.count);
		cr_assert(str_eq(calls[0].name, names.calls[0].name));
		for (unsigned n = 0; n < names.count; n++)
			cr_assert_eq(calls[n].line, names.calls[n].line);
	}
	names_reset(&names);
	object_names_tell(k, 10, &names);
	cr_assert(names.calls[1].line == 9 && names.calls[1].start_line == 7 &&
		  str_eq(names.calls[1].source, STR_LIT("/i.js")));
	cr_assert_eq(runtime_calls(o, 10, calls, 2), 2, "the innermost and the object");
	object_names_free(k);
	object_names_sources_done(&sources);
	drop(o);
}

Test(object_names, more_inlined_calls_than_are_kept_belong_to_their_callers)
{
	struct runtime_object *o = object("outer", "outer", "/o.js");
	uint32_t last = 0;

	for (int i = 0; i < RUNTIME_INLINED; i++)
		cr_assert_eq(runtime_add_inlined(o, last, 1, STR_LIT("f"), STR_LIT(""), 0, &last),
			     0);
	cr_assert_eq(last, RUNTIME_INLINED);
	cr_assert_eq(runtime_add_inlined(o, 5, 1, STR_LIT("f"), STR_LIT(""), 0, &last), 0);
	cr_assert_eq(last, 5);
	cr_assert_eq(runtime_add_line_in(o, 1, 1, RUNTIME_INLINED), 0);

	static struct runtime_call calls[NAMES_MAX];

	cr_assert_eq(runtime_calls(o, 0, calls, NAMES_MAX), NAMES_MAX);
	cr_assert(str_eq(calls[NAMES_MAX - 1].name, STR_LIT("outer")));
	drop(o);
}
