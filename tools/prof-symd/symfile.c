/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index is an array of disjoint ranges, 16 bytes each, made once by a sweep over the sorted
 * symbols; names stay in the file and are read when they are asked for. Sources: System V gABI
 * chapters 4 and 5; the MiniDebugInfo page of gdb's manual; "Separate Debug Files" of the same.
 */
#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "tools/prof-symd/demangle.h"
#include "tools/prof-symd/gaps.h"
#include "tools/prof-symd/symfile.h"

#define MAX_SEGMENTS 1024u
#define MAX_SECTIONS 65535u
#define MAX_NAMES (1u << 20)   /* bytes of section names */
#define MAX_NOTES (64u << 10)  /* bytes of one note section */
#define MAX_SYMBOLS (4u << 20) /* of all tables of one file */
#define MAX_STRINGS (1u << 29) /* bytes of one string table: offsets are packed into 29 bits */
#define MAX_MINI_PACKED (32u << 20)
#define MAX_MINI (64u << 20)	    /* MiniDebugInfo, unpacked */
#define MAX_MINI_MEMORY (80u << 20) /* of the decoder: its dictionary */
#define MAX_CRC (2ull << 30)
#define MAX_ALIASES 64u /* compared for one address */
#define CHUNK (64u << 10)
#define MAX_DYNAMIC 256u       /* entries */
#define MAX_SCAN (64ull << 20) /* bytes of code that are looked at for calls */
#define SMALL_GAP 64u	       /* bytes: _init and _fini are not worth that */

enum table { TABLE_SYMTAB, TABLE_DYNSYM, TABLE_MINI, TABLES };

/* A name: bits 31..30 the table, 28..0 the offset in its strings. In struct range, NAME_ALIASES
 * says instead that the low bits are an index into aliases; there, NAME_LAST marks the end of such
 * a list. */
#define NAME_TABLE_SHIFT 30
#define NAME_FLAG (1u << 29)
#define NAME_ALIASES NAME_FLAG
#define NAME_LAST NAME_FLAG
#define NAME_OFFSET (NAME_FLAG - 1)

struct segment {
	uint64_t offset, filesz, vaddr;
	bool exec;
};

/* Disjoint, rising. */
struct range {
	uint64_t start;
	uint32_t size;
	uint32_t name;
};

/* One symbol while the index is made. */
struct symbol {
	uint64_t value;
	uint32_t size;
	uint32_t name;
	uint32_t kind; /* enum kind */
	uint32_t rank; /* higher is better */
};
static_assert(sizeof(struct range) == 16 && sizeof(struct symbol) == 24, "compact");

enum kind { KIND_BORDER, KIND_UNSIZED, KIND_SIZED };

struct strings {
	uint64_t offset, size; /* in the file */
	uint8_t *bytes;	       /* owned; instead of the file */
};

struct symfile {
	int fd; /* -1: bytes */
	struct span bytes;
	uint64_t size;
	uint16_t machine;
	bool linked, cut;
	bool bare; /* no section headers: sections are its executable segments */
	struct segment *segments;
	uint32_t segment_count;
	struct strings dynamic; /* where PT_DYNAMIC is */
	struct symfile_section *sections;
	uint32_t section_count;
	char *names; /* of sections, NUL-terminated as a whole */
	size_t names_len;
	uint8_t build_id[SYMFILE_BUILD_ID];
	size_t build_id_len;
	char debuglink[256];
	uint32_t debuglink_crc;
	char *altlink; /* path, NUL, build id */
	size_t altlink_len;

	bool indexed;
	int index_verdict;
	struct strings strings[TABLES];
	struct range *ranges;
	size_t range_count;
	uint32_t *aliases;
	size_t alias_count;
};

const char *symfile_verdict_text(int verdict)
{
	switch (verdict) {
	case SYMFILE_NOT_ELF:
		return "is not an ELF file";
	case SYMFILE_UNSUPPORTED:
		return "is no 64-bit little-endian program or shared object";
	case SYMFILE_MALFORMED:
		return "is cut short or malformed";
	case SYMFILE_TOO_LARGE:
		return "is over a limit";
	}
	return "has nothing there";
}

/* --- reading --- */

int symfile_read(const struct symfile *f, uint64_t offset, void *into, size_t n)
{
	size_t done = 0;

	if (offset > f->size || n > f->size - offset)
		return SYMFILE_MALFORMED;
	if (f->fd < 0) {
		if (n)
			memcpy(into, f->bytes.data + offset, n);
		return 0;
	}
	while (done < n) {
		ssize_t r = pread(f->fd, (char *)into + done, n - done, (off_t)(offset + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			return SYMFILE_MALFORMED; /* it shrank */
		done += (size_t)r;
	}
	return 0;
}

static int read_segments(struct symfile *f, const Elf64_Ehdr *e)
{
	if (e->e_phnum == 0)
		return 0;
	if (e->e_phentsize != sizeof(Elf64_Phdr))
		return SYMFILE_MALFORMED;
	if (e->e_phnum > MAX_SEGMENTS)
		return SYMFILE_TOO_LARGE;
	f->segments = calloc(e->e_phnum, sizeof(*f->segments));
	if (!f->segments)
		return -ENOMEM;
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
			f->segments[f->segment_count++] = (struct segment){ .offset = p.p_offset,
									    .filesz = p.p_filesz,
									    .vaddr = p.p_vaddr,
									    .exec = p.p_flags &
										    PF_X };
		else if (p.p_type == PT_DYNAMIC)
			f->dynamic = (struct strings){ .offset = p.p_offset, .size = p.p_filesz };
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
	/* A copy of what a process has in memory ends before its section headers: as if it had
	 * none.
	 */
	if (e->e_shoff >= f->size) {
		f->cut = true;
		return 0;
	}
	if (count * sizeof(s) > f->size - e->e_shoff)
		return SYMFILE_MALFORMED;
	f->sections = calloc(count, sizeof(*f->sections));
	if (!f->sections)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		r = symfile_read(f, e->e_shoff + i * sizeof(s), &s, sizeof(s));
		if (r)
			return r;
		f->sections[i] = (struct symfile_section){
			.addr = s.sh_addr,
			.offset = s.sh_offset,
			.size = s.sh_size,
			.flags = s.sh_flags,
			.name = s.sh_name,
			.type = s.sh_type,
			.link = s.sh_link,
			.entsize = s.sh_entsize > UINT32_MAX ? UINT32_MAX : (uint32_t)s.sh_entsize
		};
	}
	f->section_count = (uint32_t)count;
	if (names == 0 || names >= count)
		return 0;
	if (f->sections[names].size > MAX_NAMES)
		return SYMFILE_TOO_LARGE;
	f->names = malloc(f->sections[names].size + 1);
	if (!f->names)
		return -ENOMEM;
	r = symfile_read(f, f->sections[names].offset, f->names, f->sections[names].size);
	if (r)
		return r;
	f->names_len = f->sections[names].size;
	f->names[f->names_len] = '\0';
	return 0;
}

/* For a program without section headers: one for each executable segment. */
static int make_sections(struct symfile *f)
{
	f->sections = calloc(f->segment_count + 1u, sizeof(*f->sections));
	if (!f->sections)
		return -ENOMEM;
	f->bare = true;
	f->section_count = 1;
	for (uint32_t i = 0; i < f->segment_count; i++) {
		const struct segment *s = &f->segments[i];

		if (s->exec)
			f->sections[f->section_count++] = (struct symfile_section){
				.addr = s->vaddr,
				.offset = s->offset,
				.size = s->filesz,
				.flags = SHF_ALLOC | SHF_EXECINSTR,
				.type = SHT_PROGBITS,
			};
	}
	return 0;
}

/* Notes (gABI, "Note Section"): padded to four bytes, or to eight in segments that are aligned so,
 * where the sizes make no difference to what is sought. */
static void take_build_id(struct symfile *f, uint64_t offset, uint64_t size)
{
	uint8_t *bytes;
	struct span rest;
	Elf64_Nhdr n;

	if (size > MAX_NOTES || f->build_id_len)
		return;
	bytes = malloc(size + 1);
	if (!bytes)
		return;
	if (symfile_read(f, offset, bytes, size) == 0) {
		rest = (struct span){ .data = bytes, .len = size };
		while (span_read(&rest, &n, sizeof(n))) {
			struct span name, desc, pad;

			if (!span_take(&rest, n.n_namesz, &name))
				break;
			if (-n.n_namesz % 4 && !span_take(&rest, -n.n_namesz % 4, &pad))
				break;
			if (!span_take(&rest, n.n_descsz, &desc))
				break;
			if (n.n_type == NT_GNU_BUILD_ID && name.len == 4 &&
			    memcmp(name.data, "GNU", 4) == 0 && desc.len > 0 &&
			    desc.len <= sizeof(f->build_id)) {
				memcpy(f->build_id, desc.data, desc.len);
				f->build_id_len = desc.len;
				break;
			}
			if (-n.n_descsz % 4 && !span_take(&rest, -n.n_descsz % 4, &pad))
				break;
		}
	}
	free(bytes);
}

static int read_build_id(struct symfile *f, const Elf64_Ehdr *e)
{
	for (uint32_t i = 0; i < f->section_count && !f->build_id_len; i++)
		if (f->sections[i].type == SHT_NOTE)
			take_build_id(f, f->sections[i].offset, f->sections[i].size);
	for (uint32_t i = 0; i < e->e_phnum && !f->build_id_len; i++) {
		Elf64_Phdr p;
		int r = symfile_read(f, e->e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p));

		if (r)
			return r;
		if (p.p_type == PT_NOTE)
			take_build_id(f, p.p_offset, p.p_filesz);
	}
	return 0;
}

/* .gnu_debuglink: a name, NUL, padding to four bytes, the checksum. */
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

	if (f->size < SELFMAG)
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
	f->linked = e.e_type != ET_REL;
	f->machine = e.e_machine;
	r = read_segments(f, &e);
	if (r == 0)
		r = read_sections(f, &e);
	if (r == 0 && !f->section_count && f->linked)
		r = make_sections(f);
	if (r == 0)
		r = read_build_id(f, &e);
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
	f->size = size;
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
	for (int i = 0; i < TABLES; i++)
		free(f->strings[i].bytes);
	free(f->segments);
	free(f->sections);
	free(f->names);
	free(f->altlink);
	free(f->ranges);
	free(f->aliases);
	free(f);
}

struct span symfile_build_id(const struct symfile *f)
{
	return (struct span){ .data = f->build_id, .len = f->build_id_len };
}

int symfile_fd(const struct symfile *f)
{
	return f->fd;
}

uint64_t symfile_size(const struct symfile *f)
{
	return f->size;
}

bool symfile_is_cut(const struct symfile *f)
{
	return f->cut;
}

bool symfile_is_linked(const struct symfile *f)
{
	return f->linked;
}

unsigned symfile_machine(const struct symfile *f)
{
	return f->machine;
}

int symfile_debuglink(const struct symfile *f, const char **ret_name, uint32_t *ret_crc)
{
	if (!f->debuglink[0])
		return SYMFILE_NONE;
	*ret_name = f->debuglink;
	*ret_crc = f->debuglink_crc;
	return 0;
}

int symfile_crc(const struct symfile *f, uint32_t *ret)
{
	uint8_t chunk[CHUNK];
	uLong crc = crc32(0, NULL, 0);

	if (f->size > MAX_CRC)
		return SYMFILE_TOO_LARGE;
	for (uint64_t at = 0; at < f->size;) {
		size_t n = f->size - at < sizeof(chunk) ? (size_t)(f->size - at) : sizeof(chunk);
		int r = symfile_read(f, at, chunk, n);

		if (r)
			return r;
		crc = crc32(crc, chunk, (uInt)n);
		at += n;
	}
	*ret = (uint32_t)crc;
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

/* Mappings are whole pages, so that one page of the file may be mapped by two segments: code is
 * looked for in the executable one first. */
int symfile_address(const struct symfile *f, uint64_t offset, uint64_t *ret_address)
{
	for (int exec = 1; exec >= 0; exec--) {
		for (uint32_t i = 0; i < f->segment_count; i++) {
			const struct segment *s = &f->segments[i];

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
	for (uint32_t i = 0; i < f->segment_count; i++) {
		const struct segment *s = &f->segments[i];

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

	for (uint32_t i = 0; i < f->segment_count; i++)
		if (f->segments[i].vaddr < base)
			base = f->segments[i].vaddr;
	return f->segment_count ? base : 0;
}

int symfile_section(const struct symfile *f, const char *name, const struct symfile_section **ret)
{
	for (uint32_t i = 1; i < f->section_count; i++) {
		if (f->sections[i].name < f->names_len &&
		    strcmp(f->names + f->sections[i].name, name) == 0) {
			*ret = &f->sections[i];
			return 0;
		}
	}
	return SYMFILE_NONE;
}

static const struct symfile_section *section_of_type(const struct symfile *f, uint32_t type)
{
	for (uint32_t i = 1; i < f->section_count; i++)
		if (f->sections[i].type == type)
			return &f->sections[i];
	return NULL;
}

bool symfile_has_symtab(const struct symfile *f)
{
	return section_of_type(f, SHT_SYMTAB) != NULL;
}

/* --- the index --- */

struct symbols {
	struct symbol *data;
	size_t len, cap;
};

static int push_symbol(struct symbols *all, const struct symbol *s)
{
	if (all->len == all->cap) {
		size_t cap = all->cap ? all->cap + all->cap / 2 : 4096;
		struct symbol *data;

		if (all->len >= MAX_SYMBOLS)
			return SYMFILE_TOO_LARGE;
		data = realloc(all->data, cap * sizeof(*data));
		if (!data)
			return -ENOMEM;
		all->data = data;
		all->cap = cap;
	}
	all->data[all->len++] = *s;
	return 0;
}

static bool holds_code_at(const struct symfile_section *s, uint64_t address)
{
	return (s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR) && address >= s->addr &&
	       address - s->addr < s->size;
}

static const struct symfile_section *section_at(const struct symfile *f, uint64_t address)
{
	for (uint32_t i = 1; i < f->section_count; i++)
		if (holds_code_at(&f->sections[i], address))
			return &f->sections[i];
	return NULL;
}

static uint32_t symbol_rank(const Elf64_Sym *s)
{
	unsigned bind = ELF64_ST_BIND(s->st_info), type = ELF64_ST_TYPE(s->st_info);
	uint32_t rank = bind == STB_GLOBAL || bind == STB_GNU_UNIQUE ? 2 : bind == STB_WEAK ? 1 : 0;

	return rank + (type == STT_NOTYPE ? 0 : 4);
}

/* Adds the symbols of section t of f as those of `table`. */
static int add_table(const struct symfile *f, const struct symfile_section *t, enum table table,
		     uint64_t strings_size, struct symbols *all)
{
	Elf64_Sym chunk[CHUNK / 4 / sizeof(Elf64_Sym)];
	uint64_t count = t->size / sizeof(Elf64_Sym);

	if (t->entsize != sizeof(Elf64_Sym) || t->offset > f->size || t->size > f->size - t->offset)
		return SYMFILE_MALFORMED;
	for (uint64_t at = 0; at < count;) {
		size_t n = count - at < sizeof(chunk) / sizeof(chunk[0])
				   ? (size_t)(count - at)
				   : sizeof(chunk) / sizeof(chunk[0]);
		int r = symfile_read(f, t->offset + at * sizeof(Elf64_Sym), chunk,
				     n * sizeof(Elf64_Sym));

		if (r)
			return r;
		for (size_t i = 0; i < n; i++) {
			const Elf64_Sym *s = &chunk[i];
			unsigned type = ELF64_ST_TYPE(s->st_info);
			const struct symfile_section *in;
			struct symbol symbol;
			uint64_t room;

			if (s->st_shndx == SHN_UNDEF || type == STT_TLS || type == STT_FILE ||
			    s->st_shndx >= (f->bare ? SHN_LORESERVE : f->section_count))
				continue;
			in = f->bare ? NULL : &f->sections[s->st_shndx];
			if (!in || !holds_code_at(in, s->st_value)) {
				/* Tools that add or remove sections leave the numbers in .dynsym as
				 * they were. */
				in = f->bare || (table == TABLE_DYNSYM && s->st_size)
					     ? section_at(f, s->st_value)
					     : NULL;
				if (!in)
					continue;
			}
			room = in->size - (s->st_value - in->addr);
			symbol = (struct symbol){ .value = s->st_value, .rank = symbol_rank(s) };
			if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
			    s->st_name == 0 || s->st_name >= strings_size ||
			    (f->bare && !s->st_size) ||
			    (type == STT_NOTYPE && f->machine != EM_X86_64 &&
			     ELF64_ST_BIND(s->st_info) == STB_LOCAL)) {
				symbol.kind =
					KIND_BORDER; /* objects in text, arm64's mapping symbols */
				symbol.rank = 0;
			} else {
				uint64_t size = s->st_size ? s->st_size : room;

				symbol.kind = s->st_size ? KIND_SIZED : KIND_UNSIZED;
				size = size < room ? size : room;
				symbol.size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
				symbol.name = (uint32_t)table << NAME_TABLE_SHIFT | s->st_name;
			}
			r = push_symbol(all, &symbol);
			if (r)
				return r;
		}
		at += n;
	}
	return 0;
}

static int find_strings(const struct symfile *f, const struct symfile_section *t,
			struct strings *ret)
{
	const struct symfile_section *s;

	if (t->link == 0 || t->link >= f->section_count)
		return SYMFILE_MALFORMED;
	s = &f->sections[t->link];
	if (s->type != SHT_STRTAB || s->size >= MAX_STRINGS || s->offset > f->size ||
	    s->size > f->size - s->offset)
		return SYMFILE_MALFORMED;
	*ret = (struct strings){ .offset = s->offset, .size = s->size };
	return 0;
}

/* Unpacks .gnu_debugdata into fresh memory. */
static int unpack_mini(const struct symfile *f, const struct symfile_section *s, uint8_t **ret,
		       size_t *ret_len)
{
	lzma_stream z = LZMA_STREAM_INIT;
	uint8_t *packed = NULL, *out = NULL;
	size_t cap = 0;
	int r;

	if (s->type == SHT_NOBITS || s->size == 0)
		return SYMFILE_NONE;
	if (s->size > MAX_MINI_PACKED)
		return SYMFILE_TOO_LARGE;
	if (lzma_stream_decoder(&z, MAX_MINI_MEMORY, 0) != LZMA_OK)
		return -ENOMEM;
	packed = malloc(s->size);
	r = packed ? symfile_read(f, s->offset, packed, s->size) : -ENOMEM;
	z.next_in = packed;
	z.avail_in = s->size;
	while (r == 0) {
		lzma_ret lr;

		if (z.avail_out == 0) {
			size_t grown = cap ? cap * 2 : 1u << 16;
			uint8_t *p = cap < MAX_MINI ? realloc(out, grown) : NULL;

			if (!p) {
				r = cap < MAX_MINI ? -ENOMEM : SYMFILE_TOO_LARGE;
				break;
			}
			out = p;
			z.next_out = out + cap;
			z.avail_out = grown - cap;
			cap = grown;
		}
		lr = lzma_code(&z, LZMA_FINISH);
		if (lr == LZMA_STREAM_END)
			break;
		if (lr != LZMA_OK)
			r = lr == LZMA_MEM_ERROR	? -ENOMEM
			    : lr == LZMA_MEMLIMIT_ERROR ? SYMFILE_TOO_LARGE
							: SYMFILE_MALFORMED;
	}
	if (r == 0) {
		*ret = out;
		*ret_len = cap - z.avail_out;
		out = NULL;
	}
	lzma_end(&z);
	free(packed);
	free(out);
	return r;
}

static int add_mini(struct symfile *f, const struct symfile_section *s, struct symbols *all)
{
	const struct symfile_section *t;
	struct symfile *mini = NULL;
	struct strings *strings = &f->strings[TABLE_MINI];
	uint8_t *bytes = NULL;
	size_t len;
	int r;

	r = unpack_mini(f, s, &bytes, &len);
	if (r)
		return r;
	r = symfile_open_bytes((struct span){ .data = bytes, .len = len }, &mini);
	if (r)
		goto out;
	t = section_of_type(mini, SHT_SYMTAB);
	r = t ? find_strings(mini, t, strings) : SYMFILE_NONE;
	if (r)
		goto out;
	strings->bytes = malloc(strings->size + 1);
	if (!strings->bytes) {
		r = -ENOMEM;
		goto out;
	}
	memcpy(strings->bytes, bytes + strings->offset, strings->size);
	r = add_table(mini, t, TABLE_MINI, strings->size, all);
out:
	symfile_free(mini);
	free(bytes);
	return r;
}

/* The offset in the file of what lies at an address. */
static bool locate(const struct symfile *f, uint64_t address, uint64_t *ret)
{
	for (uint32_t i = 0; i < f->segment_count; i++) {
		const struct segment *s = &f->segments[i];

		if (address >= s->vaddr && address - s->vaddr < s->filesz) {
			*ret = s->offset + (address - s->vaddr);
			return true;
		}
	}
	return false;
}

/* How many symbols a hash table speaks of: DT_HASH says it; in DT_GNU_HASH it is where the last
 * chain ends. */
static int count_hashed(const struct symfile *f, uint64_t address, bool gnu, uint64_t *ret)
{
	uint32_t head[4], chunk[1024], last = 0;
	uint64_t at;

	if (!locate(f, address, &at))
		return SYMFILE_NONE;
	int r = symfile_read(f, at, head, gnu ? 16 : 8);

	if (r || !gnu) {
		*ret = r ? 0 : head[1];
		return r;
	}
	at += 16 + (uint64_t)head[2] * 8;
	for (uint32_t i = 0; i < head[0] && !r;) {
		uint32_t n = head[0] - i < 1024 ? head[0] - i : 1024;

		r = symfile_read(f, at, chunk, n * 4ull);
		for (uint32_t k = 0; k < n && !r; k++)
			last = chunk[k] > last ? chunk[k] : last;
		i += n;
		at += n * 4ull;
	}
	if (r || last < head[1] || last > MAX_SYMBOLS) {
		*ret = head[1];
		return r;
	}
	at += (last - head[1]) * 4ull;
	do {
		r = symfile_read(f, at, chunk, 4);
		at += 4;
	} while (!r && !(chunk[0] & 1) && last++ < MAX_SYMBOLS);
	*ret = last + 1ull;
	return r;
}

/* The symbols that PT_DYNAMIC leads to, where no section header does. */
static int add_dynamic(struct symfile *f, struct symbols *all)
{
	Elf64_Dyn d[MAX_DYNAMIC];
	uint64_t value[DT_SYMENT + 1] = { 0 }, gnu = 0, count = 0;
	size_t n = f->dynamic.size < sizeof(d) ? (size_t)f->dynamic.size : sizeof(d);
	struct symfile_section t = { .entsize = sizeof(Elf64_Sym) };
	struct strings *strings = &f->strings[TABLE_DYNSYM];
	int r = symfile_read(f, f->dynamic.offset, d, n);

	if (r)
		return r;
	for (size_t i = 0; i < n / sizeof(d[0]) && d[i].d_tag != DT_NULL; i++) {
		if (d[i].d_tag > 0 && d[i].d_tag <= DT_SYMENT)
			value[d[i].d_tag] = d[i].d_un.d_val;
		else if (d[i].d_tag == DT_GNU_HASH)
			gnu = d[i].d_un.d_val;
	}
	if (!locate(f, value[DT_SYMTAB], &t.offset) ||
	    !locate(f, value[DT_STRTAB], &strings->offset) || value[DT_STRSZ] >= MAX_STRINGS ||
	    strings->offset > f->size || value[DT_STRSZ] > f->size - strings->offset)
		return SYMFILE_NONE;
	strings->size = value[DT_STRSZ];
	r = count_hashed(f, value[DT_HASH] ? value[DT_HASH] : gnu, !value[DT_HASH], &count);
	if (r)
		return r;
	if (t.offset > f->size || count > (f->size - t.offset) / sizeof(Elf64_Sym))
		return SYMFILE_MALFORMED;
	t.size = count * sizeof(Elf64_Sym);
	return add_table(f, &t, TABLE_DYNSYM, strings->size, all);
}

/* By start; then what is to win comes last. */
static int symbol_cmp(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static bool is_alias(const struct symbol *a, const struct symbol *b)
{
	return a->value == b->value && a->kind == b->kind && a->rank == b->rank &&
	       a->size == b->size;
}

/* Where ranges are collected. Every symbol opens at most one range and ends at most one. */
struct sweep {
	struct range *out;
	size_t len, max;
};

static void emit(struct sweep *w, uint64_t from, uint64_t to, uint32_t name)
{
	struct range *last = w->len ? &w->out[w->len - 1] : NULL;

	if (last && last->name == name && last->start + last->size == from &&
	    to - last->start <= UINT32_MAX)
		last->size = (uint32_t)(to - last->start);
	else if (w->len < w->max)
		w->out[w->len++] = (struct range){ .start = from,
						   .size = (uint32_t)(to - from),
						   .name = name };
}

/* Turns the sorted groups into disjoint ranges: `open` is the stack of sized symbols that cover the
 * present position, the one that starts last on top. */
static void sweep_groups(struct sweep *w, const struct symbol *g, size_t count, uint32_t *open)
{
	const struct symbol *unsized = NULL;
	uint64_t pos = 0;
	size_t depth = 0;

	for (size_t i = 0; i <= count; i++) {
		uint64_t start = i < count ? g[i].value : UINT64_MAX;

		while (pos < start) {
			while (depth && g[open[depth - 1]].value + g[open[depth - 1]].size <= pos)
				depth--;
			const struct symbol *top = depth ? &g[open[depth - 1]] : unsized;

			if (!top || top->value + top->size <= pos)
				break;
			uint64_t end = top->value + top->size;

			end = end < start ? end : start;
			emit(w, pos, end, top->name);
			pos = end;
		}
		pos = start;
		if (i == count)
			break;
		if (unsized && unsized->value < start)
			unsized = NULL;
		while (depth && g[open[depth - 1]].value + g[open[depth - 1]].size <= pos)
			depth--;
		if (g[i].kind == KIND_SIZED) {
			open[depth++] = (uint32_t)i;
			unsized = NULL;
		} else if (g[i].kind == KIND_UNSIZED && depth == 0) {
			unsized = &g[i];
		}
	}
}

/* Folds aliases into one entry each, in place. */
static int fold_aliases(struct symfile *f, struct symbol *g, size_t *count)
{
	size_t kept = 0, aliases = 0;

	for (size_t i = 1; i < *count; i++)
		aliases += g[i].kind != KIND_BORDER && is_alias(&g[i - 1], &g[i]);
	if (aliases) {
		f->aliases = malloc(2 * aliases * sizeof(*f->aliases));
		if (!f->aliases)
			return -ENOMEM;
	}
	for (size_t i = 0; i < *count;) {
		size_t n = 1;

		while (i + n < *count && is_alias(&g[i], &g[i + n]))
			n++;
		if (n > 1 && g[i].kind != KIND_BORDER) {
			uint32_t first = (uint32_t)f->alias_count;

			for (size_t k = 0; k < n; k++)
				f->aliases[f->alias_count++] = g[i + k].name;
			f->aliases[f->alias_count - 1] |= NAME_LAST;
			g[i].name = first | NAME_ALIASES;
		}
		g[kept++] = g[i];
		i += n;
	}
	*count = kept;
	return 0;
}

/* Where functions start that have no symbol, as far as call frame information and, in code that
 * nothing else tells of, calls say. */
static int narrow(const struct symfile *f, struct gap *gaps, size_t count, bool calls)
{
	uint8_t *chunk = malloc(CHUNK), head[GAPS_HEADER];
	const struct symfile_section *s;
	uint64_t scanned = 0;
	int r = chunk ? 0 : -ENOMEM;

	if (!r && symfile_section(f, ".eh_frame_hdr", &s) == 0 && s->type != SHT_NOBITS &&
	    symfile_read(f, s->offset, head, sizeof(head)) == 0) {
		uint64_t left = (uint64_t)gaps_table(head) * GAPS_ENTRY,
			 at = s->offset + sizeof(head);

		while (left) {
			size_t n = left < CHUNK ? (size_t)left : CHUNK;

			if (symfile_read(f, at, chunk, n))
				break;
			gaps_entries(gaps, count, (struct span){ .data = chunk, .len = n },
				     s->addr);
			left -= n;
			at += n;
		}
	}
	for (uint32_t i = 1; !r && calls && i < f->section_count; i++) {
		s = &f->sections[i];
		if (!(s->flags & SHF_EXECINSTR) || s->type != SHT_PROGBITS)
			continue;
		for (uint64_t at = 0; at + GAPS_CALL <= s->size && scanned < MAX_SCAN;) {
			size_t n = s->size - at < CHUNK ? (size_t)(s->size - at) : CHUNK;

			if (symfile_read(f, s->offset + at, chunk, n))
				break;
			gaps_calls(gaps, count, (struct span){ .data = chunk, .len = n },
				   s->addr + at);
			/* The next begins with what may be the beginning of a call. */
			at += n - (GAPS_CALL - 1);
			scanned += n;
		}
	}
	free(chunk);
	return r;
}

/* Sets how far symbols reach that have no size. whole: the table lacks none. */
static int limit_unsized(const struct symfile *f, struct symbols *all, bool whole)
{
	struct gap *gaps = NULL;
	size_t count = 0, used = 0;
	uint64_t room = 0;

	for (size_t i = 0; i < all->len; i++)
		count += all->data[i].kind == KIND_UNSIZED;
	if (!count || !f->linked)
		return 0;
	gaps = malloc(count * sizeof(*gaps));
	if (!gaps)
		return -ENOMEM;
	count = 0;
	for (size_t i = all->len, next = all->len; i-- > 0;) {
		const struct symbol *s = &all->data[i];

		if (i + 1 < all->len && all->data[i + 1].value != s->value)
			next = i + 1;
		if (s->kind != KIND_UNSIZED || (count && gaps[count - 1].start == s->value))
			continue;
		uint64_t end = s->value + s->size;

		if (next < all->len && all->data[next].value < end)
			end = all->data[next].value;
		room += end - s->value;
		gaps[count++] = (struct gap){ .start = s->value, .end = end };
	}
	for (size_t i = 0; i < count / 2; i++) {
		struct gap other = gaps[i];

		gaps[i] = gaps[count - 1 - i];
		gaps[count - 1 - i] = other;
	}
	int r = narrow(f, gaps, count,
		       !whole && f->machine == EM_X86_64 && room > (uint64_t)SMALL_GAP);

	for (size_t i = 0; !r && i < all->len; i++) {
		struct symbol *s = &all->data[i];

		if (s->kind != KIND_UNSIZED)
			continue;
		while (gaps[used].start < s->value)
			used++;
		s->size = (uint32_t)(gaps[used].end - s->value);
	}
	free(gaps);
	return r;
}

static int make_ranges(struct symfile *f, struct symbols *all, bool whole)
{
	struct sweep w = { 0 };
	uint32_t *open;
	int r;

	if (all->len == 0)
		return 0;
	qsort(all->data, all->len, sizeof(*all->data), symbol_cmp);
	r = limit_unsized(f, all, whole);
	if (!r)
		r = fold_aliases(f, all->data, &all->len);
	if (r)
		return r;
	w.max = 2 * all->len;
	w.out = malloc(w.max * sizeof(*w.out));
	open = malloc(all->len * sizeof(*open));
	if (w.out && open)
		sweep_groups(&w, all->data, all->len, open);
	else
		r = -ENOMEM;
	free(open);
	if (r == 0 && w.len > 0) {
		struct range *fit = realloc(w.out, w.len * sizeof(*fit));

		f->ranges = fit ? fit : w.out;
		f->range_count = w.len;
	} else {
		free(w.out);
	}
	return r;
}

static int build_index(struct symfile *f)
{
	const struct symfile_section *symtab = section_of_type(f, SHT_SYMTAB),
				     *dynsym = section_of_type(f, SHT_DYNSYM), *mini;
	struct symbols all = { 0 };
	bool whole = symtab;
	int r = 0, mini_r = 0;

	if (symtab) {
		r = find_strings(f, symtab, &f->strings[TABLE_SYMTAB]);
		if (r == 0)
			r = add_table(f, symtab, TABLE_SYMTAB, f->strings[TABLE_SYMTAB].size, &all);
	} else {
		if (dynsym && dynsym->type != SHT_NOBITS) {
			r = find_strings(f, dynsym, &f->strings[TABLE_DYNSYM]);
			if (r == 0)
				r = add_table(f, dynsym, TABLE_DYNSYM,
					      f->strings[TABLE_DYNSYM].size, &all);
		}
		if (r >= 0 && symfile_section(f, ".gnu_debugdata", &mini) == 0) {
			mini_r = add_mini(f, mini, &all);
			whole = !mini_r;
		}
		if (f->bare)
			r = add_dynamic(f, &all);
	}
	/* What one damaged table had before the damage is not used; the other table is. */
	if (r >= 0 && mini_r >= 0) {
		int made = make_ranges(f, &all, whole);

		r = made ? made : f->range_count ? 0 : r ? r : mini_r;
	} else {
		r = r < 0 ? r : mini_r;
	}
	free(all.data);
	return r;
}

static int read_name(const struct symfile *f, uint32_t name, char into[static SYMFILE_NAME])
{
	const struct strings *s = &f->strings[name >> NAME_TABLE_SHIFT];
	uint64_t offset = name & NAME_OFFSET;
	size_t n, done = 0;

	if (offset >= s->size)
		return SYMFILE_MALFORMED;
	n = s->size - offset < SYMFILE_NAME - 1 ? (size_t)(s->size - offset) : SYMFILE_NAME - 1;
	into[n] = '\0';
	if (s->bytes) {
		memcpy(into, s->bytes + offset, n);
		return 0;
	}
	while (done < n) {
		size_t part = n - done < 256 ? n - done : 256;
		int r = symfile_read(f, s->offset + offset + done, into + done, part);

		if (r)
			return r;
		if (memchr(into + done, '\0', part))
			return 0;
		done += part;
	}
	return 0;
}

static int read_best_alias(const struct symfile *f, uint32_t first, char best[static SYMFILE_NAME])
{
	char name[SYMFILE_NAME], shown[DEMANGLE_MAX];
	size_t best_len = SIZE_MAX;

	for (uint32_t i = 0; i < MAX_ALIASES && first + i < f->alias_count; i++) {
		int r = read_name(f, f->aliases[first + i] & ~NAME_LAST, name);
		size_t len;

		if (r)
			return r;
		len = demangle(name, shown, sizeof(shown));
		if (len < best_len || (len == best_len && strcmp(name, best) < 0)) {
			best_len = len;
			strcpy(best, name);
		}
		if (f->aliases[first + i] & NAME_LAST)
			break;
	}
	return best_len == SIZE_MAX ? SYMFILE_NONE : 0;
}

int symfile_lookup(struct symfile *f, uint64_t address, char ret_name[static SYMFILE_NAME])
{
	size_t low = 0, high;
	const struct range *r;

	if (!f->indexed) {
		f->index_verdict = build_index(f);
		f->indexed = true;
	}
	if (f->index_verdict)
		return f->index_verdict;
	high = f->range_count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->ranges[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return SYMFILE_NONE;
	r = &f->ranges[low - 1];
	if (address - r->start >= r->size)
		return SYMFILE_NONE;
	if (r->name & NAME_ALIASES)
		return read_best_alias(f, r->name & NAME_OFFSET, ret_name);
	return read_name(f, r->name, ret_name);
}

size_t symfile_bytes(const struct symfile *f)
{
	size_t bytes = sizeof(*f) + f->segment_count * sizeof(*f->segments) +
		       f->section_count * sizeof(*f->sections) + f->names_len + f->altlink_len +
		       f->range_count * sizeof(*f->ranges) + f->alias_count * sizeof(*f->aliases);

	for (int i = 0; i < TABLES; i++)
		bytes += f->strings[i].bytes ? f->strings[i].size : 0;
	return bytes;
}
