/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/space/image.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"

#define CHUNK (16 * NUMBERS_PAGE)
#define MAX_HEADERS 64
#define MAX_DYNAMIC 256

void image_reset(struct image *i)
{
	i->count = 0;
}

void image_piece(struct image *i, uint64_t start, uint64_t end, uint64_t offset)
{
	if (i->count < IMAGE_PIECES && start < end)
		i->pieces[i->count++] = (struct image_piece){ start, end, offset };
}

/* Copies a piece. Skips pages that cannot be read, such as those past the file's end. */
static int copy_piece(const struct image_piece *p, space_reader *read, void *ctx, int to)
{
	static uint8_t bytes[CHUNK];

	for (uint64_t at = 0, n; at < p->end - p->start; at += n) {
		n = p->end - p->start - at;
		n = numbers_smaller(n, CHUNK);
		if (read(ctx, bytes, (uint32_t)n, p->start + at)) {
			n = numbers_smaller(n, NUMBERS_PAGE);
			if (read(ctx, bytes, (uint32_t)n, p->start + at))
				continue;
		}
		if (pwrite(to, bytes, n, (off_t)(p->offset + at)) != (ssize_t)n)
			return -EIO;
	}
	return 0;
}

static bool is_address(int64_t tag)
{
	return tag == DT_HASH || tag == DT_STRTAB || tag == DT_SYMTAB || tag == DT_GNU_HASH;
}

/* Restores the file's addresses in PT_DYNAMIC. header: address of the file's first byte. */
static void settle_dynamic(int fd, uint64_t header)
{
	Elf64_Ehdr e;
	Elf64_Phdr p[MAX_HEADERS];
	Elf64_Dyn d[MAX_DYNAMIC];
	uint64_t bias = header, end = 0;
	const Elf64_Phdr *dynamic = NULL;
	bool based = false;

	if (pread(fd, &e, sizeof(e), 0) != (ssize_t)sizeof(e) || e.e_phentsize != sizeof(p[0]) ||
	    e.e_phoff > IMAGE_MAX)
		return;
	size_t n = numbers_smaller(e.e_phnum, MAX_HEADERS);

	if (pread(fd, p, n * sizeof(p[0]), (off_t)e.e_phoff) != (ssize_t)(n * sizeof(p[0])))
		return;
	for (size_t i = 0; i < n; i++) {
		if (p[i].p_type == PT_DYNAMIC)
			dynamic = &p[i];
		if (p[i].p_type != PT_LOAD)
			continue;
		if (!based)
			bias = header - (p[i].p_vaddr - p[i].p_offset);
		based = true;
		end = numbers_larger(p[i].p_vaddr + p[i].p_memsz, end);
	}
	if (!dynamic || !bias || dynamic->p_offset > IMAGE_MAX)
		return;
	n = numbers_smaller(dynamic->p_filesz, sizeof(d));
	ssize_t got = pread(fd, d, n, (off_t)dynamic->p_offset);

	n = got > 0 ? (size_t)got / sizeof(d[0]) : 0;
	for (size_t i = 0; i < n; i++)
		if (is_address(d[i].d_tag) && d[i].d_un.d_ptr >= bias &&
		    d[i].d_un.d_ptr - bias < end)
			d[i].d_un.d_ptr -= bias;
	if (n)
		(void)!pwrite(fd, d, n * sizeof(d[0]), (off_t)dynamic->p_offset);
}

int image_make(struct image *i, space_reader *read, void *ctx)
{
	const struct image_piece *first = NULL;
	uint64_t bytes = 0;
	char magic[SELFMAG];

	for (unsigned k = 0; k < i->count; k++) {
		const struct image_piece *p = &i->pieces[k];
		uint64_t length = p->end - p->start;

		if (length > IMAGE_MAX || p->offset > IMAGE_MAX - length)
			return -EFBIG;
		bytes += length;
		if (!p->offset && !first)
			first = p;
	}
	if (!first || read(ctx, magic, sizeof(magic), first->start) ||
	    memcmp(magic, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	if (bytes > IMAGE_TOTAL - i->total)
		return -EFBIG;
	i->total += bytes;
	int fd = memfd_create("image", MFD_CLOEXEC), r = fd < 0 ? -errno : 0;

	for (unsigned k = 0; k < i->count && !r; k++)
		r = copy_piece(&i->pieces[k], read, ctx, fd);
	if (r) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	settle_dynamic(fd, first->start);
	return fd;
}
