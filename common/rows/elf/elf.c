/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/elf/elf.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"
#include "common/rows/rows.h"
#include "common/svm/svmcode.h"

#define ELF_COMPRESS_ZSTD 2 /* in the gabi since 2022, but not in every elf.h */
#define CIE_LEAST 20	    /* bytes of the shortest CIE */
#define SEARCH_WINDOW (32u << 10)
#define SEARCH_MAX (1u << 30)	       /* bytes of segments that are searched */
#define MAX_SECTION_HEADERS (1u << 18) /* libelf allocates memory for all at once */

static bool within(uint64_t offset, uint64_t n, uint64_t size)
{
	return offset <= size && n <= size - offset;
}

/* Checks the header before libelf sees the file. libelf would allocate memory for any number of
 * sections that the header claims. */
static int check_header(int fd, struct elf_file *f, bool *ret_sections, const char **ret_why)
{
	Elf64_Ehdr h;
	Elf64_Shdr zero;
	struct stat st;
	int64_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		*ret_why = "a folder";
		return MSG_ROWS_NOT_ELF;
	}
	if (!S_ISREG(st.st_mode)) {
		*ret_why = "not a regular file";
		return MSG_ROWS_NOT_ELF;
	}
	f->size = (uint64_t)st.st_size;
	n = fd_pread_all(fd, &h, sizeof(h), 0);
	if (n < 0)
		return (int)n;
	if (n < SELFMAG || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) {
		*ret_why = "no ELF magic at its start";
		return MSG_ROWS_NOT_ELF;
	}
	if (n < EI_NIDENT) {
		*ret_why = "truncated: it ends inside the ELF header";
		return MSG_ROWS_MALFORMED;
	}
	if (h.e_ident[EI_CLASS] != ELFCLASS64) {
		*ret_why = h.e_ident[EI_CLASS] == ELFCLASS32
				   ? "a 32-bit ELF file; only x86-64 is supported"
				   : "unknown ELF class";
		return MSG_ROWS_UNSUPPORTED;
	}
	if (h.e_ident[EI_DATA] != ELFDATA2LSB) {
		*ret_why = "a big-endian ELF file; only x86-64 is supported";
		return MSG_ROWS_UNSUPPORTED;
	}
	if (n < (int64_t)sizeof(h)) {
		*ret_why = "truncated: it ends inside the ELF header";
		return MSG_ROWS_MALFORMED;
	}
	if (h.e_machine != EM_X86_64) {
		*ret_why = "for another machine; only x86-64 is supported";
		return MSG_ROWS_UNSUPPORTED;
	}
	if (h.e_phnum && (h.e_phentsize != sizeof(Elf64_Phdr) ||
			  !within(h.e_phoff, (uint64_t)h.e_phnum * sizeof(Elf64_Phdr), f->size))) {
		*ret_why = "truncated or damaged: its program headers lie past its end";
		return MSG_ROWS_MALFORMED;
	}
	*ret_sections = false;
	if (!h.e_shoff)
		return 0;
	if (h.e_shentsize != sizeof(Elf64_Shdr) || !within(h.e_shoff, sizeof(zero), f->size)) {
		f->truncated = true;
		return 0;
	}
	n = fd_pread_all(fd, &zero, sizeof(zero), h.e_shoff);
	if (n < 0)
		return (int)n;

	uint64_t count = h.e_shnum ? h.e_shnum : zero.sh_size;

	if (n < (int64_t)sizeof(zero) || !within(h.e_shoff, count * sizeof(zero), f->size)) {
		f->truncated = true;
		return 0;
	}
	if (count > MAX_SECTION_HEADERS) {
		*ret_why = "it claims too many sections";
		return MSG_ROWS_MALFORMED;
	}
	*ret_sections = true;
	return 0;
}

/* The file offset of an ELF address, and the number of bytes left in its segment. */
static bool locate(const struct elf_file *f, uint64_t vaddr, uint64_t *ret_offset,
		   uint64_t *ret_left)
{
	for (unsigned i = 0; i < f->loads; i++) {
		const struct elf_load *l = &f->load[i];

		if (vaddr < l->vaddr || vaddr - l->vaddr >= l->filesz)
			continue;
		*ret_offset = l->offset + (vaddr - l->vaddr);
		*ret_left = l->filesz - (vaddr - l->vaddr);
		return true;
	}
	return false;
}

static void section_add(struct elf_file *f, const struct elf_section *s)
{
	if (f->sections < ELF_MAX_SECTIONS)
		f->section[f->sections++] = *s;
}

/* Whether the bytes begin like an .eh_frame on x86-64: with a CIE of version 1, known augmentation
 * letters, factors 1 and -8, and return address column 16. */
static bool is_cie(const uint8_t *p, size_t n)
{
	uint32_t length, id;
	size_t at = 9;

	if (n < CIE_LEAST)
		return false;
	memcpy(&length, p, 4);
	memcpy(&id, p + 4, 4);
	if (length < CIE_LEAST - 4 || length > 64 || id != 0 || p[8] != 1)
		return false;
	while (at < n && p[at] && strchr("zRPLSB", p[at]))
		at++;
	return at + 3 < n && p[at] == 0 && p[at + 1] == 1 && p[at + 2] == 0x78 && p[at + 3] == 16;
}

/* Returns the first place from p on that looks like the id of a CIE. NULL: there is none. */
static const uint8_t *next_mark(const uint8_t *p, const uint8_t *end)
{
	static const uint8_t mark[] = { 0, 0, 0, 0, 1, 'z' }; /* id, version, augmentation */

	return memmem(p, (size_t)(end - p), mark, sizeof(mark));
}

/* Searches for .eh_frame in a file whose headers do not give its place. The section begins with the
 * first CIE in a segment. Returns 0 or -errno. */
static int search_eh_frame(int fd, struct elf_file *f)
{
	uint8_t window[SEARCH_WINDOW];
	uint64_t searched = 0;

	for (unsigned i = 0; i < f->loads; i++) {
		const struct elf_load *l = &f->load[i];
		uint64_t at = 0;

		while (at < l->filesz && searched < SEARCH_MAX) {
			uint64_t left = l->filesz - at;
			int64_t n = fd_pread_all(fd, window, numbers_smaller(left, sizeof(window)),
						 l->offset + at);

			if (n < 0)
				return (int)n;
			if (n < CIE_LEAST)
				break;
			const uint8_t *end = window + n;

			for (const uint8_t *p = next_mark(window + 4, end); p;
			     p = next_mark(p + 1, end)) {
				uint64_t found = at + (uint64_t)(p - 4 - window);

				if ((found + l->vaddr) & 3 || !is_cie(p - 4, (size_t)(end - p + 4)))
					continue;
				section_add(f, &(struct elf_section){ .vaddr = l->vaddr + found,
								      .offset = l->offset + found,
								      .size = l->filesz - found,
								      .eh = true });
				return 0;
			}
			if ((uint64_t)n == left || n < (int64_t)sizeof(window))
				break;
			/* The next window overlaps this one, to find marks that cross the
			 * boundary. */
			at += sizeof(window) - 64;
			searched += sizeof(window);
		}
	}
	return 0;
}

/* Finds .eh_frame through .eh_frame_hdr, in files without section headers. Ignores it if it does
 * not lead to a CIE. */
static void read_eh_frame_hdr(int fd, struct elf_file *f, uint64_t vaddr, uint64_t offset)
{
	uint8_t bytes[32];
	int64_t n = fd_pread_all(fd, bytes, sizeof(bytes), offset);
	struct ehpointer_bases bases = { .has_data = true, .data = vaddr };
	uint64_t at;

	if (n < 4 || bytes[0] != 1)
		return;

	struct span s = { .data = bytes + 4, .len = (size_t)n - 4 };
	struct elf_section e = { .eh = true };

	if (ehpointer_read(&s, bytes[1], vaddr + 4, &bases, NULL, &at) != 0)
		return;
	e.vaddr = at;
	if (!locate(f, at, &e.offset, &e.size))
		return;
	n = fd_pread_all(fd, bytes, sizeof(bytes), e.offset);
	if (n < CIE_LEAST)
		return;

	uint32_t length_id[2];

	memcpy(length_id, bytes, 8);
	if (length_id[0] <= 4096 && length_id[1] == 0 && (bytes[8] == 1 || bytes[8] == 3))
		section_add(f, &e);
}

static int read_segments(Elf *elf, struct elf_file *f, uint64_t *ret_hdr_vaddr,
			 uint64_t *ret_hdr_offset, const char **ret_why)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0) {
		*ret_why = "damaged: its program headers cannot be read";
		return MSG_ROWS_MALFORMED;
	}
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(elf, (int)i, &p)) {
			*ret_why = "damaged: its program headers cannot be read";
			return MSG_ROWS_MALFORMED;
		}
		if (p.p_type == PT_INTERP)
			f->entry_certain = f->interpreted = true;
		if (p.p_type == PT_TLS)
			f->tls = true;
		if (p.p_type == PT_GNU_EH_FRAME) {
			*ret_hdr_vaddr = p.p_vaddr;
			*ret_hdr_offset = p.p_offset;
		}
		/* The kernel maps whole pages, so the offset within the page must be the same for
		 * both. */
		if (p.p_type != PT_LOAD || !p.p_filesz || ((p.p_vaddr - p.p_offset) & 4095))
			continue;
		if (p.p_offset > INT64_MAX || p.p_filesz > INT64_MAX ||
		    p.p_vaddr > UINT64_MAX - p.p_filesz) {
			*ret_why = "damaged: a segment's sizes cannot be right";
			return MSG_ROWS_MALFORMED;
		}
		if (f->loads == ELF_MAX_LOADS) {
			*ret_why = "it has too many segments";
			return MSG_ROWS_UNSUPPORTED;
		}
		f->load[f->loads++] = (struct elf_load){ .vaddr = p.p_vaddr,
							 .offset = p.p_offset,
							 .filesz = p.p_filesz,
							 .exec = p.p_flags & PF_X };
	}
	return 0;
}

static bool is_name(const char *have, const char *want)
{
	return strcmp(have, want) == 0;
}

/* A table of section names. The first 4096 bytes are read at once, other names one by one: the
 * table's claimed size cannot be trusted. */
struct elf_names {
	uint64_t offset, size; /* in the file */
	size_t len;
	char first[4096];
};

/* Reads a name. Returns 0 or -errno. A name that is cut short equals none of the searched names. */
static int read_name(int fd, const struct elf_names *n, uint64_t at, char ret[16])
{
	int64_t got;

	memset(ret, 0, 16);
	if (at < n->len) {
		memcpy(ret, n->first + at, numbers_smaller(n->len - at, 15));
		if (n->len - at >= 15)
			return 0;
	}
	got = fd_pread_all(fd, ret, 15, n->offset + at);
	return got < 0 ? (int)got : 0;
}

/* Reads the header of a compressed section, in either format, and updates s. Returns 0,
 * MSG_ROWS_UNSUPPORTED or -errno. */
static int read_packed(int fd, bool old, struct elf_section *s)
{
	union {
		Elf64_Chdr new;
		/* GNU's old format: "ZLIB" and the size, big-endian. */
		uint8_t old[12];
	} h;
	size_t size = old ? sizeof(h.old) : sizeof(h.new);
	int64_t n = fd_pread_all(fd, &h, size, s->offset);

	if (n < 0)
		return (int)n;
	if (s->size < size || n < (int64_t)size)
		return MSG_ROWS_UNSUPPORTED;
	if (old ? memcmp(h.old, "ZLIB", 4) == 0 : h.new.ch_type == ELFCOMPRESS_ZLIB)
		s->packing = ELF_ZLIB;
	else if (!old && h.new.ch_type == ELF_COMPRESS_ZSTD)
		s->packing = ELF_ZSTD;
	else
		return MSG_ROWS_UNSUPPORTED;
	s->offset += size;
	s->size -= size;
	return 0;
}

static int read_build_id(int fd, uint64_t offset, uint64_t size, struct elf_file *f)
{
	struct {
		Elf64_Nhdr h;
		char name[4];
		uint8_t id[ELF_MAX_BUILD_ID];
	} note;
	int64_t n = fd_pread_all(fd, &note, numbers_smaller(size, sizeof(note)), offset);

	if (n < 0)
		return (int)n;
	if (n < (int64_t)offsetof(typeof(note), id) || note.h.n_type != NT_GNU_BUILD_ID ||
	    note.h.n_namesz != 4 || memcmp(note.name, "GNU", 4) != 0 ||
	    note.h.n_descsz > (uint64_t)n - offsetof(typeof(note), id))
		return 0;
	memcpy(f->build_id, note.id, note.h.n_descsz);
	f->build_id_len = note.h.n_descsz;
	return 0;
}

static int read_sections(int fd, Elf *elf, struct elf_file *f)
{
	size_t count, strings;
	GElf_Shdr h, table;
	struct elf_names names;

	if (elf_getshdrnum(elf, &count) != 0 || elf_getshdrstrndx(elf, &strings) != 0 ||
	    strings == SHN_UNDEF)
		return 0;

	Elf_Scn *scn = elf_getscn(elf, strings);

	if (!scn || !gelf_getshdr(scn, &table))
		return 0;
	names = (struct elf_names){ .offset = table.sh_offset, .size = table.sh_size };

	int64_t n = fd_pread_all(fd, names.first,
				 numbers_smaller(table.sh_size, sizeof(names.first)),
				 table.sh_offset);

	if (n < 0)
		return (int)n;
	names.len = (size_t)n;
	for (size_t i = 1; i < count; i++) {
		char name[16];

		scn = elf_getscn(elf, i);
		if (!scn || !gelf_getshdr(scn, &h) || h.sh_name >= names.size)
			continue;
		/* Skip other types without reading a name. */
		if (h.sh_type != SHT_PROGBITS && h.sh_type != SHT_X86_64_UNWIND &&
		    h.sh_type != SHT_NOBITS && h.sh_type != SHT_NOTE)
			continue;

		int r = read_name(fd, &names, h.sh_name, name);

		if (!r && h.sh_type == SHT_NOTE && is_name(name, ".note.gnu.build"))
			r = read_build_id(fd, h.sh_offset, h.sh_size, f);
		if (r < 0)
			return r;

		bool eh = is_name(name, ".eh_frame"), old = is_name(name, ".zdebug_frame"),
		     debug = old || is_name(name, ".debug_frame");

		f->native_image |= is_name(name, SVMCODE_HEAP);
		if (is_name(name, ".text")) {
			f->bases.has_text = true;
			f->bases.text = h.sh_addr;
		} else if (is_name(name, ".got.plt") ||
			   (is_name(name, ".got") && !f->bases.has_data)) {
			f->bases.has_data = true;
			f->bases.data = h.sh_addr;
		}
		if ((!eh && !debug) || h.sh_type == SHT_NOTE)
			continue;
		if (h.sh_type == SHT_NOBITS) {
			f->empty_sections++;
			continue;
		}
		if (!within(h.sh_offset, h.sh_size, f->size)) {
			f->truncated = true;
			if (h.sh_offset >= f->size)
				continue;
			h.sh_size = f->size - h.sh_offset;
		}

		struct elf_section s = { .vaddr = h.sh_addr,
					 .offset = h.sh_offset,
					 .size = h.sh_size,
					 .eh = eh,
					 .bounded = true };

		r = old || h.sh_flags & SHF_COMPRESSED ? read_packed(fd, old, &s) : 0;
		if (r < 0)
			return r;
		if (r) {
			f->empty_sections++;
			continue;
		}
		section_add(f, &s);
	}
	return 0;
}

int elf_read(int fd, struct elf_file *f, const char **ret_why)
{
	uint64_t hdr_vaddr = 0, hdr_offset = 0;
	bool sections = false, have_eh = false;
	GElf_Ehdr ehdr;
	int r;

	*f = (struct elf_file){ 0 };
	*ret_why = "";
	r = check_header(fd, f, &sections, ret_why);
	if (r)
		return r;

	elf_version(EV_CURRENT);

	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr)) {
		*ret_why = "damaged: its ELF header cannot be read";
		elf_end(elf);
		return MSG_ROWS_MALFORMED;
	}
	f->entry = ehdr.e_entry;
	f->entry_certain = ehdr.e_type == ET_EXEC;
	r = read_segments(elf, f, &hdr_vaddr, &hdr_offset, ret_why);
	if (!r && sections)
		r = read_sections(fd, elf, f);
	elf_end(elf);
	if (r)
		return r;

	for (unsigned i = 0; i < f->sections; i++)
		have_eh |= f->section[i].eh;
	if (!have_eh && !f->empty_sections && hdr_vaddr)
		read_eh_frame_hdr(fd, f, hdr_vaddr, hdr_offset);
	if (!sections && !f->sections) {
		r = search_eh_frame(fd, f);
		if (r < 0)
			return r;
	}
	/* A separate debug file lacks the bytes of its segments; it does not count as truncated. */
	for (unsigned i = 0; i < f->loads && !f->empty_sections; i++)
		f->truncated |= f->load[i].exec &&
				!within(f->load[i].offset, f->load[i].filesz, f->size);
	return 0;
}

uint32_t elf_pread_up_to(int fd, const struct elf_file *f, void *into, uint32_t n, uint64_t address)
{
	for (unsigned i = 0; i < f->loads; i++) {
		const struct elf_load *l = &f->load[i];

		if (address < l->vaddr || address - l->vaddr >= l->filesz)
			continue;

		const uint64_t at = address - l->vaddr, left = l->filesz - at;
		const int64_t got = fd_pread_all(fd, into, numbers_smaller(n, left),
						 l->offset + at);

		return got < 0 ? 0 : (uint32_t)got;
	}
	return 0;
}

bool elf_pread_at(int fd, const struct elf_file *f, void *into, uint32_t n, uint64_t address)
{
	return elf_pread_up_to(fd, f, into, n, address) == n;
}
