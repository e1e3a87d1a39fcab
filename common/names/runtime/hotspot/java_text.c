/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "common/names/runtime/hotspot/hotspot.h"

#define HIDDEN_DIGITS 4 /* digits that the number after the name of a hidden class has at least */

static void append(struct runtime_text *ret, const char *text)
{
	runtime_append(ret, text, strlen(text));
}

static bool is_number(const char *p, size_t len)
{
	if (len > 2 && p[0] == '0' && p[1] == 'x') {
		p += 2;
		len -= 2;
	}
	for (size_t i = 0; i < len; i++)
		if (!(p[i] >= '0' && p[i] <= '9') && !(p[i] >= 'a' && p[i] <= 'f'))
			return false;
	return len >= HIDDEN_DIGITS;
}

/* Returns the length of a name without the number of a hidden class, which follows '+', or '/' (JDK
 * 8 to 16). */
static size_t without_number(struct str name)
{
	for (size_t i = name.len; i-- > 1;) {
		if (name.data[i] != '+' && name.data[i] != '/')
			continue;
		return is_number(name.data + i + 1, name.len - i - 1) ? i : name.len;
	}
	return name.len;
}

/* Returns the payload of continuation byte i of a sequence, or -1. */
static int more(struct str t, size_t i)
{
	return i < t.len && (t.data[i] & 0xc0) == 0x80 ? t.data[i] & 0x3f : -1;
}

/* Takes one character at byte *i. Modified UTF-8 encodes surrogates in pairs, and NUL as two
 * bytes. */
static uint32_t take_character(struct str t, size_t *i)
{
	const uint8_t b = (uint8_t)t.data[*i];
	const int one = more(t, *i + 1), two = more(t, *i + 2);
	uint32_t v = '?';

	if (b < 0x80) {
		*i += 1;
		return b < ' ' || b == 0x7f ? '?' : b;
	}
	if ((b & 0xe0) == 0xc0 && one >= 0) {
		*i += 2;
		v = (b & 0x1fu) << 6 | (uint32_t)one;
		return v < 0x80 ? '?' : v;
	}
	if ((b & 0xf0) != 0xe0 || one < 0 || two < 0) {
		*i += 1;
		return '?';
	}
	*i += 3;
	v = (b & 0x0fu) << 12 | (uint32_t)one << 6 | (uint32_t)two;
	if (v < 0xd800 || v > 0xdfff)
		return v < 0x800 ? '?' : v;
	const int low = more(t, *i + 1), last = more(t, *i + 2);

	if (v > 0xdbff || *i >= t.len || (uint8_t)t.data[*i] != 0xed || low < 0x30 || last < 0)
		return '?';
	*i += 3;
	return 0x10000 + ((v - 0xd800) << 10) + ((uint32_t)(low & 0x0f) << 6 | (uint32_t)last);
}

/* Appends text, and replaces each '/' with another character. */
static void append_with(struct str t, char slash, struct runtime_text *ret)
{
	for (size_t i = 0; i < t.len && ret->len < RUNTIME_TEXT;) {
		uint32_t v = take_character(t, &i);

		runtime_append_character(ret, v == '/' ? (uint8_t)slash : v);
	}
}

void hotspot_append(struct str text, struct runtime_text *ret)
{
	append_with(text, '/', ret);
}

void hotspot_class_text(struct str name, struct runtime_text *ret)
{
	append_with((struct str){ .data = name.data, .len = (uint32_t)without_number(name) }, '.',
		    ret);
}

/* Appends one type at byte *i of a descriptor. Returns false if there is none. */
static bool put_type(struct str d, size_t *i, struct runtime_text *ret)
{
	static const char *const names[26] = { ['B' - 'A'] = "byte",   ['C' - 'A'] = "char",
					       ['D' - 'A'] = "double", ['F' - 'A'] = "float",
					       ['I' - 'A'] = "int",    ['J' - 'A'] = "long",
					       ['S' - 'A'] = "short",  ['Z' - 'A'] = "boolean" };
	unsigned arrays = 0;

	for (; *i < d.len && d.data[*i] == '['; ++*i)
		arrays++;
	if (*i >= d.len)
		return false;
	const char kind = d.data[*i];

	++*i;
	if (kind == 'L' || kind == 'Q') {
		const char *end = memchr(d.data + *i, ';', d.len - *i);

		if (!end)
			return false;
		const size_t len = (size_t)(end - (d.data + *i));

		hotspot_class_text((struct str){ .data = d.data + *i, .len = (uint32_t)len }, ret);
		*i += len + 1;
	} else if (kind >= 'A' && kind <= 'Z' && names[kind - 'A']) {
		append(ret, names[kind - 'A']);
	} else {
		return false;
	}
	for (; arrays && ret->len < RUNTIME_TEXT; arrays--)
		append(ret, "[]");
	return true;
}

void hotspot_parameters(struct str descriptor, struct runtime_text *ret)
{
	size_t i = 1;

	if (!descriptor.len || descriptor.data[0] != '(')
		return;
	append(ret, "(");
	while (i < descriptor.len && descriptor.data[i] != ')') {
		if (i > 1)
			append(ret, ", ");
		if (!put_type(descriptor, &i, ret))
			break;
	}
	append(ret, ")");
}
