// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "tools/prof-deltas/cfi.h"
#include "tools/prof-deltas/elf.h"
#include "tools/prof-deltas/extract.h"

#define WINDOW (128u << 10)	 /* bytes read at once */
#define MAX_SECTION (1ull << 30) /* bytes of one section that are looked at, inflated */
#define ENTRY_SIZE 64 /* bytes of code that an entry point without CFI is taken to have */

/* The bytes of a section in order, plain or inflated, through one window that grows for long
 * entries only. */
struct source {
	int fd;
	uint64_t offset, left; /* in the file, of what was not read yet */
	uint64_t given;	       /* bytes handed out */
	uint8_t *window;
	size_t cap, len;
	bool deflated, end;
	z_stream z;
	uint8_t *packed; /* WINDOW bytes for the inflater */
};

static void source_done(struct source *s)
{
	if (s->packed)
		inflateEnd(&s->z);
	free(s->packed);
	free(s->window);
}

static int source_init(struct source *s, int fd, const struct elf_section *section)
{
	*s = (struct source){ .fd = fd,
			      .offset = section->offset,
			      .left = section->size,
			      .deflated = section->deflated };
	s->window = malloc(WINDOW);
	if (!s->window)
		return -ENOMEM;
	s->cap = WINDOW;
	if (!s->deflated)
		return 0;
	s->packed = malloc(WINDOW);
	if (!s->packed)
		return -ENOMEM;
	if (inflateInit(&s->z) != Z_OK) {
		free(s->packed);
		s->packed = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Fills n bytes. The number got, less only at the end; -errno; -EBADMSG when what is deflated is
 * broken. */
static int64_t source_read(struct source *s, uint8_t *into, size_t n)
{
	int64_t got;

	if (!s->deflated) {
		got = elf_pread(s->fd, into, n < s->left ? n : s->left, s->offset);
		if (got > 0) {
			s->offset += (uint64_t)got;
			s->left -= (uint64_t)got;
		}
		return got;
	}
	s->z.next_out = into;
	s->z.avail_out = (uInt)n;
	while (s->z.avail_out) {
		if (!s->z.avail_in) {
			got = elf_pread(s->fd, s->packed, s->left < WINDOW ? s->left : WINDOW,
					s->offset);
			if (got < 0)
				return got;
			if (!got)
				break;
			s->offset += (uint64_t)got;
			s->left -= (uint64_t)got;
			s->z.next_in = s->packed;
			s->z.avail_in = (uInt)got;
		}

		int z = inflate(&s->z, Z_NO_FLUSH);

		if (z == Z_STREAM_END)
			break;
		if (z != Z_OK)
			return -EBADMSG;
	}
	return (int64_t)(n - s->z.avail_out);
}

/* Makes the window hold at least `want` bytes, or what there is. */
static int source_fill(struct source *s, size_t want)
{
	if (want > s->cap) {
		uint8_t *grown = realloc(s->window, want);

		if (!grown)
			return -ENOMEM;
		s->window = grown;
		s->cap = want;
	}

	size_t room = s->cap - s->len;

	if (room > MAX_SECTION - s->given)
		room = MAX_SECTION - s->given;

	int64_t got = source_read(s, s->window + s->len, room);

	if (got < 0)
		return (int)got;
	s->end = (size_t)got < room || s->given + (uint64_t)got == MAX_SECTION;
	s->given += (uint64_t)got;
	s->len += (size_t)got;
	return 0;
}

static void source_drop(struct source *s, size_t n)
{
	memmove(s->window, s->window + n, s->len - n);
	s->len -= n;
}

static int feed(struct source *s, struct cfi *c)
{
	uint64_t want = 0;
	size_t used;
	int r;

	do {
		r = source_fill(s, want);
		if (r == -EBADMSG) {
			c->rows->skipped[ROWS_SKIP_SECTION]++;
			return 0;
		}
		if (r < 0)
			return r;
		r = cfi_feed(c, (struct span){ .data = s->window, .len = s->len }, s->end, &used,
			     &want);
		if (r)
			return r;
		source_drop(s, used);
		if (want <= CFI_MAX_ENTRY)
			continue;
		/* Too long for us: step over it, as long as the section goes on. */
		cfi_skip(c, want);
		while (want && !s->end) {
			size_t part = want < s->len ? (size_t)want : s->len;

			source_drop(s, part);
			want -= part;
			r = want ? source_fill(s, 0) : 0;
			if (r < 0)
				return r == -EBADMSG ? 0 : r;
		}
		source_drop(s, want < s->len ? (size_t)want : s->len);
		want = 0;
	} while (!s->end && !c->ended);
	return 0;
}

static int read_section(int fd, const struct elf_section *section, const struct elf_file *f,
			struct rows *rows)
{
	struct source s;
	struct cfi c;
	int r = source_init(&s, fd, section);

	cfi_init(&c, rows, section->eh, section->vaddr, &f->bases);
	c.stop_at_zero = !section->bounded;
	if (!r)
		r = feed(&s, &c);
	cfi_done(&c);
	source_done(&s);
	return r;
}

/* The first instructions of the entry points that libraries give to programs: xor ebp or rbp with
 * itself, after an endbr64 or not; and ld.so's
 * mov rdi, rsp; call. Tells them from what linkers write into e_entry of a library without one: the
 * start of .text. */
static bool is_entry_code(int fd, uint64_t offset)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t bytes[8];
	const uint8_t *code = bytes;

	if (elf_pread(fd, bytes, sizeof(bytes), offset) < (int64_t)sizeof(bytes))
		return false;
	if (memcmp(code, endbr64, sizeof(endbr64)) == 0)
		code += sizeof(endbr64);
	return memcmp(code, "\x31\xed", 2) == 0 || memcmp(code, "\x48\x31\xed", 3) == 0 ||
	       memcmp(code, "\x48\x89\xe7\xe8", 4) == 0;
}

/* The entry point is nobody's callee, whether it has CFI (glibc's _start) or none (ld.so's). */
static int add_entry(int fd, const struct elf_file *f, struct rows *rows)
{
	struct unwind_rule rule = {
		.cfa = UNWIND_CFA_REG,
		.cfa_reg = UNWIND_REG_RSP,
		.cfa_off = 8,
		.ra = UNWIND_RA_UNDEFINED,
		.flags = UNWIND_DERIVED,
	};
	uint64_t left;
	uint32_t at;
	uint16_t number;
	int r;

	if (!f->entry || !rows_locate(rows, f->entry, &at, &left))
		return 0;
	if (!f->entry_certain && !is_entry_code(fd, rows->base + at))
		return 0;
	rows_fill(rows);
	r = rows_open(rows, at, at + (uint32_t)(left < ENTRY_SIZE ? left : ENTRY_SIZE));
	if (r == ROWS_NONE) {
		rows->skipped[ROWS_SKIP_COVERED]--;
		return 0;
	}
	if (!r)
		r = rows_rules_put(&rows->rules, &rule, &number);
	if (!r)
		r = rows_add(rows, at, number);
	if (!r)
		rows_close(rows);
	return r ? r : rows_finish(rows);
}

/* All sections of one kind. */
static int read_kind(int fd, const struct elf_file *f, bool eh, struct rows *rows)
{
	bool any = false;

	for (unsigned i = 0; i < f->sections; i++) {
		if (f->section[i].eh != eh)
			continue;
		if (!any && !eh)
			rows_fill(rows);
		any = true;

		int r = read_section(fd, &f->section[i], f, rows);

		if (r)
			return r;
	}
	return any ? rows_finish(rows) : 0;
}

int extract_rows(int fd, struct rows *rows, struct extract *ret)
{
	struct elf_file f;
	int r;

	*ret = (struct extract){ .why = "" };
	r = elf_read(fd, &f, &ret->why);
	if (r)
		return r;
	ret->truncated = f.truncated;
	rows->skipped[ROWS_SKIP_SECTION] += f.empty_sections;
	for (unsigned i = 0; i < f.loads; i++) {
		if (!f.load[i].exec)
			continue;
		r = rows_segment_add(rows, f.load[i].vaddr, f.load[i].offset, f.load[i].filesz);
		if (r) {
			ret->why = "it has more executable segments than are read";
			return r;
		}
	}
	r = rows_layout(rows);
	if (r == ROWS_NONE) {
		ret->why = "it has no executable segment";
		return r;
	}
	if (!r)
		r = read_kind(fd, &f, true, rows);
	if (!r)
		r = read_kind(fd, &f, false, rows);
	if (!r)
		r = add_entry(fd, &f, rows);
	if (r == ROWS_TOO_LARGE)
		ret->why = "its text or its rows are over the limits that bound memory";
	if (!r && !rows->count)
		ret->why =
			f.sections ? "its call frame information gives no rows"
			: f.empty_sections
				? "its call frame information is empty or compressed, as in a separate debug file"
				: "it has no call frame information";
	return r;
}
