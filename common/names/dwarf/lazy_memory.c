/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/lazy_memory.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "common/base/bytes/numbers.h"

#define PIECE_MIN (8u << 10)
/* Limit of pieces: each may become its own mapping, and a process may have 65,530 of these. */
#define PIECES_MAX 8192u

struct region {
	struct lazy_memory pub;
	size_t mapped, piece, most;
	void (*fill)(void *, uint64_t, uint8_t *, size_t);
	void *ctx;
	struct region *next;
	uint64_t present[PIECES_MAX / 64];
};

static struct region *regions;
static struct sigaction before;
static bool installed;

static bool fill_piece(struct region *r, size_t i)
{
	size_t at = i * r->piece, n = numbers_smaller(r->mapped - at, r->piece);

	/* Over the limit: allow reads only. Pages that are only read share the zero page, and take
	 * no memory. */
	if (r->pub.filled + n > r->most ||
	    mprotect(r->pub.bytes + at, n, PROT_READ | PROT_WRITE) < 0) {
		r->pub.starved = true;
		return mprotect(r->pub.bytes + at, n, PROT_READ) == 0;
	}
	r->present[i / 64] |= 1ull << i % 64;
	r->pub.filled += n;
	if (at < r->pub.size)
		r->fill(r->ctx, at, r->pub.bytes + at, numbers_smaller(r->pub.size - at, n));
	return true;
}

/* The kernel allows no more mappings: turns the region into one mapping, whose missing pieces stay
 * zero. */
static bool fill_rest(struct region *r)
{
	r->pub.starved = true;
	return mprotect(r->pub.bytes, r->mapped, PROT_READ) == 0;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	int saved = errno;
	bool filled = false;

	for (struct region *r = regions; r && !filled; r = r->next) {
		size_t at = (uintptr_t)info->si_addr - (uintptr_t)r->pub.bytes, i = at / r->piece;

		if ((uintptr_t)info->si_addr < (uintptr_t)r->pub.bytes || at >= r->mapped)
			continue;
		filled = !(r->present[i / 64] >> i % 64 & 1) && (fill_piece(r, i) || fill_rest(r));
		/* If the parser crashes because of the zeros, the worker finds this reason in
		 * errno. */
		if (r->pub.starved)
			saved = ENOMEM;
	}
	/* Not our fault: restore the previous handler, which gets the fault next. */
	if (!filled)
		sigaction(SIGSEGV, &before, NULL);
	errno = saved;
}

static int install(void)
{
	struct sigaction a = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	if (installed)
		return 0;
	sigemptyset(&a.sa_mask);
	if (sigaction(SIGSEGV, &a, &before) < 0)
		return -errno;
	installed = true;
	return 0;
}

int lazy_memory_new(size_t size, size_t most, void (*fill)(void *, uint64_t, uint8_t *, size_t),
		    void *ctx, struct lazy_memory **ret)
{
	struct region *r;
	int e = install();

	if (e)
		return e;
	if (size == 0 || size > SIZE_MAX / 2)
		return -ENOMEM;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->fill = fill;
	r->ctx = ctx;
	r->most = most;
	r->piece = PIECE_MIN;
	while (size / r->piece >= PIECES_MAX)
		r->piece *= 2;
	r->mapped = (size + r->piece - 1) / r->piece * r->piece;
	r->pub.size = size;
	r->pub.bytes = mmap(NULL, r->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0);
	if (r->pub.bytes == MAP_FAILED) {
		free(r);
		return -ENOMEM;
	}
	r->next = regions;
	regions = r;
	*ret = &r->pub;
	return 0;
}

bool lazy_memory_touch(struct lazy_memory *l, size_t n)
{
	struct region *r = (struct region *)l;

	for (size_t i = 0; i * r->piece < n && i * r->piece < r->mapped; i++)
		if (!(r->present[i / 64] >> i % 64 & 1) && !fill_piece(r, i))
			return false;
	return !l->starved;
}

void lazy_memory_free(struct lazy_memory *l)
{
	struct region *r = (struct region *)l, **at = &regions;

	if (!l)
		return;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	munmap(r->pub.bytes, r->mapped);
	free(r);
}
