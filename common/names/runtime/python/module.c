/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a module, derived from the path of its source file. It begins below a folder that
 * installations have on sys.path:
 *
 *  - the standard library (Lib/sysconfig.py): lib/python3.N, followed by t or d in some builds
 *  - site-packages, and Debian's dist-packages
 *  - an archive that modules are imported from: zip, egg, wheel, zipapp
 */
#include "common/names/runtime/python/python.h"

#define MAX_MODULE 255 /* bytes; leaves room for the function's own name */

static struct str from_to(struct str s, uint32_t from, uint32_t to)
{
	return (struct str){ .data = s.data + from, .len = to - from };
}

/* Whether it is a folder like "python3.11" or "python3.13t". */
static bool is_library(struct str s)
{
	const struct str begin = STR_LIT("python3.");
	uint32_t i = begin.len;

	if (s.len <= begin.len || memcmp(s.data, begin.data, begin.len) != 0)
		return false;
	while (i < s.len && s.data[i] >= '0' && s.data[i] <= '9')
		i++;
	return i > begin.len &&
	       (i == s.len || (i + 1 == s.len && s.data[i] >= 'a' && s.data[i] <= 'z'));
}

static bool is_root(struct str folder, struct str above)
{
	static const char *const archives[] = { ".zip", ".egg", ".whl", ".pyz" };

	for (size_t i = 0; i < sizeof(archives) / sizeof(archives[0]); i++)
		if (str_ends(folder, archives[i]))
			return true;
	return str_eq(folder, STR_LIT("site-packages")) ||
	       str_eq(folder, STR_LIT("dist-packages")) ||
	       (is_library(folder) &&
		(str_eq(above, STR_LIT("lib")) || str_eq(above, STR_LIT("lib64"))));
}

/* Whether a package's folder may have this name. All bytes beyond ASCII count as letters. */
static bool is_identifier(struct str s)
{
	for (uint32_t i = 0; i < s.len; i++) {
		const unsigned char c = (unsigned char)s.data[i], letter = c | 0x20;

		if (c != '_' && c < 0x80 && (letter < 'a' || letter > 'z') &&
		    (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return s.len > 0;
}

/* Returns the offset in a path at which the module's name begins. *ret_last is the offset of its
 * last part. */
static uint32_t module_start(struct str path, uint32_t *ret_last)
{
	struct str above = { 0 };
	uint32_t start = 0, at = 0;
	bool below = false;

	for (uint32_t i = 0; i < path.len; i++) {
		if (path.data[i] != '/')
			continue;
		const struct str folder = from_to(path, at, i);

		if (is_root(folder, above)) {
			below = true;
			start = i + 1;
		} else if (below && at == start &&
			   (!folder.len || str_eq(folder, STR_LIT("lib-dynload")))) {
			start = i + 1;
		} else if (!is_identifier(folder)) {
			below = false;
		}
		above = folder;
		at = i + 1;
	}
	*ret_last = at;
	return below ? start : at;
}

void python_module(struct str source, struct runtime_text *ret)
{
	static const struct str frozen = STR_LIT("<frozen "), package = STR_LIT("/__init__.py"),
				suffix = STR_LIT(".py");
	struct str s = source;
	uint32_t start, last;

	if (!s.len) {
		runtime_append(ret, "?", 1);
		return;
	}
	if (s.data[0] == '<' && s.data[s.len - 1] == '>') {
		if (s.len > frozen.len + 1 && memcmp(s.data, frozen.data, frozen.len) == 0)
			s = from_to(s, frozen.len, s.len - 1);
		s = str_cut(s, MAX_MODULE);
		runtime_append(ret, s.data, s.len);
		return;
	}
	if (str_ends_with(s, package) && s.len > package.len)
		s.len -= package.len;
	start = module_start(s, &last);
	if (s.len - last > suffix.len && str_ends_with(s, suffix))
		s.len -= suffix.len;
	if (s.len - start > MAX_MODULE || last == s.len)
		start = last;
	s = str_cut(from_to(s, start, s.len), MAX_MODULE);
	for (uint32_t i = 0, from = 0; i <= s.len; i++) {
		if (i < s.len && s.data[i] != '/')
			continue;
		runtime_append(ret, s.data + from, i - from);
		if (i < s.len)
			runtime_append(ret, ".", 1);
		from = i + 1;
	}
}
