/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/context/ucontext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"
#include "common/rows/x86/stubs.h"

#define WINDOW (64u << 10)
#define MAX_LENGTH 64 /* bytes of the function; its last instruction is a hlt */

/* mov rsp, rbx; mov rdi, [rsp]; test rdi, rdi */
static const uint8_t start_context[] = {
	0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff
};

/* Whether the file's name is libc.so.6. Returns 0, 1 or -errno. */
static int is_libc(int fd, const struct elf_file *f, const struct dynamic *d)
{
	static const char name[] = "libc.so.6";
	char found[sizeof(name)];

	if (!d->soname || d->soname > f->size)
		return 0;
	int64_t n = fd_pread_all(fd, found, sizeof(found), d->names + d->soname);
	if (n < 0)
		return (int)n;
	return n == (int64_t)sizeof(found) && memcmp(found, name, sizeof(name)) == 0;
}

/* Whether the file is a static program that may contain glibc. glibc always has thread-local
 * variables. Go programs have none of these, so their large code need not be searched. */
static bool is_static(const struct elf_file *f, const struct dynamic *d)
{
	return f->entry && f->tls && !f->interpreted && !d->soname && !d->needs;
}

/* The length of the function, up to and including its hlt. */
static size_t length_of(const uint8_t *code, size_t left)
{
	const uint8_t *hlt = memchr(code, 0xf4, numbers_smaller(left, MAX_LENGTH));

	return hlt ? (size_t)(hlt + 1 - code) : sizeof(start_context);
}

static int search(int fd, const struct elf_load *l, struct rows *rows, uint8_t *window)
{
	/* Windows overlap by the longest function. */
	for (uint64_t at = 0; at < l->filesz; at += WINDOW - MAX_LENGTH) {
		uint64_t want = numbers_smaller(l->filesz - at, WINDOW);
		int64_t n = fd_pread_all(fd, window, want, l->offset + at);

		if (n < 0)
			return (int)n;

		const uint8_t *found = memmem(window, (size_t)n, start_context,
					      sizeof(start_context));

		if (found && (found - window > 0 || at > 0)) {
			size_t left = (size_t)(window + n - found), length = length_of(found, left);

			/* If the function begins with endbr64, the return address points to
			 * that. */
			if (found - window >= 4 && stub_endbr(found - 4, 4)) {
				found -= 4;
				length += 4;
			}
			return rows_add_end(rows, l->vaddr + at + (uint64_t)(found - window),
					    length);
		}
		if (n < (int64_t)want)
			break;
	}
	return 0;
}

int ucontext_read(int fd, const struct elf_file *f, const struct dynamic *d, struct rows *rows)
{
	int r = is_libc(fd, f, d);

	if (r < 0 || (!r && !is_static(f, d)))
		return r;

	uint8_t *window = malloc(WINDOW);

	if (!window)
		return -ENOMEM;
	r = 0;
	for (unsigned i = 0; i < f->loads && !r; i++) {
		if (f->load[i].exec)
			r = search(fd, &f->load[i], rows, window);
	}
	free(window);
	return r;
}
