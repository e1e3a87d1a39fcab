/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a kept object, beside the object itself. */
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

static struct object_names *keep(const struct runtime_object *o, struct object_sources *s,
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
	struct object_sources sources = { .seed = 7 };
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
	object_sources_done(&sources);
	drop(o);
}

Test(object_names, names_are_told_as_they_were_and_a_source_is_there_once)
{
	static const char *const all[][3] = { { "m.C.f", "C.f", "/srv/m.py" },
					      { "other", "f", "/srv/m.py" },
					      { "", "", "" },
					      { "x.g", "g", "/srv/x.py" } };
	struct object_sources sources = { 0 };
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
	object_sources_done(&sources); /* they share them on */
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
