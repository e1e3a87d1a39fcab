/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/derive/taken_addresses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"
#include "common/wire/msg.h"

#define CHUNK (128u << 10)
#define CODE_OVERLAP 8 /* instructions may cross a chunk's end */
#define ALIGNMENT 16
#define RECENT_BITS 13

struct taken_addresses_search {
	const struct starts_search *of;
	uint64_t lowest, highest; /* ELF addresses of code */
	uint64_t left;		  /* bytes of the file left to search */
	uint32_t n;
	uint32_t at[TAKEN_ADDRESSES_MAX];
	/* Recently taken addresses, indexed by the bits above the alignment: most addresses are
	 * taken often. */
	uint64_t recent[1u << RECENT_BITS];
	_Alignas(8) uint8_t bytes[CHUNK];
};

static void sort(struct taken_addresses_search *s)
{
	uint32_t kept = 0;

	qsort(s->at, s->n, sizeof(s->at[0]), numbers_rising);
	for (uint32_t i = 0; i < s->n; i++) {
		if (!kept || s->at[kept - 1] != s->at[i])
			s->at[kept++] = s->at[i];
	}
	s->n = kept;
}

static void take(struct taken_addresses_search *s, uint64_t address)
{
	uint64_t *recent = &s->recent[address / ALIGNMENT % (1u << RECENT_BITS)], left;
	uint32_t at;

	if (address % ALIGNMENT || address - s->lowest >= s->highest - s->lowest ||
	    *recent == address)
		return;
	*recent = address;
	if (!starts_wants(s->of, address, &at, &left))
		return;
	if (s->n == TAKEN_ADDRESSES_MAX) {
		sort(s);
		if (s->n > TAKEN_ADDRESSES_MAX / 2)
			s->left = 0;
	}
	if (s->n < TAKEN_ADDRESSES_MAX)
		s->at[s->n++] = at;
}

/* Reads at most n bytes of the file. */
static uint32_t read_chunk(struct taken_addresses_search *s, uint64_t offset, uint64_t n)
{
	int64_t got;

	if (n > CHUNK)
		n = CHUNK;
	if (n > s->left)
		n = s->left;
	got = n ? fd_pread_all(s->of->fd, s->bytes, n, offset) : 0;
	got = got < 0 ? 0 : got;
	s->left -= (uint64_t)got;
	return (uint32_t)got;
}

static uint64_t relative(const uint8_t *p, uint64_t next)
{
	int32_t to;

	memcpy(&to, p, 4);
	return next + (uint64_t)(int64_t)to;
}

/* Returns the first such byte from p on; NULL: there is none. */
static const uint8_t *next_byte(const uint8_t *p, const uint8_t *end, uint8_t byte)
{
	return p < end ? memchr(p, byte, (size_t)(end - p)) : NULL;
}

/* Looks for calls and lea instructions in n bytes of code. `address` is that of s->bytes[0]. */
static void look_at_code(struct taken_addresses_search *s, uint32_t n, uint64_t address)
{
	const uint8_t *p, *end = s->bytes + n;

	/* call */
	for (p = next_byte(s->bytes, end, 0xe8); p && end - p >= 5; p = next_byte(p + 1, end, 0xe8))
		take(s, relative(p + 1, address + (uint64_t)(p - s->bytes) + 5));
	/* lea of 64 bits, relative to RIP */
	for (p = next_byte(s->bytes + 1, end, 0x8d); p && end - p >= 6;
	     p = next_byte(p + 1, end, 0x8d))
		if ((p[-1] & 0xfb) == 0x48 && (p[1] & 0xc7) == 5)
			take(s, relative(p + 2, address + (uint64_t)(p - s->bytes) + 6));
}

static void search_code(struct taken_addresses_search *s, const struct starts_range *range)
{
	uint32_t at = range->start;

	while (at < range->end && !rows_stopped(s->of->rows)) {
		const uint32_t n = read_chunk(s, s->of->rows->base + at, range->end - at);

		if (!n)
			return;
		look_at_code(s, n, rows_address(s->of->rows, at));
		at += n > 2 * CODE_OVERLAP ? n - CODE_OVERLAP : n;
	}
}

/* Searches words that are addresses: pointers in files that are not relocated, and relocations. */
static void search_data(struct taken_addresses_search *s, const struct elf_load *l)
{
	uint64_t at = l->offset & ~7ull, end;

	if (__builtin_add_overflow(l->offset, l->filesz, &end))
		return;
	while (at < end && !rows_stopped(s->of->rows)) {
		const uint32_t n = read_chunk(s, at, end - at);

		if (n < 8)
			return;
		for (uint32_t i = 0; i + 8 <= n; i += 8) {
			uint64_t word;

			memcpy(&word, s->bytes + i, 8);
			if (word - s->lowest < s->highest - s->lowest)
				take(s, word);
		}
		at += n & ~7u;
	}
}

/* Whether the byte before the place may end a function: padding or a ret. */
static bool lies_apart(struct taken_addresses_search *s, uint32_t i, uint32_t *first, uint32_t *n)
{
	uint32_t before = s->at[i] - 1;
	uint8_t b;

	if (s->at[i] == 0)
		return true;
	if (before - *first >= *n) {
		s->left = CHUNK;
		*first = before;
		*n = read_chunk(s, s->of->rows->base + before, CHUNK);
		if (!*n)
			return false;
	}
	b = s->bytes[before - *first];
	return b == 0 || b == 0x90 || b == 0xcc || b == 0xc3;
}

int taken_addresses_find(const struct starts_search *s, const struct elf_file *f)
{
	struct taken_addresses_search *x = malloc(sizeof(*x));
	uint32_t first = 0, have = 0;
	int r = 0;

	if (!x)
		return -ENOMEM;
	x->of = s;
	x->left = TAKEN_ADDRESSES_MAX_BYTES;
	x->n = 0;
	memset(x->recent, 0, sizeof(x->recent));
	x->lowest = UINT64_MAX;
	x->highest = 0;
	for (unsigned i = 0; i < s->rows->segments; i++) {
		const struct rows_segment *g = &s->rows->segment[i];

		if (g->vaddr < x->lowest)
			x->lowest = g->vaddr;
		if (g->vaddr + g->size > x->highest)
			x->highest = g->vaddr + g->size;
	}
	for (unsigned i = 0; i < s->found->ranges; i++)
		search_code(x, &s->found->range[i]);
	for (unsigned i = 0; i < f->loads; i++) {
		if (!f->load[i].exec)
			search_data(x, &f->load[i]);
	}
	sort(x);
	for (uint32_t i = 0; i < x->n && !r; i++) {
		if (lies_apart(x, i, &first, &have))
			r = starts_add(s->found, x->at[i], 0, true);
		if (!r && rows_stopped(s->rows))
			r = MSG_ROWS_LATER;
	}
	free(x);
	return r;
}
