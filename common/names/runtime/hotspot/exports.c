/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/runtime/hotspot/exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"

/* As in struct VMStructEntry and VMTypeEntry. The file does not contain the tables' own description
 * of these offsets either. */
#define FIELD_WORDS 6 /* type, name, type of the field, whether it is static, offset, address */
#define TYPE_WORDS 5  /* type, superclass, three ints, size */
#define NAME 64
#define TYPES 4096
#define INITIALIZERS 8192	/* initializers of a file, at most */
#define HEAD_BYTES 4096		/* bytes of each initializer, in which the first stores must be */
#define CODE_BYTES (256u << 10) /* bytes of the initializer that stores the offsets */
#define STORE_BYTES 11		/* mov qword [rip + disp32], imm32 */
#define ENOUGH 8		/* with this many stores, an initializer is the right one */

/* The table of fields: its place, and the offsets found so far. */
struct table {
	uint64_t address, count;
	uint64_t *offset; /* owned */
};

static uint64_t signed_at(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return (uint64_t)(int64_t)v;
}

/* Finds the instructions that store offsets in the table. Returns how many. */
static size_t find_stores(const uint8_t *code, size_t len, uint64_t address, struct table *t)
{
	const size_t entry = FIELD_WORDS * 8;
	size_t found = 0;

	for (size_t i = 0; i + STORE_BYTES <= len; i++) {
		if (code[i] != 0x48 || code[i + 1] != 0xc7 || code[i + 2] != 0x05)
			continue;
		const uint64_t at = address + i + STORE_BYTES + signed_at(code + i + 3) -
				    t->address;

		if (at >= t->count * entry || at % entry != 4 * 8)
			continue;
		t->offset[at / entry] = signed_at(code + i + 7);
		found++;
	}
	return found;
}

/* Reads as many bytes as there are, at most n. */
static size_t read_most(const struct elfview *im, uint64_t address, uint8_t *into, size_t n)
{
	uint64_t offset, left;

	if (symfile_offset(im->file, address, &offset, &left) != 0)
		return 0;
	n = numbers_smaller(left, n);
	return elfview_read(im, address, into, n) == 0 ? n : 0;
}

/* Searches the initializers for the one that fills the table. Returns 0 also if there is none;
 * -ENOMEM; or enum symfile_verdict. */
static int find_offsets(struct elfview *im, struct table *t, bool *ret_any)
{
	const struct symfile_section *s;
	uint64_t *at;
	uint8_t *code;
	int r = symfile_section(im->file, ".init_array", &s);

	if (r)
		return r;
	const size_t count = numbers_smaller(s->size / 8, INITIALIZERS);

	at = calloc(count + 1, sizeof(*at));
	code = malloc(CODE_BYTES);
	r = at && code ? elfview_words(im, s->addr, at, count) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++) {
		size_t n = read_most(im, at[i], code, HEAD_BYTES);

		if (find_stores(code, n, at[i], t) < ENOUGH)
			continue;
		n = read_most(im, at[i], code, CODE_BYTES);
		find_stores(code, n, at[i], t);
		*ret_any = true;
		break;
	}
	free(at);
	free(code);
	return r;
}

/* Finds the address of a table, which an exported variable holds. */
static int table_at(struct elfview *im, const char *name, uint64_t *ret)
{
	struct elfview_symbol s;
	int r = elfview_defined(im, name, &s);

	return r ? r : elfview_words(im, s.value, ret, 1);
}

static void use(const struct elfview *im, const uint64_t *entry, uint64_t offset, const char *type,
		struct exports_field *fields, size_t count)
{
	char name[NAME], kind[sizeof(fields[0].kind)];

	if (elfview_string(im, entry[1], name, sizeof(name)) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(fields[i].type, type) != 0 || strcmp(fields[i].field, name) != 0)
			continue;
		fields[i].value = (uint32_t)entry[3] ? entry[5] : offset;
		if (entry[2] && elfview_string(im, entry[2], kind, sizeof(kind)) == 0)
			memcpy(fields[i].kind, kind, sizeof(kind));
	}
}

static bool is_wanted(const struct exports_field *fields, size_t count, const char *type)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(fields[i].type, type) == 0)
			return true;
	return false;
}

static int read_fields(struct elfview *im, struct exports_field *fields, size_t count)
{
	struct table t = { 0 };
	uint64_t entry[FIELD_WORDS];
	char type[NAME];
	bool any = false; /* at least one offset is not 0 */
	int r = table_at(im, "gHotSpotVMStructs", &t.address);

	while (r == 0 && t.count < EXPORTS_FIELDS) {
		r = elfview_words(im, t.address + t.count * sizeof(entry), entry, FIELD_WORDS);
		if (r || !entry[0])
			break;
		any |= entry[4] != 0;
		t.count++;
	}
	if (r)
		return r;
	t.offset = calloc(t.count + 1, sizeof(*t.offset));
	if (!t.offset)
		return -ENOMEM;
	r = find_offsets(im, &t, &any);
	if (r == 0 && !any)
		r = SYMFILE_NONE;
	for (uint64_t i = 0; r == 0 && i < t.count; i++) {
		r = elfview_words(im, t.address + i * sizeof(entry), entry, FIELD_WORDS);
		if (r || elfview_string(im, entry[0], type, sizeof(type)) != 0 ||
		    !is_wanted(fields, count, type))
			continue;
		/* In some builds the file itself contains the offsets. */
		if (entry[4])
			t.offset[i] = entry[4];
		use(im, entry, t.offset[i], type, fields, count);
	}
	free(t.offset);
	return r;
}

static int read_types(struct elfview *im, struct exports_type *types, size_t count)
{
	uint64_t entry[TYPE_WORDS], address;
	char type[NAME];
	int r = table_at(im, "gHotSpotVMTypes", &address);

	for (size_t n = 0; r == 0 && n < TYPES; n++) {
		r = elfview_words(im, address + n * sizeof(entry), entry, TYPE_WORDS);
		if (r || !entry[0])
			break;
		if (elfview_string(im, entry[0], type, sizeof(type)) != 0)
			continue;
		for (size_t i = 0; i < count; i++)
			if (strcmp(types[i].type, type) == 0)
				types[i].size = entry[4];
	}
	return r;
}

int exports_read(struct elfview *im, struct exports_field *fields, size_t field_count,
		 struct exports_type *types, size_t type_count)
{
	for (size_t i = 0; i < field_count; i++) {
		fields[i].value = EXPORTS_NONE;
		fields[i].kind[0] = '\0';
	}
	for (size_t i = 0; i < type_count; i++)
		types[i].size = EXPORTS_NONE;

	int r = read_fields(im, fields, field_count);

	if (r == 0)
		r = read_types(im, types, type_count);
	return r > 0 ? SYMFILE_NONE : r;
}
