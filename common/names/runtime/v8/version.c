/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other code links to Node.js, so it exports the four numbers of its version. Builds without
 * symbols, such as Deno's, have them only as text, "15.0.245.2-rusty" (version.cc).
 */
#include "common/names/runtime/v8/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"

#define SYMBOL(name) "_ZN2v88internal7Version" name
/* A name among the builtins (builtins.h). Searching for it takes little. */
#define BUILTIN "InterpreterEntryTrampoline"
#define SECTION ".rodata"
#define SECTION_MIN (1u << 20)	/* bytes of constant data; V8 alone has more */
#define SECTION_MAX (64u << 20) /* bytes of it that are searched */
#define CHUNK (64u << 10)
#define TEXT_MAX 32u   /* bytes of a version's text, with its NUL */
#define MAJOR_FIRST 7u /* older versions, and other software's, do not count */
#define MAJOR_LAST 31u
#define BUILD_FIRST 16u

static bool read_numbers(const struct elfview *im, struct v8_version *ret)
{
	static const char *const name[] = { SYMBOL("6major_E"), SYMBOL("6minor_E"),
					    SYMBOL("6build_E"), SYMBOL("6patch_E") };
	struct elfview_symbol s;
	uint32_t v[4];

	for (unsigned i = 0; i < 4; i++)
		if (elfview_exported(im, name[i], &s) != 0 ||
		    elfview_read(im, s.value, &v[i], sizeof(v[i])) != 0)
			return false;
	*ret = (struct v8_version){ v[0], v[1], v[2], v[3] };
	return true;
}

/* Takes a decimal number of at most four digits. */
static bool take_number(const char **at, uint32_t *ret)
{
	const char *p = *at;

	for (*ret = 0; *p >= '0' && *p <= '9' && p - *at < 4; p++)
		*ret = *ret * 10 + (uint32_t)(*p - '0');
	const bool taken = p > *at && (p - *at == 1 || **at != '0');

	*at = p;
	return taken;
}

bool v8_version_of(const char *text, struct v8_version *ret)
{
	uint32_t v[4];

	for (unsigned i = 0; i < 4; i++) {
		if (i && *text++ != '.')
			return false;
		if (!take_number(&text, &v[i]))
			return false;
	}
	if (*text && *text != '-')
		return false;
	*ret = (struct v8_version){ v[0], v[1], v[2], v[3] };
	return v[0] >= MAJOR_FIRST && v[0] <= MAJOR_LAST && v[2] >= BUILD_FIRST;
}

/* Takes the versions among the strings of some bytes. Returns false if they differ. */
static bool take_versions(const char *bytes, size_t n, struct v8_version *ret)
{
	struct v8_version v;

	for (size_t i = 0, next; i < n; i = next) {
		const char *nul = memchr(bytes + i, '\0', n - i);

		if (!nul)
			break;
		next = (size_t)(nul - bytes) + 1;
		if (bytes[i] < '1' || bytes[i] > '9' || next - i > TEXT_MAX ||
		    !v8_version_of(bytes + i, &v))
			continue;
		if (ret->major && memcmp(ret, &v, sizeof(v)) != 0)
			return false;
		*ret = v;
	}
	return true;
}

/* Finds the only text in the file that is a version. */
static int find_text(const struct elfview *im, struct v8_version *ret)
{
	const struct symfile_section *s;
	uint64_t at;

	*ret = (struct v8_version){ 0 };
	if (symfile_section(im->file, SECTION, &s) != 0 || s->type == SHT_NOBITS ||
	    s->size < SECTION_MIN || s->size > SECTION_MAX ||
	    elfview_text(im, SECTION, BUILTIN, &at) != 0)
		return SYMFILE_NONE;

	char *chunk = malloc(CHUNK);
	int r = chunk ? 0 : -ENOMEM;

	/* A text follows the NUL of another one. Chunks overlap, so that one of them has both. */
	for (uint64_t from = 0; r == 0 && from < s->size; from += CHUNK - TEXT_MAX - 1) {
		const size_t n = numbers_smaller(s->size - from, CHUNK);
		const char *begin = NULL;

		r = symfile_read(im->file, s->offset + from, chunk, n);
		if (r == 0)
			begin = memchr(chunk, '\0', n);
		if (begin && !take_versions(begin, n - (size_t)(begin - chunk), ret))
			r = SYMFILE_NONE;
	}
	free(chunk);
	return r ? r : ret->major ? 0 : SYMFILE_NONE;
}

int v8_version(const struct elfview *im, struct v8_version *ret)
{
	return read_numbers(im, ret) ? 0 : find_text(im, ret);
}
