/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks of a model, and the names in them. */
#include "tests/unit/model_fixture.h"

/* --- names --- */

static void escapes(struct str in, const char *out)
{
	struct buf b = BUF_INIT(0);

	cr_assert_eq(label_escape(&b, in), 0);
	cr_assert_eq(buf_append(&b, "", 1), 0);
	cr_assert_str_eq((char *)b.data, out);
	buf_done(&b);
}

Test(label, control_characters_and_invalid_utf8_are_escaped)
{
	escapes(STR_LIT("plain name(int)"), "plain name(int)");
	escapes(STR_LIT("a\nb\x1b[2J\x7f"), "a\\x0ab\\x1b[2J\\x7f");
	escapes(STR_LIT("Foo\\Bar"), "Foo\\Bar");
	escapes(STR_LIT("\xff\xc3"), "\\xff\\xc3");
	escapes(STR_LIT("grün \xe2\x80\xaexyz"), "grün \\xe2\\x80\\xaexyz");
	escapes(STR_LIT("a\xe2\x80\xa8z"), "a\\xe2\\x80\\xa8z");
	escapes(STR_LIT(""), "");
}

Test(label, frames_without_names_say_where_they_are)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	process(m, 1, 10, STR_LIT("p"));
	take(m, (struct msg){ .id = MSG_FILE,
			      .file = { .id = 1, .inode = 1, .path = STR_LIT("/lib/libx.so") } });
	take(m, (struct msg){ .id = MSG_FILE,
			      .file = { .id = 2, .inode = 2, .path = STR_LIT("[vdso]") } });
	take(m, (struct msg){
			.id = MSG_FRAME,
			.frame = { .id = 1, .file = 1, .offset = 0x1000, .address = 0x401000 } });
	take(m, (struct msg){ .id = MSG_FRAME, .frame = { .id = 2, .file = 1, .offset = 0x1000 } });
	take(m,
	     (struct msg){ .id = MSG_FRAME, .frame = { .id = 3, .offset = 0x7f00, .process = 1 } });
	take(m, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = 4,
					 .kind = MSG_FRAME_KERNEL,
					 .offset = 0xffffffff81000000 } });
	take(m, (struct msg){ .id = MSG_FRAME, .frame = { .id = 5, .file = 2, .offset = 0x10 } });
	take(m, (struct msg){ .id = MSG_FRAME, .frame = { .id = 6, .kind = 7, .offset = 0x20 } });
	take(m, (struct msg){ .id = MSG_FRAME, .frame = { .id = 7, .kind = 256, .offset = 0x30 } });
	take(m, (struct msg){ .id = MSG_STACK,
			      .stack = { .id = 1,
					 .frames = LIST(4, 7, 6, 1, 2, 3, 5),
					 .reason = WALK_DEPTH,
					 .at_file = 1 } });
	sample(m, 1, 1);
	cr_assert_str_eq(folded(m, false),
			 "p;[truncated: depth];[vdso+0x10];[anon+0x7f00];[libx.so+0x1000];"
			 "[libx.so+0x401000];[kind-7+0x20];[kind-253+0x30];"
			 "[kernel+0xffffffff81000000]_[k] 1\n");
	model_free(m);
}

/* --- folded --- */

Test(folded, hostile_names_keep_the_format)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	process(m, 1, 10, STR_LIT("a;main 9\n"));
	process(m, 2, 11, STR_LIT(""));
	function(m, 1, STR_LIT("x;y\nz"));
	frame(m, 1, 1, 1);
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .frames = LIST(1) } });
	sample(m, 1, 1);
	sample(m, 1, 2);
	cr_assert_str_eq(folded(m, false), "a:main 9\\x0a;x:y\\x0az 1\npid-11;x:y\\x0az 1\n");
	cr_assert_str_eq(folded(m, true),
			 "a:main 9\\x0a;a:main 9\\x0a;x:y\\x0az 1\npid-11;tid-11;x:y\\x0az 1\n");
	model_free(m);
}

Test(folded, falsified_samples_are_reported)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	const struct witness_word word = { .magic = WITNESS_MAGIC, .final = 1 };

	model_witness(m, &word);
	process(m, 1, 10, STR_LIT("p"));
	function(m, 1, STR_LIT("a"));
	frame(m, 1, 1, 1);
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .frames = LIST(1) } });
	sample(m, 1, 1);
	model_conclude(m);
	cr_assert_str_eq(folded(m, false), "[do not trust this profile] 1\np;a 1\n");
	model_free(m);
}

Test(folded, names_that_become_equal_are_one_line)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	process(m, 1, 10, STR_LIT("p"));
	process(m, 2, 11, STR_LIT("p"));
	function(m, 1, STR_LIT("a;b"));
	function(m, 2, STR_LIT("a:b"));
	frame(m, 1, 1, 1);
	frame(m, 2, 2, 2);
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .frames = LIST(1) } });
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 2, .frames = LIST(2) } });
	sample(m, 1, 1);
	sample(m, 2, 2);
	cr_assert_str_eq(folded(m, false), "p;a:b 2\n");
	model_free(m);
}

/* An interpreted function that was seen on a line, with a stack of this frame alone. */
static void interpreted(struct model *m, uint64_t id, const char *name, const char *source,
			uint64_t first, uint64_t line)
{
	take(m, (struct msg){
			.id = MSG_FUNCTION,
			.function = { .id = id,
				      .name = { .data = name, .len = (uint32_t)strlen(name) },
				      .source = { .data = source, .len = (uint32_t)strlen(source) },
				      .start_line = first } });
	take(m, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = id,
					 .kind = MSG_FRAME_INTERPRETED,
					 .offset = line,
					 .functions = LIST(id),
					 .lines = LIST(line) } });
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = id, .frames = LIST(id) } });
	cr_assert_eq(sample(m, id, 1), MODEL_SAMPLE);
}

static void define_namesakes(struct model *m)
{
	process(m, 1, 10, STR_LIT("p"));
	interpreted(m, 1, "util.f", "/x/a/util.py", 4, 5);
	interpreted(m, 2, "util.f", "/x/b/util.py", 4, 5);
	interpreted(m, 3, "prop.C.v", "/x/prop.py", 6, 8);
	interpreted(m, 4, "prop.C.v", "/x/prop.py", 9, 11);
	interpreted(m, 5, "prop.C.v", "/x/prop.py", 9, 12);
	interpreted(m, 6, "one.f", "/x/one.py", 1, 2);
	interpreted(m, 7, "deep.f", "/1/c/b/a/deep.py", 1, 2);
	interpreted(m, 8, "deep.f", "/2/c/b/a/deep.py", 1, 2);
	interpreted(m, 9, "gone", "", 0, 0);
	interpreted(m, 10, "gone", "/x/go;n\ne.py", 7, 0);
	/* Native functions with equal names are merged. */
	for (uint64_t i = 11; i < 13; i++) {
		take(m, (struct msg){ .id = MSG_FUNCTION,
				      .function = { .id = i,
						    .name = STR_LIT("one.f"),
						    .source = STR_LIT("/x/one.c"),
						    .start_line = i } });
		frame(m, i, i, i);
		take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = i, .frames = LIST(i) } });
		cr_assert_eq(sample(m, i, 1), MODEL_SAMPLE);
	}
}

Test(folded, interpreted_functions_of_one_name_are_told_apart)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	define_namesakes(m);
	cr_expect_str_eq(folded(m, false), "p;deep.f (/1/c/b/a/deep.py:1) 1\n"
					   "p;deep.f (/2/c/b/a/deep.py:1) 1\n"
					   "p;gone (go:n\\x0ae.py:7) 1\n"
					   "p;gone 1\n"
					   "p;one.f 3\n"
					   "p;prop.C.v (prop.py:6) 1\n"
					   "p;prop.C.v (prop.py:9) 2\n"
					   "p;util.f (a/util.py:4) 1\n"
					   "p;util.f (b/util.py:4) 1\n");
	model_free(m);
}

Test(folded, lines_of_interpreted_functions_stand_behind_them)
{
	struct model *m = model_of(&(struct model_options){
		.detail = MODEL_NAMES, .aggregate = true, .lines = true, .memory_max = 1 << 20 });

	define_namesakes(m);
	cr_expect_str_eq(folded(m, false), "p;deep.f (/1/c/b/a/deep.py:1):2 1\n"
					   "p;deep.f (/2/c/b/a/deep.py:1):2 1\n"
					   "p;gone (go:n\\x0ae.py:7) 1\n"
					   "p;gone 1\n"
					   "p;one.f 2\n"
					   "p;one.f:2 1\n"
					   "p;prop.C.v (prop.py:6):8 1\n"
					   "p;prop.C.v (prop.py:9):11 1\n"
					   "p;prop.C.v (prop.py:9):12 1\n"
					   "p;util.f (a/util.py:4):5 1\n"
					   "p;util.f (b/util.py:4):5 1\n");
	model_free(m);
}

/* One function for each kind of code, and one of a kind that this version does not know. */
static void check_code(bool shown, const char *expected)
{
	struct model *m = model_of(&(struct model_options){
		.detail = MODEL_NAMES, .aggregate = true, .code = shown, .memory_max = 1 << 20 });

	process(m, 1, 10, STR_LIT("p"));
	function(m, 1, STR_LIT("C.m"));
	for (uint64_t i = 1; i <= 6; i++) {
		take(m, (struct msg){ .id = MSG_FRAME,
				      .frame = { .id = i,
						 .kind = MSG_FRAME_INTERPRETED,
						 .functions = LIST(1),
						 .lines = LIST(7),
						 .code = i - 1 } });
		take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = i, .frames = LIST(i) } });
		cr_assert_eq(sample(m, i, 1), MODEL_SAMPLE);
	}
	cr_expect_str_eq(folded(m, false), expected);
	model_free(m);
}

Test(folded, kinds_of_code_are_marked_on_demand)
{
	check_code(false, "p;C.m 6\n");
	check_code(true, "p;C.m 2\np;C.m_[c1] 1\np;C.m_[c2] 1\np;C.m_[i] 1\np;C.m_[n] 1\n");
}

Test(folded, a_title_takes_the_place_of_the_kernels_name)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);

	process(m, 1, 10, STR_LIT("java"));
	take(m, (struct msg){ .id = MSG_THREAD,
			      .thread = { .id = 7,
					  .process = 1,
					  .tid = 11,
					  .comm = STR_LIT("a name of 15 by"),
					  .title = STR_LIT("a name of 15 bytes; and more") } });
	function(m, 1, STR_LIT("f"));
	frame(m, 1, 1, 1);
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .frames = LIST(1) } });
	sample(m, 1, 7);
	cr_expect_str_eq(folded(m, true), "java;a name of 15 bytes: and more;f 1\n");
	cr_expect_str_eq(folded(m, false), "java;f 1\n");
	model_free(m);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

Test(folded, lines_are_in_the_order_of_their_bytes)
{
	struct model *m = new_model(MODEL_NAMES, true, 1 << 20);
	static const char *const names[] = { "a",  "a b", "a (x)", "a 5", "a#",	 "a.b",
					     "a5", "a~",  "b",	   "a  ", "a 1", "a !" };
	const size_t n = sizeof(names) / sizeof(names[0]);
	char *lines[2048];
	size_t count = 0;
	uint64_t id = 100;

	process(m, 1, 10, STR_LIT("p"));
	for (uint64_t i = 0; i < n; i++) {
		function(m, i + 1, str_from(names[i]));
		frame(m, i + 1, i, i + 1);
	}
	for (uint64_t i = 0; i < n; i++) {
		take(m, (struct msg){ .id = MSG_STACK,
				      .stack = { .id = ++id, .frames = LIST(i + 1) } });
		for (uint64_t k = 0; k < 1 + i * 5; k++)
			sample(m, id, 1);
		for (uint64_t j = 0; j < n; j++) {
			take(m,
			     (struct msg){ .id = MSG_STACK,
					   .stack = { .id = ++id, .frames = LIST(j + 1, i + 1) } });
			for (uint64_t k = 0; k < 1 + (i * j) % 13; k++)
				sample(m, id, 1);
		}
	}
	char *text = folded(m, false), *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		lines[count++] = line;
	cr_assert_eq(count, n + n * n);
	char *sorted[2048];

	memcpy(sorted, lines, count * sizeof(*lines));
	qsort(sorted, count, sizeof(*sorted), compare_lines);
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(sorted[i], lines[i], "line %zu is %s, not %s", i, lines[i], sorted[i]);
	model_free(m);
}
