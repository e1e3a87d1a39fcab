/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the version of a CPython:
 *
 *  - From 3.11 on it is in Py_Version.
 *  - Before that, two strings that every build has show it: the suffix of extension modules
 *    (".cpython-39-x86_64-linux-gnu.so"), and PY_VERSION of that minor version.
 *
 * Other Pythons are recognized by their exported symbols (PyPy's library, CPython up to 3.5). A
 * program that exports nothing is recognized by strings: those of MicroPython, and those of a
 * stripped CPython.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/base/bytes/numbers.h"
#include "common/names/runtime/python/python.h"

#define MAX_RODATA (32u << 20)
#define MAX_PROGRAM_RODATA (4u << 20) /* bytes searched in a program that exports nothing */
#define CHUNK (64u << 10)
#define TEXT 64 /* bytes of a found string that are read, from the searched text on */

/* --- CPython --- */

static bool version_of_symbol(const struct elfview *im, struct python_version *v)
{
	static const char *const levels[] = { [0xa] = "a", [0xb] = "b", [0xc] = "rc" };
	struct elfview_symbol s;
	unsigned long level;
	uint32_t hex;

	if (elfview_defined(im, "Py_Version", &s) != 0 ||
	    elfview_read(im, s.value, &hex, sizeof(hex)) != 0 || hex >> 24 != 3)
		return false;
	v->minor = hex >> 16 & 255;
	v->patch = hex >> 8 & 255;
	level = hex >> 4 & 15;
	if (level >= 0xa && level <= 0xc)
		snprintf(v->suffix, sizeof(v->suffix), "%s%u", levels[level], hex & 15);
	return true;
}

/* Returns the next string after the NUL at *at, and moves *at to its end. NULL: no more. */
static const char *next_string(const char *text, size_t len, size_t *at, size_t *ret_len)
{
	const char *s, *end;

	if (*at >= len)
		return NULL;
	s = text + *at;
	end = memchr(s, '\0', len - *at);
	if (!end)
		return NULL;
	*ret_len = (size_t)(end - s);
	*at += *ret_len + 1;
	return s;
}

static bool version_of_strings(const char *text, size_t len, struct python_version *v)
{
	bool found = false;
	const char *s;
	size_t at = 0, n;

	v->minor = 0;
	s = next_string(text, len, &at, &n);
	for (; s && !found; s = next_string(text, len, &at, &n)) {
		unsigned major, minor;
		int used = 0;

		/* ".cpython-39-x86_64-linux-gnu.so"; "d" or "m" may follow the number */
		if (n > 20 && n < 64 &&
		    sscanf(s, ".cpython-%1u%2u%n", &major, &minor, &used) == 2 && used &&
		    major == 3 && strcmp(s + n - 3, ".so") == 0) {
			v->minor = minor;
			found = true;
		}
	}
	/* Linkers may store a string as the tail of a longer one: ".../versions/3.9.18". So a
	 * second pass looks at tails. */
	for (int tails = 0; found && tails < 2; tails++) {
		at = 0;
		for (s = next_string(text, len, &at, &n); s; s = next_string(text, len, &at, &n)) {
			unsigned minor, patch;
			char suffix[sizeof(v->suffix)] = "";
			size_t from = tails ? n : 0;

			while (tails && from > 0 && n - from <= 14 &&
			       strchr("0123456789.abrc+", s[from - 1]))
				from--;
			if (n - from < 5 || n - from > 14 || s[from] != '3' ||
			    strspn(s + from, "0123456789.abrc+") != n - from ||
			    sscanf(s + from, "3.%u.%3u%11s", &minor, &patch, suffix) < 2 ||
			    minor != v->minor || strchr(suffix, '.'))
				continue;
			v->patch = patch;
			memcpy(v->suffix, suffix, sizeof(suffix));
			return true;
		}
	}
	return found;
}

int python_find_version(const struct elfview *im, struct python_version *v)
{
	const struct symfile_section *s;
	char *text;
	int r;

	*v = (struct python_version){ 0 };
	if (version_of_symbol(im, v))
		return 0;
	r = symfile_section(im->file, ".rodata", &s);
	if (r || s->type == SHT_NOBITS || s->size > MAX_RODATA || s->size > symfile_size(im->file))
		return SYMFILE_NONE;
	text = malloc(s->size);
	if (!text)
		return -ENOMEM;
	r = symfile_read(im->file, s->offset, text, s->size);
	if (r == 0 && !version_of_strings(text, s->size, v))
		r = SYMFILE_NONE;
	free(text);
	return r;
}

/* --- others --- */

/* Finds `first` followed by `rest`, or NULL. */
static const char *find_in(const char *text, size_t n, char first, const char *rest, size_t len)
{
	for (const char *at = text, *end = text + n;; at++) {
		at = memmem(at, (size_t)(end - at), rest, len);
		if (!at || (at > text && at[-1] == first))
			return at ? at - 1 : NULL;
	}
}

/*
 * Finds a string in a section, and copies its printable text. The searched text is passed as its
 * first character and the rest: otherwise prof-symd would contain these texts, and count as a
 * Python itself. Skips sections of more than `most` bytes. Returns false if it is not found.
 */
static bool find_text(const struct symfile *f, const char *section, uint64_t most, char first,
		      const char *rest, char ret[static TEXT])
{
	const struct symfile_section *s;
	size_t len = strlen(rest);
	const char *at = NULL;
	char *text;

	if (symfile_section(f, section, &s) != 0 || s->type == SHT_NOBITS || s->size > most)
		return false;
	text = malloc(CHUNK + TEXT);
	if (!text)
		return false;
	for (uint64_t from = 0; !at && from < s->size; from += CHUNK) {
		uint64_t left = s->size - from;
		size_t n = numbers_smaller(left, CHUNK + TEXT);

		if (symfile_read(f, s->offset + from, text, n) != 0)
			break;
		at = find_in(text, n, first, rest, len);
		n -= at ? (size_t)(at - text) : 0;
		for (size_t i = 0; at && i < TEXT; i++)
			ret[i] = i < n && i < TEXT - 1 && isprint((unsigned char)at[i]) ? at[i]
											: '\0';
	}
	free(text);
	return at != NULL;
}

/* Makes a name of `what` and the version that follows `begin`: "7.3.11+dfsg". */
static void name_version(const char *what, const char *text, const char *begin,
			 char ret[static RUNTIME_NAME])
{
	const char *v = text + strlen(begin);
	size_t n = strspn(v, "0123456789abcdefghijklmnopqrstuvwxyz.+-");

	snprintf(ret, RUNTIME_NAME, n ? "%s %.*s" : "%s", what, (int)n, v);
}

/* Names a CPython up to 3.5. Its version is in the path of its library, "lib/python2.7", and in
 * strings that begin with it. */
static void name_old(const struct symfile *f, char ret[static RUNTIME_NAME])
{
	static const char *const libraries[] = { "ib/python2.", "ib/python3." };
	unsigned major, minor;
	char text[TEXT], begin[16];

	snprintf(ret, RUNTIME_NAME, "CPython before 3.6");
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		if ((!find_text(f, ".data", MAX_RODATA, 'l', libraries[i], text) &&
		     !find_text(f, ".rodata", MAX_RODATA, 'l', libraries[i], text)) ||
		    sscanf(text, "lib/python%1u.%2u", &major, &minor) != 2)
			continue;
		snprintf(begin, sizeof(begin), "%u.%u.", major, minor);
		if (find_text(f, ".rodata", MAX_RODATA, begin[0], begin + 1, text))
			name_version("CPython", text, "", ret);
		else
			snprintf(ret, RUNTIME_NAME, "CPython %u.%u", major, minor);
		return;
	}
}

/* Whether it is a program, not a library, and small enough to be searched. */
static bool is_program(const struct symfile *f)
{
	const struct symfile_section *s;

	return symfile_section(f, ".interp", &s) == 0 || symfile_section(f, ".dynsym", &s) != 0;
}

int python_find_other(const struct elfview *im, char ret[static RUNTIME_NAME], bool *ret_hidden)
{
	const struct symfile *f = im->file;
	const struct symfile_section *section;
	struct elfview_symbol s;
	struct python_version v;
	char text[TEXT];

	*ret_hidden = false;
	if (elfview_exported(im, "pypy_execute_source", &s) == 0) {
		snprintf(ret, RUNTIME_NAME, "PyPy");
		if (find_text(f, ".data", MAX_RODATA, '[', "PyPy ", text) ||
		    find_text(f, ".rodata", MAX_RODATA, '[', "PyPy ", text))
			name_version("PyPy", text, "[PyPy ", ret);
		return 0;
	}
	if (elfview_exported(im, "PyEval_EvalFrameEx", &s) == 0) {
		name_old(f, ret);
		return 0;
	}
	if (symfile_section(f, ".PyRuntime", &section) != 0) {
		if (!is_program(f))
			return RUNTIME_NOT_MINE;
		if (find_text(f, ".rodata", MAX_PROGRAM_RODATA, 'M', "icroPython v", text)) {
			name_version("MicroPython", text + strlen("MicroPython "), "v", ret);
			return 0;
		}
		if (!find_text(f, ".rodata", MAX_PROGRAM_RODATA, '<',
			       "frozen importlib._bootstrap>", text))
			return RUNTIME_NOT_MINE;
	}
	int r = python_find_version(im, &v);
	if (r < 0)
		return r;
	snprintf(ret, RUNTIME_NAME, r ? "CPython" : "CPython 3.%u.%u%s without symbols", v.minor,
		 v.patch, v.suffix);
	*ret_hidden = r == 0;
	return 0;
}
