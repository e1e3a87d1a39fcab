/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects as they lay in the memory of ten Pythons (tests/data/python/make.py), and what those
 * said of them themselves; builds that Debian ships. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include "tests/random.h"
#include "tests/unit/pycapture.h"

static bool same_text(const struct runtime_text *t, const char *s)
{
	size_t len = strlen(s);

	if (len > RUNTIME_TEXT)
		return t->len <= RUNTIME_TEXT && t->len > RUNTIME_TEXT - 4 &&
		       memcmp(t->bytes, s, t->len) == 0;
	return t->len == len && memcmp(t->bytes, s, len) == 0;
}

static void expect_lines(const struct runtime_object *o, const struct expected *e, const char *path)
{
	uint32_t from = 0;

	for (const char *s = e->ranges; *s && *s != '-';) {
		uint32_t end, line;
		int used;

		cr_assert_eq(sscanf(s, "%" SCNu32 ":%" SCNu32 "%n", &end, &line, &used), 2);
		for (; from < end; from++)
			cr_assert_eq(runtime_line((const struct runtime_line *)o->lines.data,
						  o->lines.len / sizeof(struct runtime_line), from),
				     line, "%s: %s: position %" PRIu32 " of line %" PRIu32, path,
				     e->name, from, line);
		s += used;
		s += *s == ',';
	}
}

static void each_capture(void (*call)(struct capture *k, const char *path))
{
	glob_t files;

	cr_assert_eq(glob("tests/data/python/*.txt", 0, NULL, &files), 0);
	cr_assert_geq(files.gl_pathc, 9);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct capture *k = capture_open(files.gl_pathv[i]);

		cr_assert_geq(k->object_count, 10);
		call(k, files.gl_pathv[i]);
		capture_close(k);
	}
	globfree(&files);
}

static void expect_named(struct capture *k, const char *path)
{
	struct runtime_object o = { 0 };

	for (size_t i = 0; i < k->object_count; i++) {
		const struct expected *e = &k->objects[i];
		unsigned rounds;

		cr_assert_eq(name_object(k, e->address, check_of(k, e->address), &o, &rounds), 0,
			     "%s: %s", path, e->name);
		cr_expect(same_text(&o.system_name, e->name), "%s: %s", path, e->name);
		cr_expect(same_text(&o.source, e->source), "%s: %s", path, e->source);
		cr_expect_eq(o.start_line, e->first, "%s: %s", path, e->name);
		cr_expect_leq(rounds, 3, "%s: %s", path, e->name);
		cr_expect_not(o.hidden, "%s: %s", path, e->name);
		expect_lines(&o, e, path);
	}
	runtime_object_done(&o);
}

Test(python, objects_are_named_as_their_python_names_them)
{
	each_capture(expect_named);
}

static void expect_modules(struct capture *k, const char *path)
{
	static const struct {
		const char *source, *module;
	} modules[] = {
		{ "/somewhere/package/module.py", "module." },
		{ "/somewhere/\u0436\u0436/__init__.py", "\u0436\u0436." },
		{ "<string>", "<string>." },
	};
	struct runtime_object o = { 0 };
	unsigned found = 0, rounds;

	for (size_t i = 0; i < k->object_count; i++) {
		const struct expected *e = &k->objects[i];

		for (size_t j = 0; j < sizeof(modules) / sizeof(modules[0]); j++) {
			size_t len = strlen(modules[j].module);

			if (strcmp(e->source, modules[j].source) != 0)
				continue;
			cr_assert_eq(
				name_object(k, e->address, check_of(k, e->address), &o, &rounds),
				0);
			cr_expect_gt(o.name.len, len);
			cr_expect_eq(memcmp(o.name.bytes, modules[j].module, len), 0, "%s: %s",
				     path, e->source);
			found |= 1u << j;
		}
	}
	cr_expect_eq(found, 7);
	runtime_object_done(&o);
}

Test(python, the_function_that_calls_traces_is_known_by_its_first_instructions)
{
	uint8_t code[PYTHON_ENTRY_BYTES] = "\x55\x48\x89\xe5\x41\x57\x41\x56\x41\x55\x41\x54\x53";

	memset(code + 13, 0x90, sizeof(code) - 13);
	cr_expect_eq(python_words_below(code), 6);
	code[13] = 0x50; /* push rax, as in CPython 3.15 */
	cr_expect_eq(python_words_below(code), 7);
	memcpy(code + 13, "\x48\x83\xec\x18", 4); /* sub rsp, 24 */
	cr_expect_eq(python_words_below(code), 9);
	/* Code behind its end is not searched, whatever it pushes. */
	for (unsigned from = 4; from < 6; from++) {
		memset(code + 4, 0x53, sizeof(code) - 4);
		for (unsigned i = from; i + 1 < sizeof(code); i += 2)
			memcpy(code + i, "\x41\x57", 2);
		cr_expect_gt(python_words_below(code), 10);
	}
	code[1] = 0x90;
	cr_expect_eq(python_words_below(code), 0);
}

Test(python, the_module_is_the_files_last_part_or_the_packages_folder)
{
	each_capture(expect_modules);
}

static void expect_module(const char *source, const char *module)
{
	struct runtime_text t = { 0 };

	python_module((struct str){ .data = source, .len = (uint32_t)strlen(source) }, &t);
	cr_expect(same_text(&t, module), "%s: %.*s", source, (int)t.len, t.bytes);
}

Test(python, a_module_has_its_packages_in_front_where_they_are_known)
{
	static const char *const modules[][2] = {
		{ "/usr/lib/python3.11/asyncio/base_events.py", "asyncio.base_events" },
		{ "/usr/lib/python3.11/threading.py", "threading" },
		{ "/opt/py/lib/python3.13t/json/__init__.py", "json" },
		{ "/usr/lib64/python3.6/xml/dom/minidom.py", "xml.dom.minidom" },
		{ "/usr/lib/python3.9/lib-dynload/_crypt.py", "_crypt" },
		{ "/usr/lib/python3/dist-packages/mercurial/utils/procutil.py",
		  "mercurial.utils.procutil" },
		{ "/v/lib/python3.11/site-packages/flask/__init__.py", "flask" },
		{ "/v/lib/python3.11/site-packages/flask/json/__init__.py", "flask.json" },
		{ "/v/lib/python3.11/site-packages/flask/__main__.py", "flask.__main__" },
		{ "/v/lib/python3.11/site-packages/\u0436/b.py", "\u0436.b" },
		{ "/v/lib/python3.11/site-packages//a.py", "a" },
		{ "/v/site-packages/a-1.0-py3.9.egg/a/b.py", "a.b" },
		{ "/usr/lib/python39.zip/email/message.py", "email.message" },
		{ "payload.zip/ansible/modules/ping.py", "ansible.modules.ping" },
		/* The last of such folders counts. */
		{ "/x/site-packages/y/lib/python3.8/z/m.py", "z.m" },
		{ "/x/site-packages/y-1/site-packages/z/m.py", "z.m" },
		/* None is known. */
		{ "/home/x/project/src/shop/cart.py", "cart" },
		{ "/home/x/project/src/shop/__init__.py", "shop" },
		{ "/srv/python3.11/app.py", "app" },
		{ "/srv/lib/python3./app/b.py", "b" },
		{ "/srv/lib/python3.11ab/app/b.py", "b" },
		{ "/usr/lib/python3.11/config-3.11/python-config.py", "python-config" },
		{ "/v/site-packages/a/../b/c.py", "c" },
		{ "/v/site-packages/a/", "" },
		{ "cart.py", "cart" },
		{ ".py", ".py" },
		{ "/", "" },
		{ "/__init__.py", "__init__" },
		{ "site-packages", "site-packages" },
		/* No files. */
		{ "<frozen importlib._bootstrap>", "importlib._bootstrap" },
		{ "<frozen >", "<frozen >" },
		{ "<string>", "<string>" },
		{ "<attrs generated init a/b.C>", "<attrs generated init a/b.C>" },
		{ "<", "<" },
		{ "", "?" },
	};

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		expect_module(modules[i][0], modules[i][1]);
}

Test(python, a_long_module_leaves_room_for_the_function)
{
	char path[1024] = "/site-packages", part[300];
	struct runtime_text t = { 0 };

	while (strlen(path) < 1000)
		strcat(path, "/ab");
	strcat(path, "/c.py");
	expect_module(path, "c");
	memset(part, 'x', sizeof(part));
	memcpy(path, part, sizeof(part));
	python_module((struct str){ .data = path, .len = sizeof(part) }, &t);
	cr_expect_eq(t.len, 255);
}

static void expect_gone(struct capture *k, const char *path)
{
	struct runtime_object o = { 0 };
	uint64_t address = k->objects[0].address;
	unsigned rounds;

	cr_expect_eq(name_object(k, address, check_of(k, address) ^ 1, &o, &rounds), RUNTIME_GONE,
		     "%s", path);
	cr_expect_eq(name_object(k, 0x1000, 1, &o, &rounds), RUNTIME_GONE, "%s", path);
	cr_expect_eq(name_object(k, 0, 1, &o, &rounds), RUNTIME_GONE, "%s", path);
	runtime_object_done(&o);
}

/* A freed object holds a pointer in place of its reference count, and is otherwise unchanged. */
static void expect_freed_is_gone(struct capture *k, const char *path)
{
	struct runtime_object o = { 0 };
	struct python_naming n;
	uint64_t address = k->objects[0].address, check = check_of(k, address),
		 next = 0x7f0000001230;
	struct span code = capture_read(k, address, 8);
	unsigned rounds;

	memcpy(&n, k->build.naming, sizeof(n));
	cr_expect_eq(n.counted, k->minor < 14, "%s", path);
	memcpy((uint8_t *)code.data, &next, sizeof(next));
	cr_expect_eq(name_object(k, address, check, &o, &rounds), n.counted ? RUNTIME_GONE : 0,
		     "%s", path);
	runtime_object_done(&o);
}

Test(python, an_object_that_was_freed_is_not_named)
{
	each_capture(expect_freed_is_gone);
}

Test(python, another_object_at_that_place_is_not_named)
{
	each_capture(expect_gone);
}

/* Memory with some wrong bits, other ones for each object: naming ends, whatever the result. */
static void expect_an_end(struct capture *k, const char *path)
{
	struct runtime_object o = { 0 };
	uint64_t state = 0x9e3779b97f4a7c15;
	uint8_t *flipped[8], bits[8];

	for (unsigned round = 0; round < 100 * k->object_count; round++) {
		uint64_t address = k->objects[round % k->object_count].address;
		unsigned n = 1 + round % 8, rounds;

		for (unsigned i = 0; i < n; i++) {
			const uint64_t random = random_next(&state);
			const struct piece *p = &k->pieces[random % k->count];

			flipped[i] = p->bytes + (p->len ? (random >> 16) % p->len : 0);
			bits[i] = (uint8_t)(1u << (random >> 60 & 7));
			*flipped[i] ^= bits[i];
		}
		int r = name_object(k, address, check_of(k, address), &o, &rounds);
		cr_assert(r == 0 || r == RUNTIME_GONE || r == RUNTIME_WANTS, "%s: %d", path, r);
		cr_assert_leq(o.name.len, RUNTIME_TEXT);
		cr_assert_leq(o.lines.len, RUNTIME_LINES * sizeof(struct runtime_line));
		for (unsigned i = n; i-- > 0;)
			*flipped[i] ^= bits[i];
	}
	runtime_object_done(&o);
	/* The memory is whole again. */
	expect_named(k, path);
}

Test(python, memory_with_wrong_bits_is_read_to_an_end)
{
	each_capture(expect_an_end);
}

/* --- builds --- */

static int describe(const char *path, struct runtime_build *ret)
{
	struct symfile *f;
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(symfile_open(fd, &f), 0, "%s", path);
	r = runtime_describe(f, ret);
	symfile_free(f);
	return r;
}

static void expect_311(const char *path)
{
	struct runtime_build b;
	struct python_config c;
	struct python_naming n;

	cr_assert_eq(describe(path, &b), 0, "%s", path);
	cr_assert(b.known, "%s", path);
	cr_expect_eq(strncmp(b.name, "CPython 3.11.", 13), 0, "%s", b.name);
	cr_expect_eq(b.config.version >> 8, 3 << 8 | 11);
	cr_expect_eq(b.config.by_loop, 0);
	cr_expect_geq(b.config.ranges, 1);
	for (uint32_t i = 0; i < b.config.ranges; i++)
		cr_expect_lt(b.config.loop[i].start, b.config.loop[i].end);
	cr_expect_gt(b.config.loop[0].end - b.config.loop[0].start, 10000);
	memcpy(&c, b.config.own, sizeof(c));
	memcpy(&n, b.naming, sizeof(n));
	cr_expect_eq(c.thread, PYTHON_TSD);
	cr_expect_eq(c.frames, PYTHON_CFRAMES);
	cr_expect_eq(c.state % 4, 0);
	cr_expect_neq(c.state, 0);
	cr_expect_neq(c.holder, 0);
	cr_expect_eq(c.holder % 8, 0);
	cr_expect_eq(c.code_check, n.code_check);
	cr_expect_leq(c.frame_bytes, PYTHON_FRAME_BYTES);
}

Test(python, debians_executable_is_described)
{
	expect_311("/usr/bin/python3.11");
}

Test(python, debians_library_is_described)
{
	expect_311("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0");
}

Test(python, each_way_to_the_thread_state_is_found)
{
	static const struct {
		const char *name;
		unsigned minor, thread, add;
	} fakes[] = {
		/* of tests/data/python/fake.c */
		{ "key", 9, PYTHON_TSD, 0 },
		{ "key-symbolic", 10, PYTHON_TSD, 0 },
		{ "key-of-libc", 11, PYTHON_TSD, 0 },
		{ "key-static", 11, PYTHON_TSD, 0 },
		{ "key-no-plt", 12, PYTHON_TSD, 0 },
		{ "key-behind", 12, PYTHON_TSD, 0 },
		{ "key-clang", 12, PYTHON_TSD, 0 },
		{ "key-plain", 9, PYTHON_TSD, 0 },
		{ "key-plain-behind", 9, PYTHON_TSD, 0 },
		{ "key-plain-asked", 13, PYTHON_TSD, 0 },
		{ "tls-plain", 15, PYTHON_TLS_MODULE, 0 },
		{ "key-offsets", 13, PYTHON_TSD, 0 },
		{ "key-offsets-14", 14, PYTHON_TSD, 0 },
		{ "key-alone", 6, PYTHON_TSD, 0 },
		{ "tls-global", 15, PYTHON_TLS_MODULE, 0 },
		{ "tls-local", 15, PYTHON_TLS_MODULE, 8 },
		{ "tls-initial", 15, PYTHON_TLS_GOT, 0 },
		{ "tls-descriptor", 15, PYTHON_TLS_GOT, 0 },
	};

	for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++) {
		struct runtime_build b;
		struct python_config c;
		char path[64];

		snprintf(path, sizeof(path), "tests/fuzz/corpus/runtime/%s", fakes[i].name);
		cr_assert_eq(describe(path, &b), 0, "%s", path);
		cr_assert(b.known, "%s", path);
		cr_expect_eq(b.config.version >> 8, 3 << 8 | fakes[i].minor, "%s", b.name);
		memcpy(&c, b.config.own, sizeof(c));
		cr_expect_eq(c.thread, fakes[i].thread, "%s: %u", path, c.thread);
		cr_expect_eq(c.tls_add, fakes[i].add, "%s", path);
		if (strncmp(fakes[i].name, "key", 3) != 0 ||
		    strcmp(fakes[i].name, "key-alone") == 0)
			continue;

		struct symfile *f;
		struct elfview_symbol s;
		struct elfview im;

		cr_assert_eq(symfile_open(open(path, O_RDONLY | O_CLOEXEC), &f), 0);
		elfview_init(&im, f);
		cr_assert(elfview_exported(&im, "_PyRuntime", &s) == 0 ||
			  elfview_local(&im, "_PyRuntime", &s) == 0);
		/* From the start of the file's mapping: at 0, except for the static one. */
		cr_expect_eq(c.state & 0xffff, (s.value + 780) & 0xffff, "%s", path);
		elfview_done(&im);
		symfile_free(f);
	}
}

Test(python, parts_without_names_are_found_by_what_is_in_them)
{
	static const struct {
		const char *name;
		unsigned minor, thread, holder;
	} fakes[] = {
		{ "hidden", 9, PYTHON_TSD, 20 },	 { "hidden-11", 11, PYTHON_TSD, 20 },
		{ "hidden-14", 14, PYTHON_TSD, 0 },	 { "hidden-15", 15, PYTHON_TLS_OFFSET, 0 },
		{ "hidden-tails", 14, PYTHON_TSD, 0 },	 { "hidden-no-pie", 10, PYTHON_TSD, 20 },
		{ "hidden-static", 11, PYTHON_TSD, 20 }, { "hidden-bare", 11, PYTHON_TSD, 20 },
	};

	for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++) {
		struct runtime_build b;
		struct python_config c;
		char path[64], name[16];

		snprintf(path, sizeof(path), "tests/fuzz/corpus/runtime/%s", fakes[i].name);
		snprintf(name, sizeof(name), "CPython 3.%u.7", fakes[i].minor);
		cr_assert_eq(describe(path, &b), 0, "%s", path);
		cr_assert(b.known, "%s", path);
		cr_expect_str_eq(b.name, name, "%s", path);
		cr_expect_eq(b.config.ranges,
			     strcmp(fakes[i].name, "hidden-tails") == 0 ||
					     strcmp(fakes[i].name, "hidden-cold") == 0
				     ? 2
				     : 1,
			     "%s", path);
		memcpy(&c, b.config.own, sizeof(c));
		cr_expect_eq(c.thread, fakes[i].thread, "%s: %u", path, c.thread);
		cr_expect_eq(c.holder, fakes[i].holder ? c.state - fakes[i].holder : 0, "%s", path);
		if (c.thread == PYTHON_TLS_OFFSET)
			cr_expect_eq(c.state, (uint64_t)-8, "%s", path);
		else
			/* _PyRuntime lies at a multiple of 32 */
			cr_expect_eq(c.state % 32, 780 % 32, "%s: %" PRIx64, path, c.state);
	}
}

Test(python, a_version_that_is_not_known_is_named)
{
	struct runtime_build b;

	cr_assert_eq(describe("tests/fuzz/corpus/runtime/too-new", &b), 0);
	cr_expect_not(b.known);
	cr_expect_str_eq(b.name, "CPython 3.99.2");
}

Test(python, threads_copies_of_the_instructions_are_those_of_free_threaded_builds)
{
	static const struct {
		const char *name;
		unsigned copies, copy, kind;
	} builds[] = { { "free-threaded-13", 0, 0, 2 },
		       { "key-offsets-14", 0, 0, 2 },
		       { "free-threaded", 208, 72, 8 },
		       { "free-threaded-15", 208, 72, 8 } };
	struct python_config c;
	struct python_naming n;
	struct runtime_build b;
	char path[64];

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		snprintf(path, sizeof(path), "tests/fuzz/corpus/runtime/%s", builds[i].name);
		cr_assert_eq(describe(path, &b), 0, "%s", path);
		cr_assert(b.known, "%s", path);
		cr_expect_eq(strstr(b.name, " free-threaded") != NULL, builds[i].name[0] == 'f');
		memcpy(&c, b.config.own, sizeof(c));
		memcpy(&n, b.naming, sizeof(n));
		cr_expect_eq(c.code_copies, builds[i].copies, "%s", path);
		cr_expect_eq(c.frame_copy, builds[i].copy, "%s", path);
		cr_expect_eq(n.text_kind, builds[i].kind, "%s", path);
	}
}

Test(python, a_tail_calling_loop_is_found_by_its_table)
{
	struct runtime_build b;
	uint64_t bytes = 0;

	cr_assert_eq(describe("tests/fuzz/corpus/runtime/tails", &b), 0);
	cr_assert(b.known);
	for (uint32_t i = 0; i < b.config.ranges; i++)
		bytes += b.config.loop[i].end - b.config.loop[i].start;
	cr_expect_geq(bytes, 64 * 8, "%" PRIu64, bytes);
	cr_expect_leq(bytes, 64 * 24, "%" PRIu64, bytes);
}

Test(python, a_python_that_is_not_read_is_named)
{
	static const struct {
		const char *path, *name;
	} others[] = { { "old", "CPython 2.7.9" },
		       { "pypy", "PyPy 7.3.11" },
		       { "micropython", "MicroPython 1.19.1" },
		       { "no-symbols", "CPython 3.9.18 without symbols" },
		       { "hidden-no-table", "CPython 3.9.7 without symbols" },
		       { "hidden-two-keys", "CPython 3.9.7 without symbols" },
		       { "hidden-other-layout", "CPython 3.9.7 without symbols" } };
	struct runtime_build b;
	char path[64];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(path, sizeof(path), "tests/fuzz/corpus/runtime/%s", others[i].path);
		cr_assert_eq(describe(path, &b), 0, "%s", path);
		cr_expect_not(b.known, "%s", path);
		cr_expect_str_eq(b.name, others[i].name);
	}
	cr_expect_eq(describe("/bin/bash", &b), RUNTIME_NOT_MINE);
}

Test(python, a_program_linked_to_libpython_is_not_the_runtime)
{
	struct runtime_build b;

	cr_expect_eq(describe("/usr/bin/gdb", &b), RUNTIME_NOT_MINE);
	cr_expect_eq(describe("/bin/sh", &b), RUNTIME_NOT_MINE);
}

Test(python, a_version_that_is_too_new_has_no_layout)
{
	struct python_config c;
	struct python_naming n;
	uint64_t debug[PYTHON_DEBUG_WORDS] = { 0 };

	cr_expect_not(python_layout(5, 0, debug, &c, &n));
	cr_expect(python_layout(12, 0, NULL, &c, &n));
	cr_expect_not(python_layout(13, 0, debug, &c, &n));
	cr_expect_not(python_layout(16, 0, debug, &c, &n));
}
