/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/process/core.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>
#include "common/base/bytes/notes.h"
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"

#define HEADERS_AT_ONCE 256
#define SEGMENTS_MAX 64 /* program headers of a mapped file that are read */
#define NOTE_MAX 4096	/* bytes of a mapped file's notes that are read */

const char *core_verdict_text(int verdict)
{
	switch (verdict) {
	case CORE_NOT_ELF:
	case CORE_NOT_CORE:
		return "is not a core file";
	case CORE_UNSUPPORTED:
		return "is not the core of a 64-bit x86 program";
	case CORE_MALFORMED:
		return "is damaged, or truncated within its headers";
	case CORE_TOO_LARGE:
		return "has too many threads or mappings";
	default:
		return "has no thread's registers";
	}
}

/* Returns 0; CORE_MALFORMED if not all bytes are there; -errno. */
static int read_at(int fd, void *to, size_t n, uint64_t offset)
{
	if (offset > INT64_MAX - n)
		return CORE_MALFORMED;
	const ssize_t got = fd_pread_all(fd, to, n, offset);

	return got < 0 ? (int)got : (size_t)got < n ? CORE_MALFORMED : 0;
}

/* Makes room for one more item of `size` bytes. */
static int grow(void **data, size_t count, size_t max, size_t size)
{
	/* The array is full at each power of two. */
	if (count & (count - 1) || (count && count < 8))
		return 0;
	if (count >= max)
		return CORE_TOO_LARGE;
	void *p = reallocarray(*data, count ? count * 2 : 8, size);

	if (!p)
		return -ENOMEM;
	*data = p;
	return 0;
}

/* --- notes --- */

static int take_thread(struct core *c, struct span note)
{
	struct elf_prstatus st;
	struct user_regs_struct r;

	static_assert(sizeof(r) == sizeof(st.pr_reg), "the kernel's order");
	if (note.len < sizeof(st))
		return CORE_MALFORMED;
	memcpy(&st, note.data, sizeof(st));
	memcpy(&r, st.pr_reg, sizeof(r));
	int error = grow((void **)&c->threads, c->thread_count, CORE_MAX_THREADS,
			 sizeof(*c->threads));

	if (error)
		return error;
	const uint64_t regs[16] = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp,
				    r.r8,  r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15 };
	struct message_thread *t = &c->threads[c->thread_count++];

	*t = (struct message_thread){ .pc = r.rip,
				      .tls = r.fs_base,
				      .tid = (uint32_t)st.pr_pid,
				      .in_syscall = (long)r.orig_rax >= 0 };
	memcpy(t->regs, regs, sizeof(regs));
	return 0;
}

/* NT_FILE: count, page size, count times (start, end, offset in pages), then as many paths. */
static int take_files(struct core *c, struct span note)
{
	uint64_t count, page;

	if (c->files) /* only the first note counts */
		return 0;
	if (!span_read(&note, &count, 8) || !span_read(&note, &page, 8) || count > note.len / 24)
		return CORE_MALFORMED;
	c->files = calloc(count + 1, sizeof(*c->files));
	if (!c->files)
		return -ENOMEM;
	struct span numbers = note;

	note.data += count * 24;
	note.len -= count * 24;
	for (uint64_t i = 0; i < count; i++) {
		struct core_file f;
		uint64_t n[3];
		const char *end = note.len ? memchr(note.data, '\0', note.len) : NULL;
		struct span path;

		if (!end || !span_read(&numbers, n, sizeof(n)) ||
		    !span_take(&note, (size_t)(end + 1 - (const char *)note.data), &path))
			return CORE_MALFORMED;
		f = (struct core_file){ .start = n[0],
					.end = n[1],
					.path = (const char *)path.data };
		if (f.start < f.end && !__builtin_mul_overflow(n[2], page, &f.offset))
			c->files[c->file_count++] = f;
	}
	return 0;
}

static void take_auxv(struct core *c, struct span note)
{
	uint64_t pair[2];

	while (span_read(&note, pair, sizeof(pair)) && pair[0] != AT_NULL)
		if (pair[0] == AT_SYSINFO_EHDR)
			c->vdso = pair[1];
}

static int take_notes(struct core *c, struct span s)
{
	struct note n;
	int r = 0;

	while (!r && notes_next(&s, &n)) {
		if (!str_eq(n.name, STR_LIT("CORE")))
			continue;
		if (n.type == NT_PRSTATUS)
			r = take_thread(c, n.content);
		else if (n.type == NT_FILE)
			r = take_files(c, n.content);
		else if (n.type == NT_AUXV)
			take_auxv(c, n.content);
	}
	return r;
}

/* --- headers --- */

static int add_range(struct core *c, const Elf64_Phdr *p)
{
	struct core_range range = { .start = p->p_vaddr,
				    .offset = p->p_offset,
				    .filled = p->p_filesz,
				    .executable = p->p_flags & PF_X,
				    .writable = p->p_flags & PF_W };
	uint64_t end;

	if (!p->p_memsz || __builtin_add_overflow(p->p_vaddr, p->p_memsz, &range.end))
		return 0;
	if (range.filled > p->p_memsz)
		range.filled = p->p_memsz;
	if (__builtin_add_overflow(range.offset, range.filled, &end))
		return CORE_MALFORMED;
	if (end > c->wanted_size)
		c->wanted_size = end;
	if (range.offset >= c->size)
		range.filled = 0;
	else if (range.filled > c->size - range.offset)
		range.filled = c->size - range.offset;
	int r = grow((void **)&c->ranges, c->range_count, CORE_MAX_HEADERS, sizeof(*c->ranges));

	if (!r)
		c->ranges[c->range_count++] = range;
	return r;
}

/* The paths of files point into this buffer. */
static int read_notes(struct core *c, const Elf64_Phdr *p)
{
	uint64_t n = p->p_filesz;

	if (c->notes || !n) /* gdb and the kernel write only one segment */
		return 0;
	if (n > CORE_MAX_NOTES)
		return CORE_TOO_LARGE;
	if (p->p_offset > c->size || n > c->size - p->p_offset)
		return CORE_MALFORMED;
	c->notes = malloc(n);
	if (!c->notes)
		return -ENOMEM;
	int r = read_at(c->fd, c->notes, n, p->p_offset);

	return r ? r : take_notes(c, (struct span){ .data = c->notes, .len = n });
}

static int read_headers(struct core *c, const Elf64_Ehdr *e)
{
	Elf64_Phdr p[HEADERS_AT_ONCE];
	uint64_t count = e->e_phnum;
	int r = 0;

	if (count == PN_XNUM) {
		Elf64_Shdr s;

		r = read_at(c->fd, &s, sizeof(s), e->e_shoff);
		count = r ? 0 : s.sh_info;
	}
	if (count > CORE_MAX_HEADERS)
		return CORE_TOO_LARGE;
	if (e->e_phentsize != sizeof(p[0]) || e->e_phoff > c->size)
		return CORE_MALFORMED;
	for (uint64_t i = 0; !r && i < count; i += HEADERS_AT_ONCE) {
		uint64_t n = numbers_smaller(count - i, HEADERS_AT_ONCE);

		r = read_at(c->fd, p, n * sizeof(p[0]), e->e_phoff + i * sizeof(p[0]));
		for (uint64_t k = 0; !r && k < n; k++) {
			if (p[k].p_type == PT_LOAD)
				r = add_range(c, &p[k]);
			else if (p[k].p_type == PT_NOTE)
				r = read_notes(c, &p[k]);
		}
	}
	return r;
}

/* --- ranges and files by address --- */

/* How each element of a list begins. */
struct bounds {
	uint64_t start, end;
};
static_assert(offsetof(struct core_range, start) == 0 && offsetof(struct core_range, end) == 8 &&
		      offsetof(struct core_file, start) == 0 &&
		      offsetof(struct core_file, end) == 8,
	      "ranges and files begin with their bounds");

static struct bounds bounds_of(const void *element)
{
	struct bounds b;

	memcpy(&b, element, sizeof(b));
	return b;
}

static int by_start(const void *a, const void *b)
{
	const uint64_t x = bounds_of(a).start, y = bounds_of(b).start;

	return (x > y) - (x < y);
}

/* Sorts a list of elements of `size` bytes, and drops the higher one of two that overlap, so that
 * find works. Returns how many are left. */
static size_t settle(void *list, size_t count, size_t size)
{
	char *kept = list;

	if (count)
		qsort(list, count, size, by_start);
	for (size_t i = 0; i < count; i++) {
		const char *next = (const char *)list + i * size;

		if (kept > (char *)list && bounds_of(kept - size).end > bounds_of(next).start)
			continue;
		memmove(kept, next, size);
		kept += size;
	}
	return (size_t)(kept - (char *)list) / size;
}

/* Returns the element that contains the address, or NULL. */
static const void *find(const void *list, size_t count, size_t size, uint64_t address)
{
	size_t low = 0, n = count;

	while (n) {
		const size_t half = n / 2;

		if (bounds_of((const char *)list + (low + half) * size).end <= address) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (low == count)
		return NULL;
	const char *found = (const char *)list + low * size;

	return bounds_of(found).start <= address ? found : NULL;
}

const struct core_range *core_range_at(const struct core *c, uint64_t address)
{
	return find(c->ranges, c->range_count, sizeof(*c->ranges), address);
}

const struct core_file *core_file_at(const struct core *c, uint64_t address)
{
	return find(c->files, c->file_count, sizeof(*c->files), address);
}

/* --- the file --- */

static int read_all(struct core *c)
{
	Elf64_Ehdr e;
	struct stat st;

	if (fstat(c->fd, &st) < 0)
		return -errno;
	c->size = c->wanted_size = (uint64_t)st.st_size;
	int r = read_at(c->fd, &e, sizeof(e), 0);

	if (r)
		return r == CORE_MALFORMED ? CORE_NOT_ELF : r;
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0)
		return CORE_NOT_ELF;
	if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != ELFDATA2LSB ||
	    e.e_machine != EM_X86_64)
		return CORE_UNSUPPORTED;
	if (e.e_type != ET_CORE)
		return CORE_NOT_CORE;
	r = read_headers(c, &e);
	if (r)
		return r;
	c->range_count = settle(c->ranges, c->range_count, sizeof(*c->ranges));
	c->file_count = settle(c->files, c->file_count, sizeof(*c->files));
	return c->thread_count ? 0 : CORE_NO_THREADS;
}

int core_open(int fd, struct core **ret)
{
	struct core *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->fd = fd;
	int r = read_all(c);

	if (r) {
		c->fd = -1;
		core_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	free(c->ranges);
	free(c->files);
	free(c->threads);
	free(c->notes);
	free(c);
}

int core_read(const struct core *c, void *to, size_t size, uint64_t address)
{
	while (size) {
		const struct core_range *r = core_range_at(c, address);
		uint64_t at = r ? address - r->start : 0;

		if (!r || at >= r->filled)
			return -EFAULT;
		size_t n = size < r->filled - at ? size : (size_t)(r->filled - at);

		if (read_at(c->fd, to, n, r->offset + at))
			return -EFAULT;
		to = (char *)to + n;
		address += n;
		size -= n;
	}
	return 0;
}

/* Finds the build id in the notes at an address. */
static size_t find_build_id(const struct core *c, uint64_t address, uint64_t size, uint8_t *ret)
{
	uint8_t notes[NOTE_MAX];
	struct span id;

	if (size > sizeof(notes) || core_read(c, notes, size, address) ||
	    !notes_find((struct span){ .data = notes, .len = size }, "GNU", NT_GNU_BUILD_ID,
			CORE_BUILD_ID, &id))
		return 0;
	memcpy(ret, id.data, id.len);
	return id.len;
}

size_t core_build_id(const struct core *c, uint64_t header, uint8_t ret[static CORE_BUILD_ID])
{
	Elf64_Ehdr e;
	Elf64_Phdr p[SEGMENTS_MAX];
	uint64_t base = 0;
	size_t n = 0;
	bool based = false;

	if (core_read(c, &e, sizeof(e), header) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_phentsize != sizeof(p[0]) || e.e_phnum > SEGMENTS_MAX ||
	    core_read(c, p, e.e_phnum * sizeof(p[0]), header + e.e_phoff))
		return 0;
	for (unsigned i = 0; i < e.e_phnum && !based; i++) {
		based = p[i].p_type == PT_LOAD;
		base = header + p[i].p_offset - p[i].p_vaddr;
	}
	for (unsigned i = 0; i < e.e_phnum && based && !n; i++)
		if (p[i].p_type == PT_NOTE)
			n = find_build_id(c, base + p[i].p_vaddr, p[i].p_filesz, ret);
	return n;
}
