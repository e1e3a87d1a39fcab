/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/space/moving.h"

#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/tables/hashtable.h"

#define PAGE 4096u

struct moved {
	struct {
		uint64_t key, check;
	} id;
	UT_hash_handle hh;
	uint32_t pieces;
	uint64_t at[RUNTIME_STEPS];
	uint32_t len[RUNTIME_STEPS], offset[RUNTIME_STEPS];
	uint8_t bytes[]; /* of all pieces */
};

void moving_done(struct moving *m)
{
	struct moved *o, *next;

	HASH_ITER(hh, m->objects, o, next) {
		HASH_DEL(m->objects, o);
		free(o);
	}
	*m = (struct moving){ 0 };
}

/* Reads as much as possible, at most SAMPLE_PIECE_BYTES. Returns the number of bytes. */
static uint32_t read_piece(uint8_t *to, uint64_t at, uint64_t n)
{
	if (n > SAMPLE_PIECE_BYTES)
		n = SAMPLE_PIECE_BYTES;
	if (!n || env_read_user(to, (uint32_t)n, at) == 0)
		return (uint32_t)n;
	const uint64_t page = PAGE - at % PAGE;

	return page < n && env_read_user(to, (uint32_t)page, at) == 0 ? (uint32_t)page : 0;
}

/* The number of a piece that was copied before; 0: it was not. */
static uint64_t piece_number(const struct moved *o, uint32_t from, uint32_t at, uint32_t bytes)
{
	uint64_t v = 0;

	if (from < o->pieces - 1 && bytes <= sizeof(v) && at + bytes <= o->len[from])
		memcpy(&v, o->bytes + o->offset[from] + at, bytes);
	return v;
}

/* The address to which a step leads, not counting its `start`; 0: none. */
static uint64_t step_target(const struct moved *o, const struct runtime_step *s)
{
	uint64_t to = s->pointer != RUNTIME_ITSELF ? piece_number(o, s->from, s->pointer, 8)
		      : s->from < o->pieces - 1	   ? o->at[s->from]
						   : 0;

	if (to && s->index_bytes)
		to += 8 * piece_number(o, s->from, s->index_at, s->index_bytes);
	return to;
}

/* Copies one piece after those before it, as the kernel's program does. */
static void take_piece(struct moved *o, const struct runtime_step *s, uint64_t address,
		       const __u64 *told, uint32_t *used)
{
	const uint32_t i = o->pieces++;
	uint64_t at = address, n = s->bytes, size = 0;

	if (!i && told) {
		o->at[0] = o->id.key;
		o->offset[0] = 0;
		o->len[0] = *used = s->bytes;
		memcpy(o->bytes, told, s->bytes);
		return;
	}
	if (i) {
		at = step_target(o, s);
		at = at ? at + (uint64_t)(int64_t)s->start : 0;
	}
	o->at[i] = i ? at : o->id.key;
	o->offset[i] = *used;
	o->len[i] = 0;
	if (!at || *used >= SAMPLE_PIECES_END)
		return;
	if (s->size_bytes == RUNTIME_SIZE_TOLD) {
		if (s->size_at + sizeof(size) <= o->len[0])
			memcpy(&size, o->bytes + s->size_at, sizeof(size));
		n = numbers_smaller(size, n);
	} else if (s->size_bytes && s->size_bytes <= sizeof(size) &&
		   env_read_user(&size, s->size_bytes, at + s->size_at) == 0) {
		if (size < SAMPLE_PIECE_BYTES)
			size = (size << (s->size_shift & 7)) + s->size_add;
		n = numbers_smaller(size, n);
	}
	o->len[i] = read_piece(o->bytes + *used, at, n);
	*used += o->len[i];
}

void moving_take(struct moving *m, const struct runtime_copy *how, uint64_t key, uint64_t check,
		 uint64_t address, const __u64 *told)
{
	struct moved *o = NULL, *smaller, id = { .id = { key, check } };
	uint32_t used = 0;

	HASH_FIND(hh, m->objects, &id.id, sizeof(id.id), o);
	if (o || m->full || !how->steps)
		return;
	o = HASH_COUNT(m->objects) < MOVING_MAX ? calloc(1, sizeof(*o) + SAMPLE_OBJECT_BYTES)
						: NULL;
	m->full = !o;
	if (!o)
		return;
	o->id = id.id;
	for (uint32_t i = 0; i < how->steps && i < RUNTIME_STEPS; i++)
		take_piece(o, &how->step[i], address, told, &used);
	smaller = realloc(o, sizeof(*o) + used);
	o = smaller ? smaller : o;
	HASH_ADD(hh, m->objects, id, sizeof(o->id), o);
}

int moving_find(const struct moving *m, uint64_t key, uint64_t check, struct object_memory *ret)
{
	struct moved *o = NULL, id = { .id = { key, check } };
	int r = 0;

	HASH_FIND(hh, m->objects, &id.id, sizeof(id.id), o);
	for (uint32_t i = 0; o && !r && i < o->pieces; i++)
		r = object_memory_add(ret, o->at[i],
				      (struct span){ o->bytes + o->offset[i], o->len[i] });
	return r;
}
