/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/objects/copies.h"

#include <errno.h>
#include <stdlib.h>
#include "bpf/mix.h"
#include "common/wire/peer/lastword.h"

struct copy {
	uint64_t key, owner;
	struct object_id of;
	uint64_t serial;	      /* lower means older */
	size_t bytes;		      /* charged to the owner */
	struct object_memory *memory; /* NULL: this place is empty */
};

uint64_t object_id_key(const struct object_id *of, uint64_t seed)
{
	uint64_t h = seed;

	h = (h ^ of->process) * MIX_FIRST;
	h = mix_number(h, of->address, MIX_SECOND);
	h = mix_number(h, of->check, MIX_FIRST);
	h ^= h >> 32;
	return h ? h : 1;
}

static void drop(struct copies *c, struct copy *p)
{
	if (!p->memory)
		return;
	idmap_remove(&c->by_key, p->key);
	holdings_give(&c->bytes, p->owner, p->bytes);
	object_memory_done(p->memory);
	free(p->memory);
	p->memory = NULL;
}

int copies_init(struct copies *c, uint64_t seed, size_t bytes)
{
	c->seed = seed;
	c->most = bytes;
	return idmap_init(&c->by_key, COPIES_MAX);
}

void copies_done(struct copies *c)
{
	for (uint32_t i = 0; c->at && i < COPIES_MAX; i++)
		drop(c, &c->at[i]);
	free(c->at);
	c->at = NULL;
	idmap_done(&c->by_key);
}

/* Returns the copy of an object; NULL: there is none. */
static struct copy *find(const struct copies *c, const struct object_id *of)
{
	const uint32_t i = idmap_get(&c->by_key, object_id_key(of, c->seed));
	struct copy *p = i == IDMAP_NONE ? NULL : &c->at[i];

	return p && p->of.process == of->process && p->of.address == of->address &&
			       p->of.check == of->check
		       ? p
		       : NULL;
}

bool copies_have(const struct copies *c, const struct object_id *of)
{
	return find(c, of) != NULL;
}

/* --- keeping --- */

/* Returns the oldest copy of an owner; NULL: it has none. */
static struct copy *oldest_of(const struct copies *c, uint64_t owner)
{
	struct copy *oldest = NULL;

	for (uint32_t i = 0; i < COPIES_MAX; i++) {
		struct copy *p = &c->at[i];

		if (p->memory && p->owner == owner && (!oldest || p->serial < oldest->serial))
			oldest = p;
	}
	return oldest;
}

/* Drops the oldest copy of the owner with most bytes. The owner itself gives way if no other has
 * more. */
static void drop_oldest(struct copies *c, uint64_t owner)
{
	(void)holdings_gives_way(&c->bytes, owner, &owner);
	struct copy *p = oldest_of(c, owner);

	for (uint32_t i = 0; !p && i < COPIES_MAX; i++)
		p = c->at[i].memory ? &c->at[i] : NULL;
	if (!p)
		return;
	if (c->forgotten)
		forgotten_add(c->forgotten, p->key);
	drop(c, p);
}

/* Returns an empty place. */
static struct copy *place_for(struct copies *c, uint64_t owner, size_t bytes)
{
	while (c->by_key.len && c->bytes.held + bytes > c->most)
		drop_oldest(c, owner);
	if (c->by_key.len == COPIES_MAX)
		drop_oldest(c, owner);
	for (uint32_t i = 0; i < COPIES_MAX; i++)
		if (!c->at[i].memory)
			return &c->at[i];
	return NULL;
}

void copies_limit(struct copies *c, size_t bytes)
{
	c->most = bytes;
	while (c->by_key.len && c->bytes.held > c->most)
		drop_oldest(c, UINT64_MAX);
}

static int add_pieces(struct object_memory *memory, const struct msg_object *m)
{
	struct span rest = m->bytes;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < m->addresses.len; i++) {
		struct span bytes;

		if (m->lengths.data[i] > rest.len ||
		    !span_take(&rest, (size_t)m->lengths.data[i], &bytes))
			break; /* the lengths add up to more than its bytes */
		r = object_memory_add(memory, m->addresses.data[i], bytes);
	}
	return r;
}

int copies_take(struct copies *c, const struct msg_object *m, uint64_t owner)
{
	const struct object_id of = { .process = m->process,
				      .address = m->address,
				      .check = m->check };
	const uint64_t key = object_id_key(&of, c->seed);

	if (idmap_get(&c->by_key, key) != IDMAP_NONE)
		return 0;
	if (!c->at)
		c->at = calloc(COPIES_MAX, sizeof(*c->at));
	if (!c->at)
		return -ENOMEM;
	const size_t bytes = sizeof(struct object_memory) + m->bytes.len;
	struct object_memory *memory = calloc(1, sizeof(*memory));
	struct copy *p = memory ? place_for(c, owner, bytes) : NULL;
	const int r = p ? idmap_put(&c->by_key, key, (uint32_t)(p - c->at)) : -ENOMEM;

	if (r) {
		free(memory);
		return r;
	}
	*p = (struct copy){ .key = key,
			    .owner = owner,
			    .of = of,
			    .serial = ++c->serial,
			    .bytes = bytes,
			    .memory = memory };
	holdings_take(&c->bytes, owner, bytes);
	memory->whole = true;
	return add_pieces(memory, m);
}

/* --- naming --- */

bool copies_take_empty(struct copies *c, const struct object_id *of)
{
	struct copy *p = find(c, of);

	if (!p || p->memory->count)
		return false;
	drop(c, p);
	return true;
}

/* The object that is being named, for finding other copies of its process. */
struct other {
	const struct copies *copies;
	uint64_t process;
};

static struct object_memory *find_other(void *ctx, uint64_t address, uint64_t check)
{
	const struct other *of = ctx;
	const struct copy *p = find(
		of->copies,
		&(struct object_id){ .process = of->process, .address = address, .check = check });

	return p ? p->memory : NULL;
}

int copies_name(struct copies *c, const struct object_id *of, const struct runtime_build *b,
		struct runtime_object *scratch, struct object_names_sources *sources,
		struct copy_names *ret)
{
	struct copy *p = find(c, of);

	*ret = (struct copy_names){ 0 };
	if (!p)
		return 0;

	const uint64_t former = lastword_begin(LASTWORD_PROCESS, of->process);
	struct other other = { .copies = c, .process = of->process };

	p->memory->other = find_other;
	p->memory->other_ctx = &other;
	int r = runtime_name(b, of->address, of->check, p->memory, scratch);
	lastword_back(former);
	if (r == 0)
		r = object_names_new(scratch, sources, &ret->names, &ret->bytes);
	ret->whole = !p->memory->lacked;
	drop(c, p);
	return r < 0 ? r : 0;
}
