/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/elf/relas.h"

#include <errno.h>
#include <stdlib.h>
#include "common/base/bytes/numbers.h"

#define MAX_SORTED (8u << 20)
#define MAX_REST (1u << 20)
#define WINDOW 1024u /* relocations that are read at once */

void relas_done(struct relas *r)
{
	free(r->window);
	free(r->rest);
	*r = (struct relas){ 0 };
}

/* Reads the window that begins at sorted relocation i. */
static int read_window(struct relas *r, const struct symfile *f, size_t i)
{
	const size_t n = numbers_smaller(r->sorted - i, WINDOW);

	r->window_from = i;
	r->window_count = 0;

	const int e = symfile_read(f, r->sorted_at + i * sizeof(Elf64_Rela), r->window,
				   n * sizeof(Elf64_Rela));

	r->window_count = e ? 0 : n;
	return e;
}

/* Gives sorted relocation i. */
static int get(struct relas *r, const struct symfile *f, size_t i, const Elf64_Rela **ret)
{
	int e = 0;

	if (i - r->window_from >= r->window_count)
		e = read_window(r, f, i);
	*ret = &r->window[i - r->window_from];
	return e;
}

static int by_offset(const void *a, const void *b)
{
	const Elf64_Rela *x = a, *y = b;

	return x->r_offset < y->r_offset ? -1 : x->r_offset > y->r_offset;
}

static int section_of(const struct symfile *f, const char *name, const struct symfile_section **ret)
{
	*ret = NULL;
	return symfile_section(f, name, ret) == 0 && (*ret)->type == SHT_RELA &&
			       (*ret)->size <= symfile_size(f)
		       ? 0
		       : SYMFILE_NONE;
}

/* Counts the relocations at the beginning of a section that are sorted. */
static int count_sorted(struct relas *r, const struct symfile *f, const struct symfile_section *s)
{
	const size_t all = s->size / sizeof(Elf64_Rela);
	uint64_t last = 0;

	r->sorted_at = s->offset;
	r->sorted = numbers_smaller(all, MAX_SORTED);
	for (size_t i = 0; i < r->sorted; i++) {
		const Elf64_Rela *rela;
		const int e = get(r, f, i, &rela);

		if (e)
			return e;
		if (rela->r_offset < last) {
			r->sorted = i;
			r->window_count = 0;
		} else {
			last = rela->r_offset;
		}
	}
	return 0;
}

/* Appends the relocations of a section from number `from` on. */
static int read_rest(struct relas *r, const struct symfile *f, const struct symfile_section *s,
		     size_t from)
{
	const size_t n = s->size / sizeof(Elf64_Rela) - from;
	Elf64_Rela *rest;

	if (!n)
		return 0;
	if (n > MAX_REST - r->rest_count)
		return SYMFILE_TOO_LARGE;
	rest = reallocarray(r->rest, r->rest_count + n, sizeof(*rest));
	if (!rest)
		return -ENOMEM;
	r->rest = rest;

	const int e = symfile_read(f, s->offset + from * sizeof(*rest), rest + r->rest_count,
				   n * sizeof(*rest));

	r->rest_count += e ? 0 : n;
	return e;
}

static int prepare(struct relas *r, const struct symfile *f)
{
	const struct symfile_section *dyn, *plt;
	int e = 0;

	if (r->tried)
		return 0;
	r->tried = true;
	r->window = malloc(WINDOW * sizeof(*r->window));
	if (!r->window)
		return -ENOMEM;
	if (section_of(f, ".rela.dyn", &dyn) == 0) {
		e = count_sorted(r, f, dyn);
		if (!e)
			e = read_rest(r, f, dyn, r->sorted);
	}
	if (!e && section_of(f, ".rela.plt", &plt) == 0)
		e = read_rest(r, f, plt, 0);
	if (e) {
		relas_done(r);
		r->tried = true;
		return e;
	}
	if (r->rest_count)
		qsort(r->rest, r->rest_count, sizeof(*r->rest), by_offset);
	return 0;
}

/* Finds the first sorted relocation at or after an address. If that is in the window, as for the
 * neighbour of the last address, reads nothing; otherwise some single ones, then a window. */
static int first_sorted(struct relas *r, const struct symfile *f, uint64_t address, size_t *ret)
{
	size_t low = 0, high = r->sorted;
	const Elf64_Rela *w = r->window;
	const size_t n = r->window_count;
	int e = 0;

	if (n && w[0].r_offset < address && w[n - 1].r_offset >= address) {
		low = r->window_from;
		high = r->window_from + n;
	}
	while (high - low > WINDOW) {
		const size_t middle = low + (high - low) / 2;
		Elf64_Rela rela;

		e = symfile_read(f, r->sorted_at + middle * sizeof(rela), &rela, sizeof(rela));
		if (e)
			return e;
		if (rela.r_offset < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < r->window_from || high > r->window_from + r->window_count)
		e = read_window(r, f, low);
	if (e)
		return e;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (w[middle - r->window_from].r_offset < address)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return 0;
}

static size_t first_rest(const struct relas *r, uint64_t address)
{
	size_t low = 0, high = r->rest_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (r->rest[middle].r_offset < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int relas_within(struct relas *r, const struct symfile *f, uint64_t from, uint64_t to,
		 relas_each each, void *ctx)
{
	size_t i = 0;
	int e = prepare(r, f);

	if (!e)
		e = first_sorted(r, f, from, &i);
	for (; !e && i < r->sorted; i++) {
		const Elf64_Rela *rela;

		e = get(r, f, i, &rela);
		/* Its owner may rewrite the file meanwhile, so the order may not hold. */
		if (e || rela->r_offset < from || rela->r_offset >= to)
			break;
		e = each(ctx, rela);
	}
	for (i = first_rest(r, from); !e && i < r->rest_count && r->rest[i].r_offset < to; i++)
		e = each(ctx, &r->rest[i]);
	return e;
}

int relas_all(struct relas *r, const struct symfile *f, relas_each each, void *ctx)
{
	return relas_within(r, f, 0, UINT64_MAX, each, ctx);
}
