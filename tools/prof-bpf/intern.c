/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "tools/prof-bpf/intern.h"

struct entry {
	UT_hash_handle hh;
	uint32_t id;
	uint32_t key_bytes;
	uint32_t key[];
};

struct table {
	struct entry *hash;
	uint32_t last_id;
};

struct intern {
	struct table frames, stacks, functions;
	size_t bytes, ceiling;
	uint32_t *key; /* of the stack at hand: reason, at_file, frames */
	size_t key_cap;
};

int intern_new(size_t ceiling, struct intern **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->ceiling = ceiling;
	return 0;
}

static void table_reset(struct table *t)
{
	struct entry *e, *next;

	HASH_ITER(hh, t->hash, e, next) {
		HASH_DEL(t->hash, e);
		free(e);
	}
	t->last_id = 0;
}

void intern_reset(struct intern *in)
{
	table_reset(&in->frames);
	table_reset(&in->stacks);
	table_reset(&in->functions);
	in->bytes = 0;
}

void intern_free(struct intern *in)
{
	if (!in)
		return;
	intern_reset(in);
	free(in->key);
	free(in);
}

static int lookup(struct intern *in, struct table *t, const void *key, uint32_t bytes,
		  uint32_t *ret_id, bool *ret_new)
{
	struct entry *e;

	HASH_FIND(hh, t->hash, key, bytes, e);
	*ret_new = !e;
	if (!e) {
		/* The hash's own arrays grow with the entries: about 16 bytes each. */
		size_t cost = sizeof(*e) + bytes + 16;

		if (in->bytes + cost > in->ceiling || t->last_id == UINT32_MAX)
			return INTERN_FULL;
		e = malloc(sizeof(*e) + bytes);
		if (!e)
			return -ENOMEM;
		in->bytes += cost;
		e->id = ++t->last_id;
		e->key_bytes = bytes;
		memcpy(e->key, key, bytes);
		HASH_ADD_KEYPTR(hh, t->hash, e->key, bytes, e);
	}
	*ret_id = e->id;
	return 0;
}

int intern_frame(struct intern *in, const struct intern_frame *f, uint32_t *ret_id, bool *ret_new)
{
	_Static_assert(sizeof(*f) == 24, "no padding: it is hashed as bytes");
	return lookup(in, &in->frames, f, sizeof(*f), ret_id, ret_new);
}

int intern_function(struct intern *in, uint64_t start, uint32_t *ret_id, bool *ret_new)
{
	return lookup(in, &in->functions, &start, sizeof(start), ret_id, ret_new);
}

int intern_stack(struct intern *in, const uint32_t *frames, uint32_t n, uint32_t reason,
		 uint32_t at_file, uint32_t *ret_id, bool *ret_new)
{
	if (n + 2 > in->key_cap) {
		uint32_t *p = reallocarray(in->key, n + 2, sizeof(*p));

		if (!p)
			return -ENOMEM;
		in->key = p;
		in->key_cap = n + 2;
	}
	in->key[0] = reason;
	in->key[1] = at_file;
	memcpy(in->key + 2, frames, n * sizeof(*frames));
	return lookup(in, &in->stacks, in->key, (n + 2) * (uint32_t)sizeof(*in->key), ret_id,
		      ret_new);
}
