/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/extract/extract.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/rows/cfi/cfi.h"
#include "common/rows/context/greenlet.h"
#include "common/rows/context/ucontext.h"
#include "common/rows/derive/derive.h"
#include "common/rows/elf/elf.h"
#include "common/rows/elf/section_reader.h"
#include "common/rows/go/gorows.h"
#include "common/rows/x86/ehreturn.h"
#include "common/rows/x86/lispcall.h"
#include "common/rows/x86/stackmove.h"

#define CODE_WINDOW (16u << 10) /* read at once if the last reads were close together */
#define CODE_GLANCE 256u	/* read at once otherwise */

static int feed(struct section_reader *s, struct cfi *c)
{
	uint64_t want = 0;
	size_t used;
	int r;

	do {
		if (rows_stopped(c->machine.rows))
			return MSG_ROWS_LATER;
		r = section_reader_fill(s, want);
		if (r == -EBADMSG) {
			c->machine.rows->skipped[ROWS_SKIP_SECTION]++;
			return 0;
		}
		if (r < 0)
			return r;
		r = cfi_feed(c, (struct span){ .data = s->window, .len = s->len }, s->end, &used,
			     &want);
		if (r)
			return r;
		section_reader_drop(s, used);
		if (want <= CFI_MAX_ENTRY)
			continue;
		/* The entry is too long: skip it, at most to the end of the section. */
		cfi_skip(c, want);
		while (want && !s->end && !rows_stopped(c->machine.rows)) {
			size_t part = numbers_smaller(want, s->len);

			section_reader_drop(s, part);
			want -= part;
			r = want ? section_reader_fill(s, 0) : 0;
			if (r < 0)
				return r == -EBADMSG ? 0 : r;
		}
		section_reader_drop(s, numbers_smaller(want, s->len));
		want = 0;
	} while (!s->end && !c->ended);
	return 0;
}

/* The file with the code that the rows describe. */
struct code {
	int fd;
	const struct elf_file *file;
	/* A window of the file's code: len bytes from ELF address `from` on. The addresses in
	 * tables mostly rise, so most reads find their bytes here. */
	uint8_t window[CODE_WINDOW];
	uint64_t from;
	uint32_t len;
};

/* The callback cfi.spoiled. */
static bool spoiled(void *ctx, uint64_t address, uint64_t size, struct ehreturn *ret)
{
	const struct code *code = ctx;
	uint32_t n = size < EHRETURN_MAX ? (uint32_t)size : EHRETURN_MAX;
	uint8_t *bytes = malloc(n);
	bool found = bytes && elf_pread_at(code->fd, code->file, bytes, n, address) &&
		     ehreturn_find(bytes, n, ret);

	free(bytes);
	return found;
}

/* Returns n bytes at an ELF address, borrowed until the next call, or NULL if the file lacks
 * them. */
static const uint8_t *code_at(struct code *code, uint64_t address, uint32_t n)
{
	if (address < code->from || address - code->from > code->len ||
	    n > code->len - (address - code->from)) {
		const bool near = address - (code->from + code->len) < CODE_GLANCE;

		code->from = address;
		code->len = elf_pread_up_to(code->fd, code->file, code->window,
					    near ? CODE_WINDOW : CODE_GLANCE, address);
	}
	return n <= code->len - (address - code->from) ? code->window + (address - code->from)
						       : NULL;
}

/* The callback cfi.checked. */
static bool checked(void *ctx, uint64_t address, uint64_t size, struct stackcheck *ret)
{
	const uint32_t n_head = size < STACKCHECK_HEAD ? (uint32_t)size : STACKCHECK_HEAD;
	const uint32_t n_tail = size < STACKCHECK_TAIL ? (uint32_t)size : STACKCHECK_TAIL;
	uint8_t head[STACKCHECK_HEAD];
	const uint8_t *p = code_at(ctx, address, n_head);

	if (!p)
		return false;
	memcpy(head, p, n_head);
	p = code_at(ctx, address + size - n_tail, n_tail);
	return p && stackcheck_find((struct span){ .data = head, .len = n_head },
				    (struct span){ .data = p, .len = n_tail }, (uint32_t)size, ret);
}

/* The callback cfi.lisp. */
static bool lisp(void *ctx, uint64_t address, uint64_t size, struct lispcall *ret)
{
	const uint32_t n = size < LISPCALL_MAX ? (uint32_t)size : LISPCALL_MAX;
	const uint8_t *p = code_at(ctx, address, n);

	return p && lispcall_find((struct span){ .data = p, .len = n }, ret);
}

/* The callback cfi.moved. */
static bool moved(void *ctx, uint64_t address, uint64_t size)
{
	const uint32_t n = size < STACKMOVE_HEAD ? (uint32_t)size : STACKMOVE_HEAD;
	const uint8_t *p = size < STACKMOVE_SIZE ? NULL : code_at(ctx, address, n);

	return p && stackmove_find((struct span){ .data = p, .len = n });
}

static int read_section(int fd, const struct elf_section *section, const struct elf_file *f,
			struct code *code, struct rows *rows)
{
	struct section_reader s;
	struct cfi c;
	int r = section_reader_init(&s, fd, section);

	cfi_init(&c, rows, section->eh, section->vaddr, &f->bases);
	c.stop_at_zero = !section->bounded;
	c.spoiled = spoiled;
	c.checked = checked;
	c.lisp = lisp;
	c.moved = moved;
	c.ctx = code;
	if (!r)
		r = feed(&s, &c);
	cfi_done(&c);
	section_reader_done(&s);
	return r;
}

/* Reads all sections of one kind. `code` is the code that they describe. */
static int read_kind(int fd, const struct elf_file *f, bool eh, struct code *code,
		     struct rows *rows)
{
	bool any = false;

	for (unsigned i = 0; i < f->sections; i++) {
		if (f->section[i].eh != eh)
			continue;
		if (!any && !eh)
			rows_fill(rows);
		any = true;

		int r = read_section(fd, &f->section[i], f, code, rows);

		if (r)
			return r;
	}
	return any ? rows_finish(rows) : 0;
}

/* Adds rows from a separate debug file, where there are none yet. */
static int read_debug_file(int fd, struct code *of_code, struct rows *rows, struct extract *ret)
{
	const struct elf_file *of = of_code->file;
	struct elf_file f;
	int r = elf_read(fd, &f, &ret->why);

	if (r > 0)
		ret->why = "its debug file is not a supported ELF file";
	if (r)
		return r;
	if (f.build_id_len != of->build_id_len ||
	    memcmp(f.build_id, of->build_id, f.build_id_len) != 0) {
		ret->why = "the debug file belongs to another file: build ids differ";
		return MSG_ROWS_MALFORMED;
	}
	f.bases = of->bases;
	return read_kind(fd, &f, false, of_code, rows);
}

/* Reads the headers and lays rows out for the executable segments. */
static int begin(int fd, struct elf_file *f, struct rows *rows, struct extract *ret)
{
	int r;

	*ret = (struct extract){ .why = "" };
	r = elf_read(fd, f, &ret->why);
	if (r)
		return r;
	ret->truncated = f->truncated;
	for (unsigned i = 0; i < f->loads; i++) {
		if (!f->load[i].exec)
			continue;
		r = rows_segment_add(rows, f->load[i].vaddr, f->load[i].offset, f->load[i].filesz);
		if (r) {
			ret->why = "it has too many executable segments";
			return r;
		}
	}
	r = rows_layout(rows);
	if (r == MSG_ROWS_NONE)
		ret->why = "it has no executable segment";
	return r;
}

int extract_derived(int fd, struct rows *rows, struct extract *ret)
{
	struct elf_file f;
	int r = begin(fd, &f, rows, ret);

	if (!r)
		r = derive_rows(fd, &f, rows);
	if (r == MSG_ROWS_TOO_LARGE)
		ret->why = "its text or its rows are over the limits that bound memory";
	if (!r && !rows->count)
		ret->why = "no rows follow from its code";
	return r;
}

/* Reads all rows that come from tables. */
static int read_tables(int fd, int debug_fd, struct elf_file *f, struct rows *rows,
		       struct extract *ret)
{
	struct code code = { .fd = fd, .file = f };
	struct dynamic d;
	int r = begin(fd, f, rows, ret);

	if (r && r != MSG_ROWS_TOO_LARGE)
		return r;
	rows->skipped[ROWS_SKIP_SECTION] += f->empty_sections;
	if (!r)
		r = dynamic_read(fd, f, &d);
	if (!r)
		r = ucontext_read(fd, f, &d, rows);
	if (!r)
		r = greenlet_read(fd, &d, rows);
	if (!r)
		r = read_kind(fd, f, true, &code, rows);
	if (!r)
		r = gorows_read(fd, f->size, rows);
	if (!r)
		r = read_kind(fd, f, false, &code, rows);
	if (!r && debug_fd >= 0)
		r = read_debug_file(debug_fd, &code, rows, ret);
	return r;
}

/* Whether a row from Go's tables takes the CFA from R12. Then the rows of functions that such code
 * calls must describe where R12 is saved. */
static bool asks_for_r12(const struct rows *rows)
{
	for (size_t i = 0; i < rows->rules.n; i++) {
		const struct unwind_rule *r = &rows->rules.rule[i];

		if (r->cfa == UNWIND_CFA_REG && r->cfa_reg == UNWIND_REG_R12 &&
		    r->flags & UNWIND_DERIVED)
			return true;
	}
	return false;
}

int extract_rows(int fd, int debug_fd, struct rows *rows, struct extract *ret)
{
	struct elf_file f;
	int r = read_tables(fd, debug_fd, &f, rows, ret);

	if (!r && asks_for_r12(rows)) {
		rows_reset(rows);
		rows->tracked = UNWIND_REG_R12;
		r = read_tables(fd, debug_fd, &f, rows, ret);
	}
	if (r && r != MSG_ROWS_TOO_LARGE)
		return r;
	if (!r) {
		r = derive_rows(fd, &f, rows);
		/* Derived rows do not fit: start again and keep only those from the tables. */
		if (r == -ENOMEM || r == MSG_ROWS_TOO_LARGE) {
			rows_reset(rows);
			r = read_tables(fd, debug_fd, &f, rows, ret);
			if (!r && !rows->count)
				r = MSG_ROWS_TOO_LARGE;
		}
	}
	if (r == MSG_ROWS_TOO_LARGE)
		ret->why = "its text or its rows are over the limits that bound memory";
	if (!r && !rows->count)
		ret->why = f.sections ? "its call frame information gives no rows"
			   : f.empty_sections
				   ? "its call frame information is empty or compressed, "
				     "as in a separate debug file"
				   : "it has no call frame information";
	return r;
}
