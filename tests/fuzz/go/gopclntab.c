/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a whole file, read as a Go program. Checks every function, its stack depths, and the calls
 * at its first, middle and last address. Ranges must rise and stay in their function; functions
 * must rise and stay in the file's code.
 */
#include <stdlib.h>
#include <string.h>
#include "common/go/gopclntab.h"
#include "tests/fuzz/must.h"

#define CACHE 8192 /* two pages, for files of one page or more */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	const uint8_t *data;
	size_t size;
};

static int64_t read_bytes(void *ctx, uint64_t offset, void *into, size_t n)
{
	const struct bytes *b = ctx;

	if (offset >= b->size)
		return 0;
	n = n < b->size - offset ? n : (size_t)(b->size - offset);
	memcpy(into, b->data + offset, n);
	return (int64_t)n;
}

static void walk(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table)
{
	uint64_t start, end, at = f->entry;
	struct gopclntab_values v;
	int32_t value;

	gopclntab_values(t, f, table, &v);
	while (gopclntab_next(&v, &start, &end, &value) == 0) {
		must(start == at && end > start && end <= f->end);
		at = end;
	}
}

static void name_calls(struct gopclntab *t, const struct gopclntab_func *f, uint64_t address)
{
	struct gopclntab_call calls[5];
	char text[100];
	int count = gopclntab_calls(t, f, address, calls, 5);

	must(count >= 1 && count <= 5);
	for (int i = 0; i < count; i++) {
		if (gopclntab_name(t, calls[i].name, text, sizeof(text)) == 0)
			must(strlen(text) > 0 && strlen(text) < sizeof(text));
		if (gopclntab_file(t, f, calls[i].file, text, sizeof(text)) == 0)
			must(strlen(text) > 0 && strlen(text) < sizeof(text));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { .data = data, .size = size };
	struct gopclntab_reader reader = {
		.read = read_bytes, .ctx = &b, .size = size, .cache_size = CACHE
	};
	struct gopclntab *t;

	if (gopclntab_open(&reader, &t) != 0)
		return 0;
	must(gopclntab_count(t) > 0);
	for (uint32_t i = 0; i < gopclntab_count(t) && i < 256; i++) {
		struct gopclntab_func f;
		uint32_t found, table;

		if (gopclntab_func(t, i, &f) != 0)
			continue;
		must(f.entry <= f.end && f.end - f.entry <= size);
		walk(t, &f, f.pcsp);
		if (gopclntab_pcdata(t, &f, i, &table) == 0)
			walk(t, &f, table);
		name_calls(t, &f, f.entry);
		name_calls(t, &f, f.entry + (f.end - f.entry) / 2);
		if (f.end > f.entry)
			name_calls(t, &f, f.end - 1);
		if (gopclntab_find(t, f.entry, &found) == 0)
			must(found < gopclntab_count(t));
	}
	must(gopclntab_bytes(t) > 0);
	gopclntab_free(t);
	return 0;
}
