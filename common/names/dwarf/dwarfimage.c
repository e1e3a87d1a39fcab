/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/dwarfimage.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "common/base/bytes/numbers.h"

/* A lazy image may be this many times the memory limit, since little of it is read. */
#define LAZY_PART 4

static const char *const wanted[DWARFIMAGE_SECTIONS] = {
	"debug_info",	     "debug_abbrev", "debug_line",   "debug_line_str", "debug_str",
	"debug_str_offsets", "debug_addr",   "debug_ranges", "debug_rnglists",
};

/* Finds out how a section is stored. Returns false if there is none, or if its form is unknown. */
static bool find_section(const struct symfile *f, const char *name, bool split,
			 struct dwarfimage_piece *ret)
{
	/* gcc puts each type into a section of its own, before the section of the unit. */
	int (*const find)(const struct symfile *, const char *, const struct symfile_section **) =
		split ? symfile_last_section : symfile_section;
	const char *suffix = split ? ".dwo" : "";
	char full[40];
	struct dwarfimage_piece p = { .file = f };

	snprintf(full, sizeof(full), ".%s%s", name, suffix);
	if (find(f, full, &p.section) == 0) {
		if (p.section->type == SHT_NOBITS)
			return false;
		p.whole = p.section->size;
		if (p.section->flags & SHF_COMPRESSED) {
			Elf64_Chdr c;

			if (p.section->size < sizeof(c) ||
			    symfile_read(f, p.section->offset, &c, sizeof(c)) ||
			    c.ch_type != ELFCOMPRESS_ZLIB)
				return false;
			p.whole = c.ch_size;
			p.skip = sizeof(c);
			p.packed = true;
		}
		*ret = p;
		return true;
	}
	snprintf(full, sizeof(full), ".z%s%s", name, suffix);
	if (find(f, full, &p.section) == 0 && p.section->type != SHT_NOBITS &&
	    p.section->size >= 12) {
		uint8_t head[12];

		if (symfile_read(f, p.section->offset, head, sizeof(head)) ||
		    memcmp(head, "ZLIB", 4) != 0)
			return false;
		for (int i = 4; i < 12; i++)
			p.whole = p.whole << 8 | head[i];
		p.skip = sizeof(head);
		p.packed = true;
		*ret = p;
		return true;
	}
	return false;
}

static bool find_piece(const struct dwarfimage_slice *s, const char *name,
		       struct dwarfimage_piece *ret)
{
	if (!s->file || !find_section(s->file, name, s->split, ret) || s->from > ret->whole)
		return false;
	ret->from = s->from;
	ret->size = ret->whole - s->from;
	if (s->size < ret->size)
		ret->size = s->size;
	return true;
}

/* The bytes of the image before the first section. */
#define IMAGE_NAMES 256
#define IMAGE_HEAD \
	(sizeof(Elf64_Ehdr) + (DWARFIMAGE_SECTIONS + 2) * sizeof(Elf64_Shdr) + IMAGE_NAMES)

#define IMAGE_TAIL 16

static int find_pieces(const struct dwarfimage_slice from[static DWARFIMAGE_SECTIONS],
		       struct dwarfimage_piece pieces[static DWARFIMAGE_SECTIONS],
		       uint64_t *ret_size)
{
	uint64_t size = IMAGE_HEAD;

	memset(pieces, 0, DWARFIMAGE_SECTIONS * sizeof(*pieces));
	for (size_t i = 0; i < DWARFIMAGE_SECTIONS; i++) {
		if (!find_piece(&from[i], wanted[i], &pieces[i])) {
			pieces[i].section = NULL;
			if (i == 0)
				return SYMFILE_NONE;
			continue;
		}
		if (__builtin_add_overflow(size, pieces[i].size, &size) ||
		    __builtin_add_overflow(size, 16, &size))
			return SYMFILE_TOO_LARGE; /* 16: alignment */
		/* Reject sizes that zlib cannot reach: it packs at most about a thousand bytes into
		 * one. */
		if (pieces[i].packed ? pieces[i].whole / 1040 > pieces[i].section->size
				     : pieces[i].whole > symfile_size(pieces[i].file))
			return SYMFILE_MALFORMED;
	}
	/* libdw does not check for the end of a string in .debug_info. A zero byte after the last
	 * section ends it. */
	if (__builtin_add_overflow(size, IMAGE_TAIL, ret_size))
		return SYMFILE_TOO_LARGE;
	return 0;
}

static void slices_of(const struct symfile *f, struct dwarfimage_slice ret[DWARFIMAGE_SECTIONS])
{
	for (size_t i = 0; i < DWARFIMAGE_SECTIONS; i++)
		ret[i] = (struct dwarfimage_slice){ .file = f, .size = UINT64_MAX };
}

uint64_t dwarfimage_size(const struct symfile *f)
{
	struct dwarfimage_slice slices[DWARFIMAGE_SECTIONS];
	struct dwarfimage_piece pieces[DWARFIMAGE_SECTIONS];
	uint64_t size;

	slices_of(f, slices);
	const int r = find_pieces(slices, pieces, &size);

	return r == 0 ? size : r == SYMFILE_TOO_LARGE ? UINT64_MAX : 0;
}

static int unpack_whole(const struct dwarfimage_piece *p, uint8_t *into)
{
	uint8_t chunk[16384];
	uint64_t left = p->section->size - p->skip, at = p->section->offset + p->skip;
	z_stream z = { .next_out = into };
	int r = 0, zr = Z_OK;

	if (p->whole > UINT32_MAX)
		return SYMFILE_TOO_LARGE;
	z.avail_out = (uInt)p->whole;
	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	while (r == 0 && zr == Z_OK && left > 0) {
		size_t n = numbers_smaller(left, sizeof(chunk));

		r = symfile_read(p->file, at, chunk, n);
		z.next_in = chunk;
		z.avail_in = (uInt)n;
		at += n;
		left -= n;
		if (r == 0)
			zr = inflate(&z, Z_NO_FLUSH);
	}
	if (r == 0 && z.avail_out != 0)
		r = SYMFILE_MALFORMED;
	inflateEnd(&z);
	return r;
}

static int unpack(const struct dwarfimage_piece *p, uint64_t max, uint8_t *into)
{
	uint8_t *whole;

	if (p->size == p->whole)
		return unpack_whole(p, into);
	if (p->whole > max)
		return SYMFILE_TOO_LARGE;
	whole = malloc(p->whole + 1);
	if (!whole)
		return -ENOMEM;
	const int r = unpack_whole(p, whole);

	if (r == 0)
		memcpy(into, whole + p->from, p->size);
	free(whole);
	return r;
}

void dwarfimage_end(struct dwarfimage *m)
{
	if (m->dwarf)
		dwarf_end(m->dwarf);
	if (m->elf)
		elf_end(m->elf);
	m->dwarf = NULL;
	m->elf = NULL;
}

void dwarfimage_done(struct dwarfimage *m)
{
	dwarfimage_end(m);
	if (m->lazy)
		lazy_memory_free(m->lazy);
	else
		free(m->bytes);
	*m = (struct dwarfimage){ 0 };
}

/* Reads the sections at [at, at + n) of the image. Runs in a signal handler. Bytes that cannot be
 * read (any more) stay zero. */
static void image_fill(void *ctx, uint64_t at, uint8_t *into, size_t n)
{
	const struct dwarfimage *m = ctx;

	for (size_t i = 0; i < DWARFIMAGE_SECTIONS; i++) {
		const struct dwarfimage_piece *p = &m->pieces[i];
		uint64_t from = numbers_larger(at, p->start),
			 to = numbers_smaller(at + n, p->start + p->size);

		if (p->section && from < to)
			(void)symfile_read(p->file,
					   p->section->offset + p->from + (from - p->start),
					   into + (from - at), to - from);
	}
}

/* Fills the whole image at once, since packed sections cannot be unpacked in pieces. */
static int image_fill_all(struct dwarfimage *m, uint64_t max)
{
	for (size_t i = 0; i < DWARFIMAGE_SECTIONS; i++) {
		const struct dwarfimage_piece *p = &m->pieces[i];
		int r = 0;

		if (p->section && p->packed)
			r = unpack(p, max, m->bytes + p->start);
		else if (p->section)
			r = symfile_read(p->file, p->section->offset + p->from, m->bytes + p->start,
					 p->size);
		if (r)
			return r;
	}
	return 0;
}

static void image_headers(struct dwarfimage *m)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)m->bytes;
	Elf64_Shdr *headers = (Elf64_Shdr *)(m->bytes + sizeof(*e));
	char *names = (char *)(headers + DWARFIMAGE_SECTIONS + 2);
	uint32_t count = 1, name = 1;

	for (size_t i = 0; i < DWARFIMAGE_SECTIONS; i++) {
		const struct dwarfimage_piece *p = &m->pieces[i];

		if (!p->section)
			continue;
		headers[count++] = (Elf64_Shdr){ .sh_name = name,
						 .sh_type = SHT_PROGBITS,
						 .sh_offset = p->start,
						 .sh_size = p->size,
						 .sh_addralign = 1 };
		name += (uint32_t)snprintf(names + name, IMAGE_NAMES - name, ".%s", wanted[i]) + 1;
	}
	headers[count] = (Elf64_Shdr){ .sh_name = 0,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = (uint64_t)((uint8_t *)names - m->bytes),
				       .sh_size = IMAGE_NAMES,
				       .sh_addralign = 1 };
	memcpy(e->e_ident, ELFMAG, SELFMAG);
	e->e_ident[EI_CLASS] = ELFCLASS64;
	e->e_ident[EI_DATA] = ELFDATA2LSB;
	e->e_ident[EI_VERSION] = EV_CURRENT;
	e->e_type = ET_DYN;
	e->e_machine = (Elf64_Half)symfile_machine(m->pieces[DWARFIMAGE_INFO].file);
	e->e_version = EV_CURRENT;
	e->e_shoff = sizeof(*e);
	e->e_ehsize = sizeof(*e);
	e->e_shentsize = sizeof(Elf64_Shdr);
	e->e_shnum = (Elf64_Half)(count + 1);
	e->e_shstrndx = (Elf64_Half)count;
}

/* Assigns the sections their places in the image, and writes its headers. */
static int image_lay_out(struct dwarfimage *m, bool *ret_packed)
{
	uint64_t at = IMAGE_HEAD;

	*ret_packed = false;
	for (size_t i = 0; i < DWARFIMAGE_SECTIONS; i++) {
		struct dwarfimage_piece *p = &m->pieces[i];

		if (!p->section)
			continue;
		const uint64_t size = symfile_size(p->file);

		if (p->section->offset > size || p->section->size > size - p->section->offset)
			return SYMFILE_MALFORMED;
		*ret_packed |= p->packed;
		p->start = (at + 15) & ~15ull;
		at = p->start + p->size;
	}
	return 0;
}

static int image_make(const struct dwarfimage_slice from[static DWARFIMAGE_SECTIONS], uint64_t max,
		      struct dwarfimage *m)
{
	uint64_t size;
	bool packed;
	int r;

	*m = (struct dwarfimage){ 0 };
	r = find_pieces(from, m->pieces, &size);
	if (r)
		return r;
	r = image_lay_out(m, &packed);
	if (r)
		return r;
	/* Without packed sections, only a small part of the image is read. */
	if (size / (packed ? 1 : LAZY_PART) > max)
		return SYMFILE_TOO_LARGE;
	m->size = size;
	if (packed) {
		m->bytes = calloc(1, size);
		r = m->bytes ? image_fill_all(m, max) : -ENOMEM;
	} else {
		r = lazy_memory_new(size, max, image_fill, m, &m->lazy);
		m->bytes = m->lazy ? m->lazy->bytes : NULL;
		if (r == 0 && !lazy_memory_touch(m->lazy, IMAGE_HEAD))
			r = -ENOMEM;
	}
	if (r == 0)
		image_headers(m);
	return r;
}

/* libdw ends the process if malloc fails, unless its handler does not return. So the handler jumps
 * to this buffer. dwarf_end frees most of what libdw had allocated; a little leaks, once per
 * file. */
jmp_buf *dwarfimage_no_memory;

static __attribute__((noreturn)) void out_of_memory(void)
{
	if (dwarfimage_no_memory)
		longjmp(*dwarfimage_no_memory, 1);
	abort();
}

int dwarfimage_open(const struct symfile *f, uint64_t max, struct dwarfimage *m)
{
	struct dwarfimage_slice slices[DWARFIMAGE_SECTIONS];

	slices_of(f, slices);
	return dwarfimage_open_slices(slices, max, m);
}

int dwarfimage_open_slices(const struct dwarfimage_slice from[static DWARFIMAGE_SECTIONS],
			   uint64_t max, struct dwarfimage *m)
{
	int r = m->bytes ? 0 : image_make(from, max, m);

	if (r)
		return r;
	elf_version(EV_CURRENT);
	errno = 0;
	m->elf = elf_memory((char *)m->bytes, m->size);
	if (!m->elf)
		return errno == ENOMEM ? -ENOMEM : SYMFILE_MALFORMED;
	m->dwarf = dwarf_begin_elf(m->elf, DWARF_C_READ, NULL);
	if (m->dwarf)
		dwarf_new_oom_handler(m->dwarf, out_of_memory);
	return m->dwarf ? 0 : errno == ENOMEM ? -ENOMEM : SYMFILE_MALFORMED;
}

struct span dwarfimage_section(const struct dwarfimage *m, enum dwarfimage_section which)
{
	const struct dwarfimage_piece *p = &m->pieces[which];

	return p->section ? (struct span){ .data = m->bytes + p->start, .len = p->size }
			  : (struct span){ 0 };
}

size_t dwarfimage_bytes(const struct dwarfimage *m)
{
	return m->lazy ? m->lazy->filled : m->size;
}
