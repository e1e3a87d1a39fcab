/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/dwarflines.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/leb128.h"
#include "common/base/bytes/numbers.h"
#include "common/names/elf/symfile.h"

#define ROWS_PER_MARK 256
#define MAX_COLUMNS 32 /* columns of an entry of DWARF 5 */

/* --- header --- */

static struct span from(struct span s, uint64_t offset, uint64_t end)
{
	struct span part = { 0 };

	(void)(end >= offset && span_sub(s, offset, end - offset, &part));
	return part;
}

/* Reads an offset or a length, of 4 or 8 bytes. */
static bool take_offset(struct span *s, bool wide, uint64_t *ret)
{
	uint32_t narrow;

	if (wide)
		return span_read(s, ret, 8);
	if (!span_read(s, &narrow, 4))
		return false;
	*ret = narrow;
	return true;
}

bool dwarflines_open(const struct dwarflines_sections *s, uint64_t offset, struct dwarflines *ret)
{
	struct dwarflines l = { .max_ops = 1 };
	struct span at = from(s->line, offset, s->line.len);
	uint64_t length, header;
	uint32_t escape;
	uint8_t byte;

	if (!span_read(&at, &escape, 4))
		return false;
	length = escape;
	l.wide = escape == UINT32_MAX;
	if (l.wide && !span_read(&at, &length, 8))
		return false;
	if (length > at.len)
		return false;
	at.len = (size_t)length;
	l.end = (uint64_t)(at.data - s->line.data) + length;
	if (!span_read(&at, &l.version, 2) || l.version < 2 || l.version > 5)
		return false;
	/* Skip the sizes of addresses and segment selectors: opcodes repeat them. */
	if (l.version == 5 && (!span_read(&at, &byte, 1) || !span_read(&at, &byte, 1)))
		return false;
	if (!take_offset(&at, l.wide, &header) || header > at.len)
		return false;
	l.program = (uint64_t)(at.data - s->line.data) + header;
	at.len = (size_t)header;
	if (!span_read(&at, &l.min_length, 1) ||
	    (l.version >= 4 && !span_read(&at, &l.max_ops, 1)) || !span_read(&at, &byte, 1) ||
	    !span_read(&at, &l.line_base, 1) || !span_read(&at, &l.line_range, 1) ||
	    !span_read(&at, &l.opcode_base, 1))
		return false;
	if (!l.line_range || !l.opcode_base || !l.max_ops || l.end - l.program > UINT32_MAX)
		return false;
	l.lengths = (uint64_t)(at.data - s->line.data);
	if (!span_take(&at, l.opcode_base - 1u, &(struct span){ 0 }))
		return false;
	l.tables = (uint64_t)(at.data - s->line.data);
	*ret = l;
	return true;
}

void dwarflines_done(struct dwarflines *l)
{
	free(l->marks);
	*l = (struct dwarflines){ 0 };
}

size_t dwarflines_bytes(const struct dwarflines *l)
{
	return l->cap * sizeof(*l->marks);
}

/* --- files --- */

/* An entry of a table of folders or files. */
struct dwarflines_entry {
	struct str name;
	uint64_t folder;
};

static bool take_string(struct span *s, struct str *ret)
{
	const uint8_t *end = s->len ? memchr(s->data, 0, s->len) : NULL;

	if (!end || end - s->data > UINT32_MAX)
		return false;
	*ret = (struct str){ .data = (const char *)s->data, .len = (uint32_t)(end - s->data) };
	s->len -= ret->len + 1u;
	s->data = end + 1;
	return true;
}

static bool take_number(struct span *s, size_t bytes, uint64_t *ret)
{
	*ret = 0;
	return span_read(s, ret, bytes);
}

static bool skip(struct span *s, uint64_t n)
{
	return n <= s->len && span_take(s, (size_t)n, &(struct span){ 0 });
}

/* Reads the offset of a string in another section, and the string. */
static bool take_string_at(struct span *s, struct span strings, bool wide, struct str *ret)
{
	uint64_t offset;

	if (!take_offset(s, wide, &offset))
		return false;
	struct span at = from(strings, offset, strings.len);

	if (!take_string(&at, ret))
		*ret = (struct str){ 0 };
	return true;
}

/* Reads a value of some form. Strings given by an index stay empty: no compiler uses them here. */
static bool take_value(const struct dwarflines_sections *sections, bool wide, uint64_t form,
		       struct span *s, struct str *text, uint64_t *number)
{
	switch (form) {
	case DW_FORM_string:
		return take_string(s, text);
	case DW_FORM_line_strp:
		return take_string_at(s, sections->line_str, wide, text);
	case DW_FORM_strp:
		return take_string_at(s, sections->str, wide, text);
	case DW_FORM_strp_sup:
	case DW_FORM_sec_offset:
		return take_offset(s, wide, number);
	case DW_FORM_udata:
	case DW_FORM_strx:
		return leb128_unsigned(s, number);
	case DW_FORM_data1:
	case DW_FORM_strx1:
		return take_number(s, 1, number);
	case DW_FORM_data2:
	case DW_FORM_strx2:
		return take_number(s, 2, number);
	case DW_FORM_strx3:
		return skip(s, 3);
	case DW_FORM_data4:
	case DW_FORM_strx4:
		return take_number(s, 4, number);
	case DW_FORM_data8:
		return take_number(s, 8, number);
	case DW_FORM_data16: /* an MD5 sum */
		return skip(s, 16);
	case DW_FORM_block:
		return leb128_unsigned(s, number) && skip(s, *number);
	case DW_FORM_block1:
		return take_number(s, 1, number) && skip(s, *number);
	}
	return false;
}

/* Finds the entry with a number in a table of DWARF 5, at the front of s. With UINT64_MAX, moves s
 * to the end of the table. */
static bool find_entry(const struct dwarflines_sections *sections, bool wide, struct span *s,
		       uint64_t wanted, struct dwarflines_entry *ret)
{
	uint64_t content[MAX_COLUMNS], form[MAX_COLUMNS], count;
	uint8_t columns;

	if (!span_read(s, &columns, 1) || columns > MAX_COLUMNS)
		return false;
	for (unsigned i = 0; i < columns; i++)
		if (!leb128_unsigned(s, &content[i]) || !leb128_unsigned(s, &form[i]))
			return false;
	/* Each column takes at least one byte, so a false count soon ends for lack of bytes. */
	if (!leb128_unsigned(s, &count) || (!columns && count))
		return false;
	for (uint64_t n = 0; n < count; n++) {
		struct dwarflines_entry e = { 0 };

		for (unsigned i = 0; i < columns; i++) {
			struct str text = { 0 };
			uint64_t number = 0;

			if (!take_value(sections, wide, form[i], s, &text, &number))
				return false;
			if (content[i] == DW_LNCT_path)
				e.name = text;
			else if (content[i] == DW_LNCT_directory_index)
				e.folder = number;
		}
		if (n == wanted) {
			*ret = e;
			return true;
		}
	}
	return wanted == UINT64_MAX;
}

/* Like find_entry for DWARF 2 to 4, whose tables end with an empty name, and whose numbers begin at
 * 1. */
static bool find_old_entry(struct span *s, bool files, uint64_t wanted,
			   struct dwarflines_entry *ret)
{
	struct dwarflines_entry e;

	for (uint64_t n = 1;; n++) {
		uint64_t number;

		if (!take_string(s, &e.name))
			return false;
		if (!e.name.len)
			return wanted == UINT64_MAX;
		/* The file's mtime and size. */
		if (files && (!leb128_unsigned(s, &e.folder) || !leb128_unsigned(s, &number) ||
			      !leb128_unsigned(s, &number)))
			return false;
		if (n == wanted) {
			*ret = e;
			return true;
		}
	}
}

static bool join(struct str folder, struct str name, char *into, size_t cap)
{
	const size_t slash = folder.len ? 1 : 0;

	if ((size_t)folder.len + slash + name.len + 1 > cap)
		return false;
	if (folder.len)
		memcpy(into, folder.data, folder.len);
	if (slash)
		into[folder.len] = '/';
	memcpy(into + folder.len + slash, name.data, name.len);
	into[folder.len + slash + name.len] = 0;
	return true;
}

bool dwarflines_path(const struct dwarflines_sections *s, const struct dwarflines *l, uint64_t file,
		     char *into, size_t cap)
{
	const struct span tables = from(s->line, l->tables, l->program);
	struct span at = tables;
	struct dwarflines_entry found, folder = { 0 };
	const bool old = l->version < 5;

	if (file == UINT64_MAX || (old && !file) ||
	    !(old ? find_old_entry(&at, false, UINT64_MAX, &found)
		  : find_entry(s, l->wide, &at, UINT64_MAX, &found)) ||
	    !(old ? find_old_entry(&at, true, file, &found)
		  : find_entry(s, l->wide, &at, file, &found)) ||
	    !found.name.len)
		return false;
	/* Before DWARF 5, the unit's folder has the number 0 and is not in the table. */
	at = tables;
	if (found.name.data[0] != '/' && found.folder != UINT64_MAX && (found.folder || !old) &&
	    !(old ? find_old_entry(&at, false, found.folder, &folder)
		  : find_entry(s, l->wide, &at, found.folder, &folder)))
		folder.name.len = 0;
	return join(folder.name, found.name, into, cap);
}

/* --- the program --- */

/* The machine that runs a line program. */
struct machine {
	const struct dwarflines *l;
	struct span left, lengths;
	const uint8_t *start;
	uint64_t address, file;
	uint32_t line, op_index;
	bool ended; /* the newest row ends a sequence */
};

static void machine_reset(struct machine *m)
{
	m->address = 0;
	m->op_index = 0;
	m->file = m->line = 1;
	m->ended = false;
}

static bool machine_start(const struct dwarflines_sections *s, const struct dwarflines *l,
			  struct machine *ret)
{
	*ret = (struct machine){
		.l = l,
		.left = from(s->line, l->program, l->end),
		.lengths = from(s->line, l->lengths, l->lengths + l->opcode_base - 1u),
	};
	ret->start = ret->left.data;
	machine_reset(ret);
	return ret->left.len == l->end - l->program && ret->lengths.len == l->opcode_base - 1u;
}

static void advance(struct machine *m, uint64_t operations)
{
	const struct dwarflines *l = m->l;

	if (l->max_ops == 1) {
		m->address += operations * l->min_length;
		return;
	}
	operations += m->op_index;
	m->address += operations / l->max_ops * l->min_length;
	m->op_index = (uint32_t)(operations % l->max_ops);
}

/* Runs an extended opcode. *ret_row tells whether it makes a row. */
static bool extended(struct machine *m, bool *ret_row)
{
	struct span rest;
	uint64_t length;
	uint8_t opcode;

	if (!leb128_unsigned(&m->left, &length) || length > m->left.len)
		return false;
	if (!length)
		return true;
	(void)span_take(&m->left, (size_t)length, &rest);
	(void)span_read(&rest, &opcode, 1);
	if (opcode == DW_LNE_end_sequence) {
		m->ended = *ret_row = true;
	} else if (opcode == DW_LNE_set_address) {
		m->op_index = 0;
		return (rest.len == 8 || rest.len == 4) &&
		       take_number(&rest, rest.len, &m->address);
	}
	return true;
}

static bool standard(struct machine *m, uint8_t opcode, bool *ret_row)
{
	uint64_t number;
	int64_t delta;
	uint16_t fixed;

	switch (opcode) {
	case DW_LNS_copy:
		*ret_row = true;
		return true;
	case DW_LNS_advance_pc:
		if (!leb128_unsigned(&m->left, &number))
			return false;
		advance(m, number);
		return true;
	case DW_LNS_advance_line:
		if (!leb128_signed(&m->left, &delta))
			return false;
		m->line += (uint32_t)delta;
		return true;
	case DW_LNS_set_file:
		return leb128_unsigned(&m->left, &m->file);
	case DW_LNS_const_add_pc:
		advance(m, (255u - m->l->opcode_base) / m->l->line_range);
		return true;
	case DW_LNS_fixed_advance_pc:
		if (!span_read(&m->left, &fixed, 2))
			return false;
		m->address += fixed;
		m->op_index = 0;
		return true;
	}
	/* Skip the operands of opcodes that are unknown or change nothing here. */
	for (unsigned n = m->lengths.data[opcode - 1]; n; n--)
		if (!leb128_unsigned(&m->left, &number))
			return false;
	return true;
}

/* Runs up to the next row. Returns false if the program ended or is damaged. */
static bool next_row(struct machine *m)
{
	const struct dwarflines *l = m->l;
	uint8_t opcode;
	bool row = false;

	if (m->ended)
		machine_reset(m);
	while (!row && span_read(&m->left, &opcode, 1)) {
		if (opcode >= l->opcode_base) {
			const unsigned adjusted = opcode - l->opcode_base;

			advance(m, adjusted / l->line_range);
			m->line += (uint32_t)(l->line_base + (int)(adjusted % l->line_range));
			return true;
		}
		if (!(opcode ? standard(m, opcode, &row) : extended(m, &row)))
			return false;
	}
	return row;
}

static int add_mark(struct dwarflines *l, const struct machine *m, size_t max)
{
	const size_t grown = l->cap ? l->cap * 2 : 4;

	if (l->count == l->cap) {
		struct dwarflines_mark *marks;

		if (grown * sizeof(*marks) > max)
			return SYMFILE_TOO_LARGE;
		marks = realloc(l->marks, grown * sizeof(*marks));
		if (!marks)
			return -ENOMEM;
		l->marks = marks;
		l->cap = grown;
	}
	l->marks[l->count++] = (struct dwarflines_mark){
		.address = m->address,
		.next = (uint32_t)(m->left.data - m->start),
		.file = numbers_u32(m->file),
		.line = m->line,
		.op_index = m->op_index,
	};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct dwarflines_mark *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->next > y->next) - (x->next < y->next);
}

int dwarflines_index(const struct dwarflines_sections *s, struct dwarflines *l, size_t max)
{
	struct machine m;
	uint64_t last = 0, start = 0;
	unsigned rows = 0;
	bool sorted = true, begins = true;

	if (l->indexed)
		return 0;
	l->indexed = true;
	if (!machine_start(s, l, &m))
		return 0;
	while (next_row(&m)) {
		if (m.ended) {
			begins = true;
			continue;
		}
		/* A row with a lower address begins a new sequence. */
		begins |= m.address < last;
		if (begins)
			start = m.address;
		/* Linkers leave dropped code at address 0. It gets no marks besides the one at its
		 * start, since these would mix with those of other code. */
		if (begins || (++rows >= ROWS_PER_MARK && start)) {
			const int r = add_mark(l, &m, max);

			if (r)
				return r;
			sorted &= l->count == 1 ||
				  compare(&l->marks[l->count - 2], &l->marks[l->count - 1]) < 0;
			rows = 0;
		}
		begins = false;
		last = m.address;
	}
	if (!sorted)
		qsort(l->marks, l->count, sizeof(*l->marks), compare);
	return 0;
}

bool dwarflines_find(const struct dwarflines_sections *s, const struct dwarflines *l,
		     uint64_t address, uint64_t *ret_file, uint64_t *ret_line)
{
	size_t low = 0, high = l->count;
	struct machine m;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (l->marks[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !machine_start(s, l, &m))
		return false;
	const struct dwarflines_mark *mark = &l->marks[low - 1];
	uint64_t last = mark->address;

	if (!span_take(&m.left, mark->next, &(struct span){ 0 }))
		return false;
	m.address = mark->address;
	m.op_index = mark->op_index;
	m.file = mark->file;
	m.line = mark->line;
	/* A row applies to the code up to the next row. */
	for (;;) {
		const uint64_t file = m.file;
		const uint32_t line = m.line;

		if (!next_row(&m))
			return false;
		if (m.address > address) {
			*ret_file = file;
			*ret_line = line <= INT32_MAX ? line : 0;
			return true;
		}
		if (m.ended || m.address < last)
			return false;
		last = m.address;
	}
}
