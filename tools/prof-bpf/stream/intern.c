/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/intern.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "bpf/mix.h"
#include "common/base/bytes/numbers.h"

/* at: index of the record in the table's words, plus 1; 0: empty. The hash makes most comparisons
 * of keys unnecessary. */
struct slot {
	uint32_t hash, at;
};

/* A record: the number of words of its key, its id, and the key. */
#define RECORD_WORDS 0
#define RECORD_ID 1
#define RECORD_KEY 2

/* Records are stored one after the other. A hash table of pointers would take three times as
 * much. */
struct table {
	uint32_t *words;
	size_t words_len, words_cap;
	uint32_t len;	    /* number of records */
	struct slot *slots; /* slot_count of them, a power of two; at least a quarter is empty */
	size_t slot_count;
};

/* A set of hashes; 0: empty. At least a quarter is empty. */
struct intern_seen {
	uint32_t *at;
	size_t len, count;
};

struct intern {
	struct table frames, stacks, functions;
	struct intern_seen objects;
	size_t bytes, ceiling;
	uint64_t seed; /* random, so that no process can choose addresses that collide */
	uint32_t *key; /* key of the current stack: reason, at_file, frames */
	size_t key_cap;
};

int intern_new(size_t ceiling, struct intern **ret)
{
	struct intern *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	if (getrandom(&in->seed, sizeof(in->seed), 0) != (ssize_t)sizeof(in->seed)) {
		free(in);
		return -EIO;
	}
	/* Indexes of words have 32 bits. */
	in->ceiling = numbers_smaller(ceiling, UINT32_MAX);
	*ret = in;
	return 0;
}

static void table_reset(struct table *t)
{
	free(t->words);
	free(t->slots);
	*t = (struct table){ 0 };
}

void intern_reset(struct intern *in)
{
	table_reset(&in->frames);
	table_reset(&in->stacks);
	table_reset(&in->functions);
	free(in->objects.at);
	in->objects = (struct intern_seen){ 0 };
	in->bytes = 0;
}

size_t intern_bytes(const struct intern *in)
{
	return in->bytes;
}

void intern_free(struct intern *in)
{
	if (!in)
		return;
	intern_reset(in);
	free(in->key);
	free(in);
}

static uint32_t hash(const struct intern *in, const uint32_t *key, uint32_t words)
{
	uint64_t h = in->seed ^ words;

	/* Two words at a time. The upper half of the product keeps a bit of one word from being
	 * undone by a bit of the next one. */
	for (uint32_t i = 0; i < words; i += 2) {
		uint64_t both = key[i];

		if (i + 1 < words)
			both |= (uint64_t)key[i + 1] << 32;
		const unsigned __int128 product = (unsigned __int128)(h ^ both) * MIX_GOLDEN;

		h = (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	return (uint32_t)(h ^ h >> 32);
}

static int grow(void **data, size_t *cap, size_t wanted, size_t size)
{
	size_t more = *cap ? *cap : 256;
	void *p;

	while (more < wanted)
		more += more / 4;
	if (more == *cap)
		return 0;
	p = reallocarray(*data, more, size);
	if (!p)
		return -ENOMEM;
	*data = p;
	*cap = more;
	return 0;
}

static void put_slot(struct slot *slots, size_t count, struct slot s)
{
	size_t i = s.hash & (count - 1);

	while (slots[i].at)
		i = (i + 1) & (count - 1);
	slots[i] = s;
}

/* Makes space for one more key. */
static int table_grow(struct table *t, uint32_t words)
{
	const int r = grow((void **)&t->words, &t->words_cap, t->words_len + RECORD_KEY + words,
			   sizeof(*t->words));

	if (r || t->len + 1 <= t->slot_count / 4 * 3)
		return r;
	size_t count = t->slot_count ? t->slot_count * 2 : 512;
	struct slot *slots = calloc(count, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->slot_count; i++) {
		if (t->slots[i].at)
			put_slot(slots, count, t->slots[i]);
	}
	free(t->slots);
	t->slots = slots;
	t->slot_count = count;
	return 0;
}

static int lookup(struct intern *in, struct table *t, const void *key, uint32_t bytes,
		  uint32_t *ret_id, bool *ret_new)
{
	uint32_t words = bytes / 4, h = hash(in, key, words);
	/* 32: the entry's share of the arrays, some of which are half empty. */
	size_t cost = bytes + 32;

	for (size_t i = h & (t->slot_count - 1); t->slot_count && t->slots[i].at;
	     i = (i + 1) & (t->slot_count - 1)) {
		const uint32_t *have;

		if (t->slots[i].hash != h)
			continue;
		have = t->words + t->slots[i].at - 1;
		if (have[RECORD_WORDS] == words && memcmp(have + RECORD_KEY, key, bytes) == 0) {
			*ret_id = have[RECORD_ID];
			*ret_new = false;
			return 0;
		}
	}
	if (in->bytes + cost > in->ceiling)
		return INTERN_FULL;
	int r = table_grow(t, words);
	if (r)
		return r;
	uint32_t *record = t->words + t->words_len;

	in->bytes += cost;
	record[RECORD_WORDS] = words;
	record[RECORD_ID] = ++t->len;
	memcpy(record + RECORD_KEY, key, bytes);
	put_slot(t->slots, t->slot_count,
		 (struct slot){ .hash = h, .at = (uint32_t)t->words_len + 1 });
	t->words_len += RECORD_KEY + words;
	*ret_id = t->len;
	*ret_new = true;
	return 0;
}

static uint32_t frame_size(const struct intern_frame *f)
{
	return f->object2 ? sizeof(*f) : offsetof(struct intern_frame, object2);
}

/* First all slots are fetched, then all records that these lead to. */
void intern_expect(const struct intern *in, const struct intern_frame *f, uint32_t n)
{
	const struct table *t = &in->frames;
	uint32_t hashes[INTERN_EXPECTED];

	n = n < INTERN_EXPECTED ? n : INTERN_EXPECTED;
	if (!t->slot_count)
		return;
	for (uint32_t i = 0; i < n; i++) {
		hashes[i] = hash(in, (const uint32_t *)(const void *)&f[i], frame_size(&f[i]) / 4);
		__builtin_prefetch(&t->slots[hashes[i] & (t->slot_count - 1)]);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct slot *s = &t->slots[hashes[i] & (t->slot_count - 1)];

		if (s->at)
			__builtin_prefetch(t->words + s->at - 1);
	}
}

int intern_frame(struct intern *in, const struct intern_frame *f, uint32_t *ret_id, bool *ret_new)
{
	static_assert(sizeof(*f) == 48, "no padding: it is hashed as bytes");
	return lookup(in, &in->frames, f, frame_size(f), ret_id, ret_new);
}

int intern_function(struct intern *in, uint64_t start, uint32_t *ret_id, bool *ret_new)
{
	return lookup(in, &in->functions, &start, sizeof(start), ret_id, ret_new);
}

static void put_seen(uint32_t *at, size_t count, uint32_t h)
{
	size_t i = h & (count - 1);

	while (at[i])
		i = (i + 1) & (count - 1);
	at[i] = h;
}

static int grow_seen(struct intern_seen *s)
{
	if (s->len + 1 <= s->count / 4 * 3)
		return 0;
	size_t count = s->count ? s->count * 2 : 512;
	uint32_t *at = calloc(count, sizeof(*at));
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++) {
		if (s->at[i])
			put_seen(at, count, s->at[i]);
	}
	free(s->at);
	s->at = at;
	s->count = count;
	return 0;
}

int intern_object(struct intern *in, uint64_t process, uint64_t address, uint64_t check,
		  bool *ret_new)
{
	const uint32_t key[] = { (uint32_t)process, (uint32_t)address, (uint32_t)(address >> 32),
				 (uint32_t)check, (uint32_t)(check >> 32) };
	const size_t cost = 2 * sizeof(uint32_t);
	struct intern_seen *s = &in->objects;
	uint32_t h = hash(in, key, sizeof(key) / sizeof(key[0]));

	h = h ? h : 1;
	for (size_t i = h & (s->count - 1); s->count && s->at[i]; i = (i + 1) & (s->count - 1)) {
		if (s->at[i] == h) {
			*ret_new = false;
			return 0;
		}
	}
	if (in->bytes + cost > in->ceiling)
		return INTERN_FULL;
	int r = grow_seen(s);
	if (r)
		return r;
	put_seen(s->at, s->count, h);
	s->len++;
	in->bytes += cost;
	*ret_new = true;
	return 0;
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
	if (n)
		memcpy(in->key + 2, frames, n * sizeof(*frames));
	return lookup(in, &in->stacks, in->key, (n + 2) * (uint32_t)sizeof(*in->key), ret_id,
		      ret_new);
}
