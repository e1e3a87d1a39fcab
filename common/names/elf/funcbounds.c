/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/elf/funcbounds.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/names/elf/filestarts.h"
#include "common/names/elf/symreach.h"
#include "common/svm/svmcode.h"

#define WINDOW 4096u
#define STEPS 128u	       /* seven steps */
#define MAX_ENTRIES (1u << 18) /* of a file without a sorted table */
#define MAX_FRAMES (64u << 20) /* bytes of one section of call frame information */
#define METHOD_MAX (64u << 10) /* bytes of a method before an address */
#define SMALL_GAP 64u	       /* bytes; a smaller gap does not justify reading all code */
#define GAP_PART 4096u	       /* nor does one that is a smaller part of its section */

struct funcbounds_range {
	uint64_t start, end;
};

struct funcbounds {
	const struct symfile *file;
	/* The table of .eh_frame_hdr. table_count is 0 if there is no usable one. */
	uint64_t table, table_address, table_count;
	struct funcbounds_range *ranges; /* if there is no table: all entries, sorted */
	size_t range_count, range_cap;
	bool tried;
	/* What the first steps of a binary search in the table read, as a binary tree: step k is at
	 * one of the indices from 2^k on. 0: not read yet. */
	uint64_t step[STEPS];
	struct filestarts code; /* for code without call frame information */
	/* The part of the file that was read last. */
	uint64_t window_at;
	size_t window_len;
	uint8_t window[WINDOW];
};

int funcbounds_new(const struct symfile *f, struct funcbounds **ret)
{
	struct funcbounds *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->file = f;
	filestarts_init(&x->code, f);
	*ret = x;
	return 0;
}

void funcbounds_free(struct funcbounds *x)
{
	if (!x)
		return;
	free(x->ranges);
	filestarts_done(&x->code);
	free(x);
}

size_t funcbounds_bytes(const struct funcbounds *x)
{
	return sizeof(*x) + x->range_cap * sizeof(*x->ranges) +
	       x->code.starts.cap * sizeof(*x->code.starts.at);
}

/* --- call frame information --- */

/* Reads up to n bytes at a file offset; fewer at the file's end. *ret is borrowed until the next
 * call. */
static int look(struct funcbounds *x, uint64_t offset, size_t n, struct span *ret)
{
	const uint64_t size = symfile_size(x->file);

	if (offset >= size)
		return SYMFILE_MALFORMED;
	n = n < size - offset ? n : (size_t)(size - offset);
	if (offset < x->window_at || offset - x->window_at > x->window_len ||
	    n > x->window_len - (offset - x->window_at)) {
		const size_t len = WINDOW < size - offset ? WINDOW : (size_t)(size - offset);
		int r = symfile_read(x->file, offset, x->window, len);

		x->window_at = offset;
		x->window_len = r ? 0 : len;
		if (r)
			return r;
	}
	*ret = (struct span){ .data = x->window + (offset - x->window_at), .len = n };
	return 0;
}

static bool skip_leb(struct span *s)
{
	uint8_t byte;

	do {
		if (!span_read(s, &byte, 1))
			return false;
	} while (byte & 0x80);
	return true;
}

/* The size in bytes of a pointer by its encoding, DW_EH_PE_*; 0: unknown. */
static size_t pointer_size(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case 0x00: /* absptr */
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		return 8;
	case 0x03: /* udata4 */
	case 0x0b: /* sdata4 */
		return 4;
	case 0x02: /* udata2 */
	case 0x0a: /* sdata2 */
		return 2;
	}
	return 0;
}

static bool read_pointer(struct span *s, uint8_t encoding, uint64_t *ret)
{
	const size_t n = pointer_size(encoding);
	uint64_t value = 0;

	if (!n || !span_read(s, &value, n))
		return false;
	if (encoding & 0x08 && n < 8 && value >> (8 * n - 1))
		value |= ~0ull << 8 * n;
	*ret = value;
	return true;
}

/* A section of call frame information. */
struct frames {
	uint64_t offset, address, size;
	bool eh;
};

/* The head of an entry. */
struct funcbounds_entry {
	uint64_t length; /* of the whole entry, including the length field */
	uint64_t cie;	 /* the offset of its CIE in the section; UINT64_MAX: this is a CIE */
	size_t head;	 /* size in bytes of length and id */
};

static int read_head(struct funcbounds *x, const struct frames *f, uint64_t at,
		     struct funcbounds_entry *ret)
{
	struct span s;
	uint32_t length, id;
	uint64_t wide;
	int r = look(x, f->offset + at, 20, &s);

	if (r)
		return r;
	if (!span_read(&s, &length, 4))
		return SYMFILE_MALFORMED;
	if (length == 0) {
		*ret = (struct funcbounds_entry){ .length = 4, .cie = UINT64_MAX, .head = 4 };
		return 0;
	}
	if (length == UINT32_MAX) {
		if (!span_read(&s, &wide, 8) || wide > f->size)
			return SYMFILE_MALFORMED;
		*ret = (struct funcbounds_entry){ .length = 12 + wide, .head = 12 };
	} else {
		*ret = (struct funcbounds_entry){ .length = 4 + (uint64_t)length, .head = 4 };
	}
	const bool is_wide = ret->head == 12 && !f->eh;

	if (!span_read(&s, &id, 4))
		return SYMFILE_MALFORMED;
	wide = id;
	if (is_wide && !span_read(&s, (uint8_t *)&wide + 4, 4))
		return SYMFILE_MALFORMED;
	if (f->eh)
		ret->cie = id && id <= at + ret->head ? at + ret->head - id : UINT64_MAX;
	else
		ret->cie = wide == (is_wide ? UINT64_MAX : UINT32_MAX) ? UINT64_MAX : wide;
	ret->head += is_wide ? 8 : 4;
	return ret->length < ret->head || ret->length > f->size - at ? SYMFILE_MALFORMED : 0;
}

/* Reads how the entries of a CIE encode their addresses. */
static int read_encoding(struct funcbounds *x, const struct frames *f, uint64_t at, uint8_t *ret)
{
	struct funcbounds_entry e;
	struct span s, augmentation = { 0 };
	uint8_t version, byte;
	int r = at < f->size ? read_head(x, f, at, &e) : SYMFILE_MALFORMED;

	if (!r && e.cie != UINT64_MAX)
		r = SYMFILE_MALFORMED;
	if (!r)
		r = look(x, f->offset + at + e.head, 64, &s);
	if (r)
		return r;
	*ret = 0;
	if (!f->eh)
		return 0;
	if (!span_read(&s, &version, 1))
		return SYMFILE_MALFORMED;
	augmentation.data = s.data;
	while (span_read(&s, &byte, 1) && byte)
		augmentation.len++;
	if (!augmentation.len || augmentation.data[0] != 'z')
		return 0;
	if (!skip_leb(&s) || !skip_leb(&s) ||
	    !(version == 1 ? span_read(&s, &byte, 1) : skip_leb(&s)) || !skip_leb(&s))
		return SYMFILE_MALFORMED;
	for (size_t i = 1; i < augmentation.len; i++) {
		uint64_t personality;

		switch (augmentation.data[i]) {
		case 'R':
			return span_read(&s, ret, 1) ? 0 : SYMFILE_MALFORMED;
		case 'P':
			if (!span_read(&s, &byte, 1) || !read_pointer(&s, byte, &personality))
				return SYMFILE_MALFORMED;
			break;
		case 'L':
			if (!span_read(&s, &byte, 1))
				return SYMFILE_MALFORMED;
			break;
		}
	}
	return 0;
}

/* Reads the range of code that an entry covers. */
static int read_range(struct funcbounds *x, const struct frames *f, uint64_t at,
		      const struct funcbounds_entry *e, uint8_t encoding,
		      struct funcbounds_range *ret)
{
	const uint64_t address = f->address + at + e->head;
	struct span s;
	uint64_t start, size;
	int r = look(x, f->offset + at + e->head, 16, &s);

	if (r)
		return r;
	if ((encoding & 0x70) != 0 && (encoding & 0x70) != 0x10)
		return SYMFILE_NONE; /* an encoding that programs do not use */
	if (encoding & 0x80 || !read_pointer(&s, encoding, &start) ||
	    !read_pointer(&s, encoding & 0x07, &size))
		return SYMFILE_MALFORMED;
	if (encoding & 0x10)
		start += address;
	if (!size || __builtin_add_overflow(start, size, &ret->end))
		return SYMFILE_NONE;
	ret->start = start;
	return 0;
}

static int add_range(struct funcbounds *x, struct funcbounds_range range)
{
	if (x->range_count == x->range_cap) {
		const size_t cap = x->range_cap ? 2 * x->range_cap : 1024;
		struct funcbounds_range *more;

		if (cap > MAX_ENTRIES)
			return SYMFILE_TOO_LARGE;
		more = realloc(x->ranges, cap * sizeof(*more));
		if (!more)
			return -ENOMEM;
		x->ranges = more;
		x->range_cap = cap;
	}
	x->ranges[x->range_count++] = range;
	return 0;
}

static int read_all(struct funcbounds *x, const struct frames *f)
{
	uint64_t known = UINT64_MAX;
	uint8_t encoding = 0;
	int r = 0;

	for (uint64_t at = 0; !r && f->size - at >= 8;) {
		struct funcbounds_entry e;
		struct funcbounds_range range;

		r = read_head(x, f, at, &e);
		if (r)
			break;
		if (e.cie != UINT64_MAX) {
			if (e.cie != known)
				r = read_encoding(x, f, e.cie, &encoding);
			known = r ? UINT64_MAX : e.cie;
			if (!r)
				r = read_range(x, f, at, &e, encoding, &range);
			if (!r)
				r = add_range(x, range);
			else if (r > 0)
				r = 0; /* skip an entry with an unknown encoding */
		}
		at += e.length;
	}
	return r < 0 || r == SYMFILE_TOO_LARGE ? r : 0;
}

static int by_start(const void *left, const void *right)
{
	const struct funcbounds_range *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* Finds the table, or reads all entries if there is none. */
static int begin(struct funcbounds *x)
{
	static const char *const sections[] = { ".eh_frame", ".debug_frame" };
	uint64_t address, offset, size;
	uint8_t head[SYMREACH_HEADER];
	int r;

	if (x->tried)
		return 0;
	x->tried = true;
	if (symfile_frame_header(x->file, &address, &offset, &size) == 0 && size >= sizeof(head)) {
		r = symfile_read(x->file, offset, head, sizeof(head));
		if (r < 0)
			return r;
		x->table = offset + sizeof(head);
		x->table_address = address;
		x->table_count = r ? 0 : symreach_table(head);
		if (x->table_count > (size - sizeof(head)) / SYMREACH_ENTRY)
			x->table_count = (size - sizeof(head)) / SYMREACH_ENTRY;
		if (x->table_count)
			return 0;
	}
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		const struct symfile_section *s;

		if (symfile_section(x->file, sections[i], &s) || s->type == SHT_NOBITS ||
		    s->flags & SHF_COMPRESSED || s->size > MAX_FRAMES ||
		    s->offset > symfile_size(x->file) ||
		    s->size > symfile_size(x->file) - s->offset)
			continue;
		const struct frames f = {
			.offset = s->offset, .address = s->addr, .size = s->size, .eh = i == 0
		};

		r = read_all(x, &f);
		if (r) {
			free(x->ranges);
			x->ranges = NULL;
			x->range_count = x->range_cap = 0;
			return r;
		}
	}
	if (x->range_count)
		qsort(x->ranges, x->range_count, sizeof(*x->ranges), by_start);
	return 0;
}

/* Whether the window contains entry i of the table. */
static bool has_entry(const struct funcbounds *x, uint64_t i)
{
	const uint64_t offset = x->table + i * SYMREACH_ENTRY;

	return offset >= x->window_at && offset - x->window_at + SYMREACH_ENTRY <= x->window_len;
}

static int table_entry(struct funcbounds *x, uint64_t i, uint64_t *ret_start, uint64_t *ret_entry)
{
	const uint64_t offset = x->table + i * SYMREACH_ENTRY;
	int32_t pair[2];
	int r = 0;

	if (has_entry(x, i))
		memcpy(pair, x->window + (offset - x->window_at), sizeof(pair));
	else
		r = symfile_read(x->file, offset, pair, sizeof(pair));
	if (r)
		return r;
	*ret_start = x->table_address + (uint64_t)(int64_t)pair[0];
	*ret_entry = x->table_address + (uint64_t)(int64_t)pair[1];
	return 0;
}

/* Returns the start of entry i in *ret. node: the place of this step in x->step. */
static int step_start(struct funcbounds *x, uint64_t node, uint64_t i, uint64_t *ret)
{
	uint64_t entry;
	int r;

	if (node >= STEPS)
		return table_entry(x, i, ret, &entry);
	if (!x->step[node]) {
		r = table_entry(x, i, &x->step[node], &entry);
		if (r)
			return r;
	}
	*ret = x->step[node];
	return 0;
}

/* Finds the last entry that begins at or before an address. *ret_next is the start of the next
 * one. */
static int in_table(struct funcbounds *x, uint64_t address, struct funcbounds_range *ret,
		    uint64_t *ret_next)
{
	uint64_t low = 0, high = x->table_count, node = 1, start, at, left;
	struct frames f = { .eh = true };
	uint8_t encoding;
	struct funcbounds_entry e;
	int r;

	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;

		/* Read all remaining entries at once, and the neighbours that are needed below. */
		if (high - low <= WINDOW / SYMREACH_ENTRY - 2 && !has_entry(x, middle)) {
			struct span s;
			const uint64_t first = low ? low - 1 : 0;

			r = look(x, x->table + first * SYMREACH_ENTRY, WINDOW, &s);
			if (r)
				return r;
		}
		r = step_start(x, node, middle, &start);
		if (r)
			return r;
		node = 2 * node + (start <= address);
		if (start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < x->table_count) {
		r = table_entry(x, low, ret_next, &at);
		if (r)
			return r;
	}
	if (!low)
		return SYMFILE_NONE;
	r = table_entry(x, low - 1, &start, &at);
	if (!r)
		r = symfile_offset(x->file, at, &f.offset, &left);
	if (r)
		return r;
	/* Treat the entry's whole segment as the section: the entry's CIE lies somewhere before
	 * it. */
	const struct symfile_layout *l = symfile_layout(x->file);
	uint64_t before = f.offset;

	for (uint32_t i = 0; i < l->segment_count; i++) {
		const struct symfile_segment *s = &l->segments[i];

		if (at >= s->vaddr && at - s->vaddr < s->filesz)
			before = at - s->vaddr;
	}
	f.offset -= before;
	f.address = at - before;
	f.size = before + left;
	r = read_head(x, &f, before, &e);
	if (!r && e.cie == UINT64_MAX)
		r = SYMFILE_MALFORMED;
	if (!r)
		r = read_encoding(x, &f, e.cie, &encoding);
	if (!r)
		r = read_range(x, &f, before, &e, encoding, ret);
	return r ? r : ret->start != start ? SYMFILE_MALFORMED : 0;
}

static int in_ranges(const struct funcbounds *x, uint64_t address, struct funcbounds_range *ret,
		     uint64_t *ret_next)
{
	size_t low = 0, high = x->range_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (x->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < x->range_count)
		*ret_next = x->ranges[low].start;
	if (!low)
		return SYMFILE_NONE;
	*ret = x->ranges[low - 1];
	return 0;
}

static int last_entry(struct funcbounds *x, uint64_t address, struct funcbounds_range *ret,
		      uint64_t *ret_next)
{
	int r = begin(x);

	*ret_next = UINT64_MAX;
	if (r)
		return r;
	return x->table_count ? in_table(x, address, ret, ret_next)
			      : in_ranges(x, address, ret, ret_next);
}

int funcbounds_entry(struct funcbounds *x, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	struct funcbounds_range range;
	uint64_t next;
	int r = last_entry(x, address, &range, &next);

	if (r)
		return r;
	if (address >= range.end)
		return SYMFILE_NONE;
	*ret_start = range.start;
	*ret_end = range.end;
	return 0;
}

/* --- the start --- */

/* Finds the start of a native image's method (svmcode.h) that contains the address, but not below
 * floor. Returns 0, SYMFILE_NONE, -ENOMEM or -errno. */
static int start_of_method(const struct funcbounds *x, const struct symfile_section *s,
			   uint64_t address, uint64_t floor, uint64_t *ret)
{
	const struct symfile_section *heap;
	struct svmcode_frame frame;
	uint64_t found = 0;

	if (symfile_section(x->file, SVMCODE_HEAP, &heap) != 0)
		return SYMFILE_NONE;
	floor = numbers_larger(floor, address - numbers_smaller(address, METHOD_MAX));

	const size_t n = (size_t)(address - floor) + SVMCODE_HEAD;
	const size_t left = (size_t)numbers_smaller(n, s->addr + s->size - floor);
	uint8_t *code = malloc(left + 1);
	int r = code ? symfile_read(x->file, s->offset + (floor - s->addr), code, left) : -ENOMEM;

	if (!r)
		r = SYMFILE_NONE;
	for (uint64_t back = address % SVMCODE_ALIGNMENT;
	     r == SYMFILE_NONE && back <= address - floor; back += SVMCODE_ALIGNMENT) {
		const uint64_t at = address - back;
		const struct span method = { .data = code + (at - floor),
					     .len = left - (size_t)(at - floor) };
		const struct span before = { .data = method.data, .len = (size_t)(address - at) };

		if (!svmcode_begins(method, &frame))
			continue;
		found = found ? found : at;
		/* C's functions may begin alike, but no padding of methods is before them. What
		 * follows the last method's padding is no method. */
		if (at == floor || !svmcode_is_trap(method.data[-1]))
			continue;
		if (svmcode_padding(before) < before.len)
			break;
		*ret = found;
		r = 0;
	}
	free(code);
	return r;
}

int funcbounds_start(struct funcbounds *x, uint64_t address, uint64_t floor, uint64_t *ret_start)
{
	const struct symfile_section *s = filestarts_code(x->file, address);
	uint8_t bytes[SMALL_GAP];
	struct funcbounds_range range;
	uint64_t start, next, end;
	int r = last_entry(x, address, &range, &next);

	if (r < 0)
		return r;
	if (!r && address < range.end && range.start >= floor) {
		*ret_start = range.start;
		return 0;
	}
	if (!s)
		return SYMFILE_NONE;
	end = s->addr + s->size;
	end = numbers_smaller(next, end);
	floor = numbers_larger(s->addr, floor);
	if (!r && range.end > floor && range.end <= address)
		floor = range.end;
	r = start_of_method(x, s, address, floor, ret_start);
	if (r <= 0)
		return r;
	if (end - floor > SMALL_GAP && end - floor >= s->size / GAP_PART) {
		r = filestarts_read(&x->code);
		if (r < 0)
			return r;
		if (!x->code.starts.full)
			r = filestarts_follow(&x->code, floor, end);
		if (r < 0)
			return r;
		if (x->code.starts.full)
			return SYMFILE_TOO_LARGE;
		if (codestarts_find(&x->code.starts, address, &start) && start >= floor) {
			*ret_start = start;
			return 0;
		}
	}
	/* Assume that the function begins after the end of the function before it, and the
	 * padding. */
	const size_t n = numbers_smaller(address - floor, SMALL_GAP);

	if (symfile_read(x->file, s->offset + (floor - s->addr), bytes, n) == 0)
		floor += codestarts_padding((struct span){ .data = bytes, .len = n });
	*ret_start = floor;
	return 0;
}
