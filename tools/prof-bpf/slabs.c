/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "tools/prof-bpf/slabs.h"

#define MAPPED_SLABS 3 /* kept mapped, for writing and for walks in user space */
#define SPARE_BYTES (SLAB_BYTES / 4)

int extents_insert(struct extents *x, size_t at, struct extent e)
{
	if (x->len == x->cap) {
		size_t cap = x->cap ? x->cap * 2 : 16;
		struct extent *p = reallocarray(x->data, cap, sizeof(*p));

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

void extents_done(struct extents *x)
{
	free(x->data);
	*x = (struct extents){ 0 };
}

static void extents_remove(struct extents *x, size_t at)
{
	x->len--;
	memmove(&x->data[at], &x->data[at + 1], (x->len - at) * sizeof(x->data[0]));
}

static bool same_slab(uint32_t a, uint32_t b)
{
	return a >> SLAB_WORDS_SHIFT == b >> SLAB_WORDS_SHIFT;
}

/* On -ENOMEM it is lost until the end: a leak of the tables' own, bounded by them. */
void slabs_release(struct slabs *s, struct extent e)
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
	struct extent *before = lo ? &s->free.data[lo - 1] : NULL;
	struct extent *after = lo < s->free.len ? &s->free.data[lo] : NULL;
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
		(void)extents_insert(&s->free, lo, e);
	}
}

static int slab_add(struct slabs *s)
{
	uint32_t i = s->count;
	struct slab_slot *slot = &s->slot[i];

	if (i >= s->max)
		return SLABS_FULL;
	slot->fd = -1;
	if (s->map_fd < 0) {
		slot->data = calloc(1, SLAB_BYTES);
		if (!slot->data)
			return -ENOMEM;
	} else {
		LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

		slot->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "slab", 4, SLAB_BYTES, 1, &opts);
		if (slot->fd < 0)
			return slot->fd;
		int r = bpf_map_update_elem(s->map_fd, &i, &slot->fd, BPF_ANY);
		if (r < 0) {
			close(slot->fd);
			slot->fd = -1;
			return r;
		}
	}
	s->count++;
	s->bytes += SLAB_BYTES;
	s->bytes_used += SLAB_BYTES;
	slabs_release(s, (struct extent){ .position = i << SLAB_WORDS_SHIFT, .words = SLAB_WORDS });
	return 0;
}

uint32_t *slabs_at(struct slabs *s, uint32_t position)
{
	struct slab_slot *slot = &s->slot[position >> SLAB_WORDS_SHIFT], *oldest = NULL;
	uint32_t mapped = 0;

	slot->used = ++s->use_tick;
	if (!slot->data) {
		for (uint32_t i = 0; i < s->count; i++) {
			struct slab_slot *o = &s->slot[i];

			if (!o->data)
				continue;
			mapped++;
			if (!oldest || o->used < oldest->used)
				oldest = o;
		}
		if (mapped >= MAPPED_SLABS) {
			munmap(oldest->data, SLAB_BYTES);
			oldest->data = NULL;
		}
		slot->data = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, slot->fd,
				  0);
		if (slot->data == MAP_FAILED) {
			slot->data = NULL;
			return NULL;
		}
	}
	return (uint32_t *)slot->data + (position & (SLAB_WORDS - 1));
}

int slabs_take(struct slabs *s, uint32_t words, struct extent *ret)
{
	words = (words + EXTENT_WORDS - 1) & ~(EXTENT_WORDS - 1);
	if (words > SLAB_WORDS)
		return SLABS_FULL;
	for (int attempt = 0; attempt < 2; attempt++) {
		for (size_t i = 0; i < s->free.len; i++) {
			struct extent *e = &s->free.data[i];

			if (e->words < words)
				continue;
			*ret = (struct extent){ .position = e->position, .words = words };
			e->position += words;
			e->words -= words;
			if (!e->words)
				extents_remove(&s->free, i);
			s->bytes_used += (uint64_t)words * 4;
			return 0;
		}
		int r = slab_add(s);
		if (r)
			return r;
	}
	return SLABS_FULL;
}

/* What was not used since the last tick is not kept mapped. */
static void unmap_idle(struct slabs *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct slab_slot *slot = &s->slot[i];

		if (slot->fd >= 0 && slot->data && slot->used <= s->idle_tick) {
			munmap(slot->data, SLAB_BYTES);
			slot->data = NULL;
		}
	}
	s->idle_tick = s->use_tick;
}

void slabs_tick(struct slabs *s)
{
	unmap_idle(s);
	if (s->bytes - s->bytes_used < SPARE_BYTES && s->count < s->max)
		(void)slab_add(s);
}

int slabs_init(struct slabs *s, int map_fd, uint32_t max)
{
	*s = (struct slabs){ .map_fd = map_fd, .max = max };
	return slab_add(s);
}

void slabs_done(struct slabs *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->slot[i].fd >= 0) {
			if (s->slot[i].data)
				munmap(s->slot[i].data, SLAB_BYTES);
			close(s->slot[i].fd);
		} else {
			free(s->slot[i].data);
		}
	}
	extents_done(&s->free);
	s->count = 0;
}
