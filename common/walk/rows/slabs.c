/* SPDX-License-Identifier: Apache-2.0 */
#include "common/walk/rows/slabs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>

/* Limit of mapped pages, for writing and for walks in user space. */
#define MAPPED_PAGES 512
#define UNMAP_TICKS 16 /* slabs that were not used in so many ticks are unmapped */
#define SPARE_BYTES (TABLES_SLAB_BYTES / 4)

int slabs_extents_insert(struct slabs_extents *x, size_t at, struct slabs_extent e)
{
	if (x->len == x->cap) {
		size_t cap = x->cap ? x->cap * 2 : 16;
		struct slabs_extent *p = reallocarray(x->data, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		x->data = p;
		x->cap = cap;
	}
	memmove(&x->data[at + 1], &x->data[at], (x->len - at) * sizeof(e));
	x->data[at] = e;
	x->len++;
	return 0;
}

static void extents_done(struct slabs_extents *x)
{
	free(x->data);
	*x = (struct slabs_extents){ 0 };
}

static void extents_remove(struct slabs_extents *x, size_t at)
{
	x->len--;
	memmove(&x->data[at], &x->data[at + 1], (x->len - at) * sizeof(x->data[0]));
}

static bool same_slab(uint32_t a, uint32_t b)
{
	return a >> TABLES_SLAB_WORDS_SHIFT == b >> TABLES_SLAB_WORDS_SHIFT;
}

/* On -ENOMEM the extent is lost until the process ends. The size of the tables bounds this leak. */
void slabs_release(struct slabs *s, struct slabs_extent e)
{
	size_t lo = 0, hi = s->free.len;

	if (!e.words)
		return;
	s->bytes_used -= (uint64_t)e.words * 4;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->free.data[mid].position < e.position)
			lo = mid + 1;
		else
			hi = mid;
	}
	struct slabs_extent *before = lo ? &s->free.data[lo - 1] : NULL;
	struct slabs_extent *after = lo < s->free.len ? &s->free.data[lo] : NULL;
	bool joins_before = before && before->position + before->words == e.position &&
			    same_slab(before->position, e.position);
	bool joins_after = after && e.position + e.words == after->position &&
			   same_slab(after->position, e.position);

	if (joins_before && joins_after) {
		before->words += e.words + after->words;
		extents_remove(&s->free, lo);
	} else if (joins_before) {
		before->words += e.words;
	} else if (joins_after) {
		after->position = e.position;
		after->words += e.words;
	} else {
		(void)slabs_extents_insert(&s->free, lo, e);
	}
}

static int slab_add(struct slabs *s)
{
	uint32_t i = 0;

	if (s->count >= s->max)
		return SLABS_FULL;
	while (s->slot[i].data)
		i++;
	struct slab_slot *slot = &s->slot[i];

	*slot = (struct slab_slot){ .fd = -1 };
	if (s->map_fd < 0) {
		slot->data = calloc(1, TABLES_SLAB_BYTES);
		if (!slot->data)
			return -ENOMEM;
	} else {
		LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

		slot->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "slab", 4, TABLES_SLAB_BYTES, 1,
					  &opts);
		if (slot->fd < 0)
			return slot->fd;
		slot->data = mmap(NULL, TABLES_SLAB_BYTES, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		int r = slot->data == MAP_FAILED
				? -errno
				: bpf_map_update_elem(s->map_fd, &i, &slot->fd, BPF_ANY);
		if (r < 0) {
			if (slot->data != MAP_FAILED)
				munmap(slot->data, TABLES_SLAB_BYTES);
			slot->data = NULL;
			close(slot->fd);
			slot->fd = -1;
			return r;
		}
	}
	s->count++;
	if (i >= s->top)
		s->top = i + 1;
	s->bytes += TABLES_SLAB_BYTES;
	s->bytes_used += TABLES_SLAB_BYTES;
	slabs_release(s, (struct slabs_extent){ .position = i << TABLES_SLAB_WORDS_SHIFT,
						.words = TABLES_SLAB_WORDS });
	return 0;
}

/* Unmaps a slab's pages. Its address space stays reserved. */
static void slab_unmap(struct slabs *s, struct slab_slot *slot)
{
	if (!slot->pages)
		return;
	s->pages -= slot->pages;
	slot->pages = 0;
	memset(slot->mapped, 0, sizeof(slot->mapped));
	/* If this fails, the old pages stay, and the next use maps over them. */
	(void)mmap(slot->data, TABLES_SLAB_BYTES, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static bool is_mapped(const struct slab_slot *slot, uint32_t page)
{
	return slot->mapped[page / 64] >> page % 64 & 1;
}

/* Maps missing pages, with one call for each run of them. */
static bool pages_map(struct slabs *s, struct slab_slot *slot, uint32_t first, uint32_t last)
{
	for (uint32_t page = first; page <= last; page++) {
		uint32_t end = page;

		while (end <= last && !is_mapped(slot, end))
			end++;
		if (end == page)
			continue;
		if (mmap(slot->data + page * SLABS_PAGE, (end - page) * SLABS_PAGE,
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, slot->fd,
			 page * SLABS_PAGE) == MAP_FAILED)
			return false;
		s->pages += end - page;
		slot->pages += end - page;
		for (; page < end; page++)
			slot->mapped[page / 64] |= 1ull << page % 64;
	}
	return true;
}

uint32_t *slabs_at(struct slabs *s, uint32_t position, uint32_t words)
{
	struct slab_slot *slot = &s->slot[position >> TABLES_SLAB_WORDS_SHIFT];
	uint32_t at = position & (TABLES_SLAB_WORDS - 1), first, last;

	if (words > TABLES_SLAB_WORDS - at)
		words = TABLES_SLAB_WORDS - at;
	if (slot->fd >= 0 && words) {
		first = at * 4 / SLABS_PAGE;
		last = (at + words - 1) * 4 / SLABS_PAGE;
		if (s->pages + last - first >= MAPPED_PAGES) {
			for (uint32_t i = 0; i < s->top; i++)
				slab_unmap(s, &s->slot[i]);
		}
		if (!pages_map(s, slot, first, last))
			return NULL;
		slot->used = true;
	}
	return (uint32_t *)(slot->data + at * 4);
}

int slabs_take(struct slabs *s, uint32_t words, struct slabs_extent *ret)
{
	words = (words + SLABS_EXTENT_WORDS - 1) & ~(SLABS_EXTENT_WORDS - 1);
	if (words > TABLES_SLAB_WORDS)
		return SLABS_FULL;
	for (int attempt = 0; attempt < 2; attempt++) {
		for (size_t i = 0; i < s->free.len; i++) {
			struct slabs_extent *e = &s->free.data[i];

			if (e->words < words || slabs_closing(s, *e))
				continue;
			*ret = (struct slabs_extent){ .position = e->position, .words = words };
			e->position += words;
			e->words -= words;
			if (!e->words)
				extents_remove(&s->free, i);
			s->bytes_used += (uint64_t)words * 4;
			return 0;
		}
		int r = slab_add(s);
		/* -ENOMEM: the host may have memory again later. */
		if (r)
			return r == -ENOMEM ? SLABS_FULL : r;
	}
	return SLABS_FULL;
}

static void slab_free(struct slab_slot *slot)
{
	if (slot->fd >= 0) {
		munmap(slot->data, TABLES_SLAB_BYTES);
		close(slot->fd);
	} else {
		free(slot->data);
	}
	*slot = (struct slab_slot){ .fd = -1 };
}

static void set_closing(struct slabs *s, uint32_t i, bool closing)
{
	s->closing += closing;
	s->closing -= s->slot[i].closing;
	s->slot[i].closing = closing;
}

static bool in_slab(const struct slabs_extent *e, uint32_t i)
{
	return e->position >> TABLES_SLAB_WORDS_SHIFT == i;
}

static uint32_t words_free(const struct slabs *s, uint32_t i)
{
	uint32_t words = 0;

	for (size_t k = 0; k < s->free.len; k++)
		words += in_slab(&s->free.data[k], i) ? s->free.data[k].words : 0;
	return words;
}

/* Waits for the kernel's grace period. */
static void slab_remove(struct slabs *s, uint32_t i)
{
	struct slab_slot *slot = &s->slot[i];
	size_t kept = 0;

	s->bytes_used -= TABLES_SLAB_BYTES - (uint64_t)words_free(s, i) * 4;
	s->pages -= slot->pages;
	if (s->map_fd >= 0)
		(void)bpf_map_delete_elem(s->map_fd, &i);
	set_closing(s, i, false);
	slab_free(slot);
	for (size_t k = 0; k < s->free.len; k++)
		if (!in_slab(&s->free.data[k], i))
			s->free.data[kept++] = s->free.data[k];
	s->free.len = kept;
	s->count--;
	s->bytes -= TABLES_SLAB_BYTES;
}

/* Gives one slab back, unless a new one would be needed soon. */
static void slab_drop(struct slabs *s)
{
	const bool spare = s->bytes - s->bytes_used >= TABLES_SLAB_BYTES + SPARE_BYTES;

	for (uint32_t i = s->top; s->count > 1 && i-- > 0;) {
		struct slab_slot *slot = &s->slot[i];

		if (!slot->data || !(slot->closing || s->count > s->max || spare) ||
		    words_free(s, i) < TABLES_SLAB_WORDS)
			continue;
		slab_remove(s, i);
		return;
	}
}

bool slabs_drop_closing(struct slabs *s, uint32_t i, uint32_t unused_words)
{
	if (!s->slot[i].data || !s->slot[i].closing || s->count <= 1 ||
	    words_free(s, i) + unused_words < TABLES_SLAB_WORDS)
		return false;
	slab_remove(s, i);
	return true;
}

bool slabs_await_walks(struct slabs *s)
{
	uint32_t i = 0;

	if (s->map_fd < 0)
		return false;
	while (i < s->top && !s->slot[i].data)
		i++;
	/* The kernel ends an update of an array of maps with synchronize_rcu(), even if the inner
	 * map stays the same. */
	return i < s->top && bpf_map_update_elem(s->map_fd, &i, &s->slot[i].fd, BPF_ANY) == 0;
}

void slabs_limit(struct slabs *s, uint32_t max)
{
	s->max = max < 1 ? 1 : max > TABLES_MAX_SLABS ? TABLES_MAX_SLABS : max;
	for (uint32_t i = 0; i < s->top && s->count <= s->max; i++)
		set_closing(s, i, false);
}

uint32_t slabs_excess(const struct slabs *s)
{
	const uint32_t stay = s->count - s->closing;

	return stay > s->max ? stay - s->max : 0;
}

void slabs_close(struct slabs *s, uint32_t i)
{
	set_closing(s, i, true);
}

bool slabs_closing(const struct slabs *s, struct slabs_extent e)
{
	return s->slot[e.position >> TABLES_SLAB_WORDS_SHIFT].closing;
}

void slabs_tick(struct slabs *s)
{
	const bool unmaps = ++s->ticks % UNMAP_TICKS == 0;

	for (uint32_t i = 0; unmaps && i < s->top && s->pages; i++) {
		struct slab_slot *slot = &s->slot[i];

		if (slot->fd >= 0 && !slot->used)
			slab_unmap(s, slot);
		slot->used = false;
	}
	slab_drop(s);
	if (s->bytes - s->bytes_used < SPARE_BYTES && s->count < s->max)
		(void)slab_add(s);
}

int slabs_init(struct slabs *s, int map_fd, uint32_t max)
{
	*s = (struct slabs){ .map_fd = map_fd };
	slabs_limit(s, max);
	return slab_add(s);
}

void slabs_done(struct slabs *s)
{
	for (uint32_t i = 0; i < s->top; i++) {
		if (s->slot[i].data)
			slab_free(&s->slot[i]);
	}
	extents_done(&s->free);
	s->count = s->top = 0;
}
