/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: System V gABI chapters 4 and 5; "Separate Debug Files" of gdb's manual. */
#include "common/names/elf/symfile.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/bytes/notes.h"
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"

#define MAX_SEGMENTS 1024u
#define MAX_SECTIONS 65535u
#define MAX_NAMES (1u << 20)  /* bytes of section names */
#define MAX_NOTES (64u << 10) /* bytes of one note section */
#define NT_GO_BUILD_ID 4      /* type of notes named "Go": cmd/link/internal/ld/elf.go */

struct symfile {
	struct symfile_layout layout;
	int fd; /* -1: opened from bytes */
	struct span bytes;
	uint64_t frame_header, frame_header_address,
		frame_header_size; /* file offset, address and size of PT_GNU_EH_FRAME; size 0:
				    * none */
	uint8_t build_id[SYMFILE_BUILD_ID];
	size_t build_id_len;
	char go_build_id[SYMFILE_GO_BUILD_ID];
	size_t go_build_id_len;
	char debuglink[256];
	uint32_t debuglink_crc;
	char *altlink; /* path, NUL, build id */
	size_t altlink_len;
};

const char *symfile_verdict_text(int verdict)
{
	switch (verdict) {
	case SYMFILE_NOT_ELF:
		return "not an ELF file; name a program or shared object";
	case SYMFILE_UNSUPPORTED:
		return "not a 64-bit little-endian program or shared object";
	case SYMFILE_MALFORMED:
		return "cut short or malformed; use a whole copy";
	case SYMFILE_TOO_LARGE:
		return "a part of it exceeds a size limit";
	}
	return "contains nothing of use";
}

/* --- reading --- */

int symfile_read(const struct symfile *f, uint64_t offset, void *into, size_t n)
{
	if (offset > f->layout.size || n > f->layout.size - offset)
		return SYMFILE_MALFORMED;
	if (f->fd < 0) {
		if (n)
			memcpy(into, f->bytes.data + offset, n);
		return 0;
	}
	const ssize_t r = fd_pread_all(f->fd, into, n, offset);

	/* A short read means that the file shrank. */
	return r < 0 ? (int)r : (size_t)r < n ? SYMFILE_MALFORMED : 0;
}

static int read_segments(struct symfile *f, const Elf64_Ehdr *e)
{
	if (e->e_phnum == 0)
		return 0;
	if (e->e_phentsize != sizeof(Elf64_Phdr))
		return SYMFILE_MALFORMED;
	if (e->e_phnum > MAX_SEGMENTS)
		return SYMFILE_TOO_LARGE;

	struct symfile_segment *segments = calloc(e->e_phnum, sizeof(*segments));

	if (!segments)
		return -ENOMEM;
	f->layout.segments = segments;
	for (uint32_t i = 0; i < e->e_phnum; i++) {
		uint64_t at;
		Elf64_Phdr p;
		int r;

		if (__builtin_add_overflow(e->e_phoff, (uint64_t)i * sizeof(p), &at))
			return SYMFILE_MALFORMED;
		r = symfile_read(f, at, &p, sizeof(p));
		if (r)
			return r;
		if (p.p_type == PT_LOAD)
			segments[f->layout.segment_count++] =
				(struct symfile_segment){ .offset = p.p_offset,
							  .filesz = p.p_filesz,
							  .vaddr = p.p_vaddr,
							  .exec = p.p_flags & PF_X };
		else if (p.p_type == PT_DYNAMIC) {
			f->layout.dynamic = p.p_offset;
			f->layout.dynamic_size = p.p_filesz;
		} else if (p.p_type == PT_GNU_EH_FRAME) {
			f->frame_header = p.p_offset;
			f->frame_header_address = p.p_vaddr;
			f->frame_header_size = p.p_filesz;
		}
	}
	return 0;
}

static int read_sections(struct symfile *f, const Elf64_Ehdr *e)
{
	uint64_t count = e->e_shnum;
	uint32_t names = e->e_shstrndx;
	Elf64_Shdr s;
	int r;

	if (e->e_shoff == 0)
		return 0;
	if (e->e_shentsize != sizeof(s))
		return SYMFILE_MALFORMED;
	if (count == 0 || names == SHN_XINDEX) {
		r = symfile_read(f, e->e_shoff, &s, sizeof(s));
		if (r)
			return r;
		count = count ? count : s.sh_size;
		names = names == SHN_XINDEX ? s.sh_link : names;
	}
	if (count > MAX_SECTIONS)
		return SYMFILE_TOO_LARGE;
	if (count == 0)
		return 0;
	/* An image from the memory of a process ends before its section headers. Treat it as a file
	 * without section headers. */
	if (e->e_shoff >= f->layout.size) {
		f->layout.cut = true;
		return 0;
	}
	if (count * sizeof(s) > f->layout.size - e->e_shoff)
		return SYMFILE_MALFORMED;

	struct symfile_section *sections = calloc(count, sizeof(*sections));

	if (!sections)
		return -ENOMEM;
	f->layout.sections = sections;
	for (uint64_t i = 0; i < count; i++) {
		r = symfile_read(f, e->e_shoff + i * sizeof(s), &s, sizeof(s));
		if (r)
			return r;
		sections[i] = (struct symfile_section){ .addr = s.sh_addr,
							.offset = s.sh_offset,
							.size = s.sh_size,
							.flags = s.sh_flags,
							.name = s.sh_name,
							.type = s.sh_type,
							.link = s.sh_link,
							.entsize = numbers_u32(s.sh_entsize) };
	}
	f->layout.section_count = (uint32_t)count;
	if (names == 0 || names >= count)
		return 0;

	const uint64_t len = sections[names].size;

	if (len > MAX_NAMES)
		return SYMFILE_TOO_LARGE;
	char *text = calloc(1, len + 1);

	if (!text)
		return -ENOMEM;
	f->layout.names = text;
	r = symfile_read(f, sections[names].offset, text, len);
	if (r)
		return r;
	f->layout.names_len = len;
	return 0;
}

/* For a program without section headers, makes a section of each executable segment. */
static int make_sections(struct symfile *f)
{
	struct symfile_section *sections = calloc(f->layout.segment_count + 1u, sizeof(*sections));

	if (!sections)
		return -ENOMEM;
	f->layout.sections = sections;
	f->layout.bare = true;
	f->layout.section_count = 1;
	for (uint32_t i = 0; i < f->layout.segment_count; i++) {
		const struct symfile_segment *s = &f->layout.segments[i];

		if (s->exec)
			sections[f->layout.section_count++] = (struct symfile_section){
				.addr = s->vaddr,
				.offset = s->offset,
				.size = s->filesz,
				.flags = SHF_ALLOC | SHF_EXECINSTR,
				.type = SHT_PROGBITS,
			};
	}
	return 0;
}

/* Stores the contents of the first note of this name and type. */
static void take_note(struct span notes, const char *name, uint32_t type, void *into, size_t most,
		      size_t *len)
{
	struct span found;

	if (*len || !notes_find(notes, name, type, most, &found))
		return;
	memcpy(into, found.data, found.len);
	*len = found.len;
}

static void take_notes(struct symfile *f, uint64_t offset, uint64_t size)
{
	uint8_t *bytes = size <= MAX_NOTES ? malloc(size + 1) : NULL;

	if (bytes && symfile_read(f, offset, bytes, size) == 0) {
		const struct span notes = { .data = bytes, .len = size };

		take_note(notes, "GNU", NT_GNU_BUILD_ID, f->build_id, sizeof(f->build_id),
			  &f->build_id_len);
		take_note(notes, "Go", NT_GO_BUILD_ID, f->go_build_id, sizeof(f->go_build_id),
			  &f->go_build_id_len);
	}
	free(bytes);
}

/* Reads the notes of the sections. Those of the segments are read only if the sections lack a build
 * id, since they are mostly the same. */
static int read_notes(struct symfile *f, const Elf64_Ehdr *e)
{
	bool has_notes = false;

	for (uint32_t i = 0; i < f->layout.section_count; i++) {
		if (f->layout.sections[i].type != SHT_NOTE)
			continue;
		take_notes(f, f->layout.sections[i].offset, f->layout.sections[i].size);
		has_notes = true;
	}
	for (uint32_t i = 0; i < e->e_phnum && !(f->build_id_len && has_notes); i++) {
		Elf64_Phdr p;
		int r = symfile_read(f, e->e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p));

		if (r)
			return r;
		if (p.p_type == PT_NOTE)
			take_notes(f, p.p_offset, p.p_filesz);
	}
	return 0;
}

/* .gnu_debuglink has a name, a NUL, padding to four bytes, and the checksum. */
static void read_debuglink(struct symfile *f)
{
	const struct symfile_section *s;
	char bytes[sizeof(f->debuglink) + 8];
	size_t len, at;

	if (symfile_section(f, ".gnu_debuglink", &s) || s->type == SHT_NOBITS ||
	    s->size > sizeof(bytes) || symfile_read(f, s->offset, bytes, s->size))
		return;
	len = strnlen(bytes, s->size);
	at = (len + 4) & ~(size_t)3;
	if (len == 0 || len >= sizeof(f->debuglink) || at + 4 > s->size ||
	    memchr(bytes, '/', len) || strcmp(bytes, ".") == 0 || strcmp(bytes, "..") == 0)
		return;
	memcpy(f->debuglink, bytes, len + 1);
	memcpy(&f->debuglink_crc, bytes + at, 4);
}

static int open_file(struct symfile *f)
{
	Elf64_Ehdr e;
	int r;

	if (f->layout.size < SELFMAG)
		return SYMFILE_NOT_ELF;
	r = symfile_read(f, 0, e.e_ident, SELFMAG);
	if (r)
		return r;
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0)
		return SYMFILE_NOT_ELF;
	r = symfile_read(f, 0, &e, sizeof(e));
	if (r)
		return r;
	if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (e.e_type != ET_EXEC && e.e_type != ET_DYN && e.e_type != ET_REL))
		return SYMFILE_UNSUPPORTED;
	f->layout.linked = e.e_type != ET_REL;
	f->layout.machine = e.e_machine;
	f->layout.entry = e.e_entry;
	r = read_segments(f, &e);
	if (r == 0)
		r = read_sections(f, &e);
	if (r == 0 && !f->layout.section_count && f->layout.linked)
		r = make_sections(f);
	if (r == 0)
		r = read_notes(f, &e);
	if (r == 0)
		read_debuglink(f);
	return r;
}

static int symfile_new(int fd, struct span bytes, uint64_t size, struct symfile **ret)
{
	struct symfile *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->fd = fd;
	f->bytes = bytes;
	f->layout.size = size;
	r = open_file(f);
	if (r) {
		f->fd = -1;
		symfile_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

int symfile_open(int fd, struct symfile **ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return SYMFILE_NOT_ELF;
	return symfile_new(fd, (struct span){ 0 }, (uint64_t)st.st_size, ret);
}

int symfile_open_bytes(struct span bytes, struct symfile **ret)
{
	return symfile_new(-1, bytes, bytes.len, ret);
}

void symfile_free(struct symfile *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	free((void *)f->layout.segments);
	free((void *)f->layout.sections);
	free((void *)f->layout.names);
	free(f->altlink);
	free(f);
}

struct span symfile_build_id(const struct symfile *f)
{
	return (struct span){ .data = f->build_id, .len = f->build_id_len };
}

struct str symfile_go_build_id(const struct symfile *f)
{
	return (struct str){ .data = f->go_build_id, .len = (uint32_t)f->go_build_id_len };
}

unsigned symfile_code(const struct symfile *f, struct symfile_range *ret, unsigned most)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < f->layout.segment_count && n < most; i++) {
		const struct symfile_segment *s = &f->layout.segments[i];

		if (s->exec)
			ret[n++] = (struct symfile_range){ .offset = s->offset,
							   .size = s->filesz,
							   .address = s->vaddr };
	}
	return n;
}

const struct symfile_layout *symfile_layout(const struct symfile *f)
{
	return &f->layout;
}

int symfile_fd(const struct symfile *f)
{
	return f->fd;
}

uint64_t symfile_size(const struct symfile *f)
{
	return f->layout.size;
}

bool symfile_is_cut(const struct symfile *f)
{
	return f->layout.cut;
}

bool symfile_is_linked(const struct symfile *f)
{
	return f->layout.linked;
}

unsigned symfile_machine(const struct symfile *f)
{
	return f->layout.machine;
}

int symfile_debuglink(const struct symfile *f, const char **ret_name, uint32_t *ret_crc)
{
	if (!f->debuglink[0])
		return SYMFILE_NONE;
	*ret_name = f->debuglink;
	*ret_crc = f->debuglink_crc;
	return 0;
}

int symfile_altlink(struct symfile *f, const char **ret_path, struct span *ret_build_id)
{
	const struct symfile_section *s;
	size_t path;

	if (!f->altlink) {
		if (symfile_section(f, ".gnu_debugaltlink", &s) || s->type == SHT_NOBITS ||
		    (s->flags & SHF_COMPRESSED) || s->size == 0 ||
		    s->size > 4096 + SYMFILE_BUILD_ID)
			return SYMFILE_NONE;
		f->altlink = calloc(1, s->size + 1);
		if (!f->altlink)
			return -ENOMEM;
		if (symfile_read(f, s->offset, f->altlink, s->size) == 0)
			f->altlink_len = s->size;
	}
	path = strlen(f->altlink);
	if (path == 0 || path + 1 >= f->altlink_len || f->altlink_len - path - 1 > SYMFILE_BUILD_ID)
		return SYMFILE_NONE;
	*ret_path = f->altlink;
	*ret_build_id = (struct span){ .data = (uint8_t *)f->altlink + path + 1,
				       .len = f->altlink_len - path - 1 };
	return 0;
}

/* Mappings are whole pages, so two segments may map the same page of the file. Prefer the
 * executable one, since samples are in code. */
int symfile_address(const struct symfile *f, uint64_t offset, uint64_t *ret_address)
{
	for (int exec = 1; exec >= 0; exec--) {
		for (uint32_t i = 0; i < f->layout.segment_count; i++) {
			const struct symfile_segment *s = &f->layout.segments[i];

			if (s->exec == (bool)exec && offset >= s->offset &&
			    offset - s->offset < s->filesz) {
				*ret_address = s->vaddr + (offset - s->offset);
				return 0;
			}
		}
	}
	return SYMFILE_NONE;
}

int symfile_offset(const struct symfile *f, uint64_t address, uint64_t *ret_offset,
		   uint64_t *ret_left)
{
	for (uint32_t i = 0; i < f->layout.segment_count; i++) {
		const struct symfile_segment *s = &f->layout.segments[i];

		if (address >= s->vaddr && address - s->vaddr < s->filesz) {
			*ret_offset = s->offset + (address - s->vaddr);
			*ret_left = s->filesz - (address - s->vaddr);
			return 0;
		}
	}
	return SYMFILE_NONE;
}

uint64_t symfile_base(const struct symfile *f)
{
	uint64_t base = UINT64_MAX;

	for (uint32_t i = 0; i < f->layout.segment_count; i++)
		if (f->layout.segments[i].vaddr < base)
			base = f->layout.segments[i].vaddr;
	return f->layout.segment_count ? base : 0;
}

static bool is_called(const struct symfile *f, const struct symfile_section *s, const char *name)
{
	return s->name < f->layout.names_len && strcmp(f->layout.names + s->name, name) == 0;
}

int symfile_section(const struct symfile *f, const char *name, const struct symfile_section **ret)
{
	for (uint32_t i = 1; i < f->layout.section_count; i++) {
		if (is_called(f, &f->layout.sections[i], name)) {
			*ret = &f->layout.sections[i];
			return 0;
		}
	}
	return SYMFILE_NONE;
}

int symfile_last_section(const struct symfile *f, const char *name,
			 const struct symfile_section **ret)
{
	for (uint32_t i = f->layout.section_count; i-- > 1;) {
		if (is_called(f, &f->layout.sections[i], name)) {
			*ret = &f->layout.sections[i];
			return 0;
		}
	}
	return SYMFILE_NONE;
}

const struct symfile_section *symfile_section_of_type(const struct symfile *f, uint32_t type)
{
	for (uint32_t i = 1; i < f->layout.section_count; i++)
		if (f->layout.sections[i].type == type)
			return &f->layout.sections[i];
	return NULL;
}

int symfile_frame_header(const struct symfile *f, uint64_t *ret_address, uint64_t *ret_offset,
			 uint64_t *ret_size)
{
	const struct symfile_section *s;

	if (f->frame_header_size) {
		*ret_address = f->frame_header_address;
		*ret_offset = f->frame_header;
		*ret_size = f->frame_header_size;
		return 0;
	}
	if (symfile_section(f, ".eh_frame_hdr", &s) || s->type == SHT_NOBITS)
		return SYMFILE_NONE;
	*ret_address = s->addr;
	*ret_offset = s->offset;
	*ret_size = s->size;
	return 0;
}

bool symfile_has_symtab(const struct symfile *f)
{
	return symfile_section_of_type(f, SHT_SYMTAB) != NULL;
}

size_t symfile_bytes(const struct symfile *f)
{
	return sizeof(*f) + f->layout.segment_count * sizeof(*f->layout.segments) +
	       f->layout.section_count * sizeof(*f->layout.sections) + f->layout.names_len +
	       f->altlink_len;
}

bool symfile_has_text(const struct symfile *f, const char *section, const char *what)
{
	const struct symfile_section *s;
	bool found = false;
	char *text;

	if (symfile_section(f, section, &s) != 0 || s->type == SHT_NOBITS ||
	    s->size > SYMFILE_TEXT_MAX || s->size > symfile_size(f))
		return false;
	text = malloc(s->size + 1);
	if (!text)
		return false;
	if (symfile_read(f, s->offset, text, s->size) == 0)
		found = memmem(text, s->size, what, strlen(what)) != NULL;
	free(text);
	return found;
}
