/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All tables are checked as a whole, and must agree. The layout has more than COUNT_MIN builtins,
 * each right after the previous one. The metadata has as many names, of which the last are
 * handlers. In the code, all gaps between builtins have the bytes that V8 puts there. Other data
 * does not match by chance.
 */
#include "common/names/runtime/v8/builtins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"
#include "common/base/bytes/unaligned.h"
#include "common/names/runtime/v8/version.h"

#define COUNT_MIN 256u
#define COUNT_MAX 8192u
#define ALIGNMENT 32u /* alignment of builtins; newer versions have 64 */
#define SIZE_MAX_ONE (1u << 20)
#define GAP_MAX 128u  /* largest gap between two builtins, in bytes */
#define GAP_BYTE 0xcc /* V8 fills gaps with this byte */
#define CODE_MAX (16u << 20)
#define LAYOUT_TRIES 1024u /* places where a layout may begin that are read further */
#define CODE_TRIES 65536u  /* gaps that look like the largest one */
#define GAP_CHECKS 262144u /* gaps checked for all of these */
#define CHUNK (64u << 10)
#define TABLE_MAX (64u << 20) /* bytes of a section that are searched for the layout */
#define POINTERS 4
#define KINDS 16 /* kinds of builtins; there are 7 to 10 */
#define METADATA_WORDS 3
#define METADATA_BYTES (METADATA_WORDS * 8)
#define PREFIX "Builtins_"
#define ENTRY "InterpreterEntryTrampoline"
#define FIRST_HANDLER "WideHandler"
#define HANDLER "Handler"

/* Bytes of an entry of the layout, by version. Its first two numbers are an offset and a size. */
static const uint8_t strides[] = { 8, 12, 16, 28, 32 };
#define STRIDES (sizeof(strides) / sizeof(strides[0]))
#define STRIDE_MAX 32u

/* --- the layout --- */

/* Whether a builtin can follow one that ends at `end`. */
static bool can_follow(uint32_t end, uint32_t offset, uint32_t size)
{
	return offset % ALIGNMENT == 0 && offset >= end && offset - end <= GAP_MAX && size > 0 &&
	       size <= SIZE_MAX_ONE && offset < CODE_MAX;
}

/* Reads the layout at a file offset. Returns 0, SYMFILE_NONE (there is none), -ENOMEM or -errno. */
static int read_layout(const struct elfview *im, uint64_t at, uint64_t left, unsigned stride,
		       struct v8_builtins *b)
{
	const uint64_t most = (uint64_t)COUNT_MAX * stride;
	const size_t bytes = (size_t)numbers_smaller(left, most);
	uint8_t *table = malloc(bytes);
	uint32_t end = 0;
	int r = table ? symfile_read(im->file, at, table, bytes) : -ENOMEM;

	b->count = 0;
	for (size_t i = 0; r == 0 && i + stride <= bytes; i += stride) {
		const uint32_t offset = unaligned_u32(table + i),
			       size = unaligned_u32(table + i + 4);

		if (!can_follow(end, offset, size))
			break;
		b->at[b->count++] = (struct v8_builtin){ .offset = offset, .size = size };
		end = offset + size;
	}
	free(table);
	return r ? r : b->count < COUNT_MIN ? SYMFILE_NONE : 0;
}

/* Whether these bytes begin a layout: the first two builtins. */
static bool begins_layout(const uint8_t *p, unsigned stride)
{
	return unaligned_u32(p) == 0 && can_follow(0, 0, unaligned_u32(p + 4)) &&
	       can_follow(unaligned_u32(p + 4), unaligned_u32(p + stride),
			  unaligned_u32(p + stride + 4));
}

/* Finds the layout in a section. Returns 0, SYMFILE_NONE, -ENOMEM or -errno. */
static int find_layout(const struct elfview *im, const char *section, struct v8_builtins *b)
{
	const struct symfile_section *s;
	int r = symfile_section(im->file, section, &s);

	if (r || s->type == SHT_NOBITS || s->size > TABLE_MAX)
		return SYMFILE_NONE;

	const size_t overlap = STRIDE_MAX + 8;
	uint8_t *chunk = malloc(CHUNK);
	uint32_t tries = 0;

	r = chunk ? SYMFILE_NONE : -ENOMEM;
	/* The table is aligned to 8 bytes. */
	for (uint64_t from = 0; r == SYMFILE_NONE && s->size - from > overlap;
	     from += CHUNK - overlap) {
		const uint64_t left = s->size - from;
		const size_t n = numbers_smaller(left, CHUNK);
		const int failed = symfile_read(im->file, s->offset + from, chunk, n);

		if (failed)
			r = failed;
		for (size_t i = (size_t)(-(s->addr + from) & 7);
		     r == SYMFILE_NONE && i + overlap <= n; i += 8) {
			for (unsigned k = 0; k < STRIDES && r == SYMFILE_NONE; k++)
				if (begins_layout(chunk + i, strides[k]) && tries++ < LAYOUT_TRIES)
					r = read_layout(im, s->offset + from + i, left - i,
							strides[k], b);
		}
		if (left <= CHUNK)
			break;
	}
	free(chunk);
	return r;
}

/* --- the code --- */

static uint32_t end_of(const struct v8_builtin *b)
{
	return b->offset + b->size;
}

/* Returns the builtin that is followed by the largest gap. */
static uint32_t before_largest_gap(const struct v8_builtins *b)
{
	uint32_t best = 0, largest = 0;

	for (uint32_t i = 0; i + 1 < b->count; i++) {
		const uint32_t gap = b->at[i + 1].offset - end_of(&b->at[i]);

		if (gap > largest) {
			largest = gap;
			best = i;
		}
	}
	return best;
}

/* Whether the builtins begin at an address: all gaps are filled as V8 does it. */
static bool is_code(const struct elfview *im, const struct v8_builtins *b, uint64_t start,
		    uint32_t *checks)
{
	uint8_t gap[GAP_MAX], filled[GAP_MAX];

	memset(filled, GAP_BYTE, sizeof(filled));
	for (uint32_t i = 0; i + 1 < b->count; i++) {
		const uint32_t end = end_of(&b->at[i]), n = b->at[i + 1].offset - end;

		if (n && ((*checks)++ == GAP_CHECKS || elfview_read(im, start + end, gap, n) != 0 ||
			  memcmp(gap, filled, n)))
			return false;
	}
	return true;
}

static int find_code(const struct elfview *im, struct v8_builtins *b)
{
	const uint32_t before = before_largest_gap(b), end = end_of(&b->at[before]);
	const uint32_t length = end_of(&b->at[b->count - 1]);
	uint8_t filled[GAP_MAX];
	struct span gap = { .data = filled, .len = b->at[before + 1].offset - end };
	uint64_t at = 0, offset, left;
	uint32_t checks = 0;

	memset(filled, GAP_BYTE, sizeof(filled));
	for (uint32_t i = 0; gap.len >= 8 && i < CODE_TRIES && checks < GAP_CHECKS; i++, at++) {
		int r = elfview_find(im, ".text", gap, at, &at);

		if (r)
			return r;
		b->start = at - end;
		b->end = b->start + length;
		if (b->start % ALIGNMENT == 0 && at > end &&
		    symfile_offset(im->file, b->start, &offset, &left) == 0 && length <= left &&
		    is_code(im, b, b->start, &checks))
			return 0;
	}
	return SYMFILE_NONE;
}

/* --- the metadata --- */

/* Reads a builtin's name. Returns false if it has none. */
static bool read_name(const struct elfview *im, uint64_t address, char ret[static V8_BUILTIN_NAME])
{
	if (!address || elfview_string(im, address, ret, V8_BUILTIN_NAME) != 0)
		return false;

	const size_t len = strspn(ret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				       "0123456789_");

	return len > 1 && len < V8_BUILTIN_NAME - sizeof(PREFIX) && !ret[len];
}

/* The contents of an entry of the metadata: its name, kind, and the code or number of arguments.
 * Entries that the program computes are zero in the file. */
enum metadata { METADATA_NONE, METADATA_NAMED, METADATA_HOLE };

static enum metadata read_metadata(struct elfview *im, uint64_t at, uint64_t *ret_name)
{
	uint64_t word[METADATA_WORDS];
	char name[V8_BUILTIN_NAME];

	*ret_name = 0;
	if (elfview_words(im, at, word, METADATA_WORDS) != 0)
		return METADATA_NONE;
	if (!word[0] && !word[1] && !word[2])
		return METADATA_HOLE;
	if (word[1] >= KINDS || !read_name(im, word[0], name))
		return METADATA_NONE;
	*ret_name = word[0];
	return METADATA_NAMED;
}

/* Whether the first builtin may have this name. The entry before the first builtin never has such a
 * name. */
static bool is_first(const char *name)
{
	const struct str s = str_from(name);

	return str_starts(s, "DeoptimizationEntry") || str_starts(s, "RecordWrite");
}

/* Reads the name of an entry of the metadata; "" if it has none. */
static enum metadata metadata_name(struct elfview *im, uint64_t at,
				   char ret[static V8_BUILTIN_NAME])
{
	uint64_t name;
	const enum metadata m = read_metadata(im, at, &name);

	if (m != METADATA_NAMED || !read_name(im, name, ret))
		ret[0] = '\0';
	return m;
}

/* Counts entries of the metadata from the interpreter's entry, which is at an address: up to the
 * first handler, and up to the end of the handlers, which are the last ones. Returns false if there
 * is no handler. */
static bool count_metadata(struct elfview *im, uint64_t at, uint32_t *ret_handlers,
			   uint32_t *ret_end)
{
	char name[V8_BUILTIN_NAME];
	uint32_t handlers = 0, i;

	for (i = 1; i < COUNT_MAX; i++) {
		const enum metadata m = metadata_name(im, at + (uint64_t)i * METADATA_BYTES, name);

		if (m == METADATA_NONE || (handlers && !str_ends(str_from(name), HANDLER)))
			break;
		if (strcmp(name, FIRST_HANDLER) == 0)
			handlers = i;
	}
	*ret_handlers = handlers;
	*ret_end = i;
	return handlers > 0;
}

/* Takes the names from the metadata in which the interpreter's entry is at an address. Returns
 * false if they are not those of the builtins. */
static bool take_names(struct elfview *im, uint64_t at, struct v8_builtins *b)
{
	char name[V8_BUILTIN_NAME], before[V8_BUILTIN_NAME];
	uint32_t handlers, end;

	if (!count_metadata(im, at, &handlers, &end))
		return false;
	/* V8 8.6 has two more numbers after the layout. */
	for (uint32_t more = 0; more < 2; more++) {
		const uint32_t count = b->count - more;

		if (count <= end)
			break;

		const uint64_t first = at - (uint64_t)(count - end) * METADATA_BYTES;

		metadata_name(im, first, name);
		metadata_name(im, first - METADATA_BYTES, before);
		if (!is_first(name) || is_first(before))
			continue;
		b->count = count;
		b->entry = count - end;
		b->handlers = b->entry + handlers;
		for (uint32_t i = 0; i < count; i++)
			if (read_metadata(im, first + (uint64_t)i * METADATA_BYTES,
					  &b->at[i].name) == METADATA_NONE)
				return false;
		b->end = b->start + end_of(&b->at[count - 1]);
		return true;
	}
	return false;
}

static int find_names(struct elfview *im, struct v8_builtins *b)
{
	uint64_t text, pointers[POINTERS];
	size_t count = 0;
	int r = elfview_text(im, ".rodata", ENTRY, &text);

	if (r == 0)
		r = elfview_pointers(im, text, pointers, POINTERS, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (take_names(im, pointers[i], b))
			return 0;
	return r < 0 ? r : SYMFILE_NONE;
}

/* --- all --- */

int v8_builtins_find(struct elfview *im, struct v8_builtins **ret)
{
	struct v8_builtins *b = calloc(1, sizeof(*b));

	if (b)
		b->at = calloc(COUNT_MAX, sizeof(*b->at));
	if (!b || !b->at) {
		v8_builtins_free(b);
		return -ENOMEM;
	}

	/* Versions before 9 have the layout right before the code. */
	int r = find_layout(im, ".rodata", b);

	if (r > 0)
		r = find_layout(im, ".text", b);
	if (r == 0)
		r = find_code(im, b);
	if (r == 0)
		r = find_names(im, b);
	if (r) {
		v8_builtins_free(b);
		return r < 0 ? r : SYMFILE_NONE;
	}

	struct v8_builtin *fit = realloc(b->at, b->count * sizeof(*fit));

	b->at = fit ? fit : b->at;
	*ret = b;
	return 0;
}

int v8_builtins_open(const struct symfile *f, struct v8_builtins **ret)
{
	struct v8_version version;
	struct elfview im;

	elfview_init(&im, f);
	int r = v8_version(&im, &version);

	if (r == 0)
		r = v8_builtins_find(&im, ret);
	elfview_done(&im);
	return r < 0 ? r : r ? SYMFILE_NONE : 0;
}

void v8_builtins_free(struct v8_builtins *b)
{
	if (!b)
		return;
	free(b->at);
	free(b);
}

int v8_builtins_name(const struct v8_builtins *b, const struct symfile *f, uint64_t address,
		     char ret[static V8_BUILTIN_NAME])
{
	uint32_t low = 0, high = b->count;
	struct elfview im;
	char name[V8_BUILTIN_NAME];

	if (address - b->start >= b->end - b->start)
		return SYMFILE_NONE;
	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;

		if (b->at[middle].offset <= address - b->start)
			low = middle;
		else
			high = middle;
	}
	if (address - b->start - b->at[low].offset >= b->at[low].size)
		return SYMFILE_NONE;
	elfview_init(&im, f);
	if (!read_name(&im, b->at[low].name, name))
		return SYMFILE_NONE;
	memcpy(ret, PREFIX, strlen(PREFIX));
	memcpy(ret + strlen(PREFIX), name, strlen(name) + 1);
	return 0;
}

size_t v8_builtins_bytes(const struct v8_builtins *b)
{
	return sizeof(*b) + b->count * sizeof(*b->at);
}
