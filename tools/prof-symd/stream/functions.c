/* SPDX-License-Identifier: Apache-2.0 */
/* The hash is SipHash-1-3 (Aumasson and Bernstein, 2012) with a random key. Otherwise users
 * could choose names that collide. */
#include "tools/prof-symd/stream/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include "common/base/bytes/numbers.h"

struct function_entry {
	uint64_t hash;
	uint64_t start_line;
	uint32_t at, source_at; /* offsets in `text`: at: name and system name; source_at: source */
	uint16_t name, system_name, source; /* lengths in bytes; decoded strings have at most 1
					     * KiB */
	bool shared; /* the name ends with the system name, which is not stored again */
	uint32_t payers;
};

struct sip {
	uint64_t v[4];
	uint64_t word;
	uint64_t total;
};

static uint64_t rotl(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static void sip_bytes(struct sip *s, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++) {
		s->word |= (uint64_t)p[i] << 8 * (s->total % 8);
		if (++s->total % 8 == 0) {
			s->v[3] ^= s->word;
			sip_round(s->v);
			s->v[0] ^= s->word;
			s->word = 0;
		}
	}
}

static uint64_t hash(const struct functions *t, const struct function *f)
{
	uint64_t lengths[4] = { f->name.len, f->system_name.len, f->source.len, f->start_line };
	struct sip s = {
		.v = { t->seed[0] ^ 0x736f6d6570736575ull, t->seed[1] ^ 0x646f72616e646f6dull,
		       t->seed[0] ^ 0x6c7967656e657261ull, t->seed[1] ^ 0x7465646279746573ull }
	};

	sip_bytes(&s, lengths, sizeof(lengths));
	sip_bytes(&s, f->name.data, f->name.len);
	sip_bytes(&s, f->system_name.data, f->system_name.len);
	sip_bytes(&s, f->source.data, f->source.len);
	s.word |= s.total << 56;
	s.v[3] ^= s.word;
	sip_round(s.v);
	s.v[0] ^= s.word;
	s.v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(s.v);
	return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

int functions_init(struct functions *t, size_t max, size_t max_text)
{
	*t = (struct functions){ .text = BUF_INIT(numbers_smaller(max_text, UINT32_MAX)),
				 .max = max };
	return getrandom(t->seed, sizeof(t->seed), 0) == (ssize_t)sizeof(t->seed) ? 0 : -EIO;
}

void functions_clear(struct functions *t)
{
	free(t->entries);
	free(t->slots);
	t->entries = NULL;
	t->slots = NULL;
	t->len = t->cap = t->slot_count = 0;
	buf_reset(&t->text);
	memset(t->sources, 0, sizeof(t->sources));
}

void functions_done(struct functions *t)
{
	functions_clear(t);
	buf_done(&t->text);
}

static bool text_eq(const struct functions *t, uint32_t at, struct str s)
{
	return s.len == 0 || memcmp(t->text.data + at, s.data, s.len) == 0;
}

static bool is_entry(const struct functions *t, const struct function_entry *e, uint64_t h,
		     const struct function *f)
{
	return e->hash == h && e->start_line == f->start_line && e->name == f->name.len &&
	       e->system_name == f->system_name.len && e->source == f->source.len &&
	       text_eq(t, e->at, f->name) &&
	       text_eq(t, e->at + e->name - (e->shared ? e->system_name : 0), f->system_name) &&
	       text_eq(t, e->source_at, f->source);
}

/* Stores a source. Many functions share one, so it is reused if it is the last one of its hash. */
static int put_source(struct functions *t, struct str source, uint32_t *ret_at)
{
	uint32_t h = source.len;

	for (uint32_t i = 0; i < source.len; i++)
		h = (h ^ (uint8_t)source.data[i]) * 0x9e3779b1u;
	struct function_source *s = &t->sources[h >> 16 & (FUNCTIONS_SOURCES - 1)];
	if (s->len != source.len || !text_eq(t, s->at, source)) {
		uint32_t at = (uint32_t)t->text.len;
		int r = buf_append(&t->text, source.data, source.len);

		if (r)
			return r;
		*s = (struct function_source){ .at = at, .len = source.len };
	}
	*ret_at = s->at;
	return 0;
}

static int grow(struct functions *t)
{
	if (t->len == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 256;
		struct function_entry *entries = realloc(t->entries, cap * sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		t->entries = entries;
		t->cap = cap;
	}
	if (t->len + 1 > t->slot_count / 4 * 3) {
		size_t count = t->slot_count ? t->slot_count * 2 : 512;
		uint32_t *slots = calloc(count, sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		for (size_t i = 0; i < t->len; i++) {
			size_t at = t->entries[i].hash & (count - 1);

			while (slots[at])
				at = (at + 1) & (count - 1);
			slots[at] = (uint32_t)i + 1;
		}
		free(t->slots);
		t->slots = slots;
		t->slot_count = count;
	}
	return 0;
}

int functions_intern(struct functions *t, const struct function *f, uint32_t payer,
		     uint64_t *ret_id, bool *ret_new)
{
	uint64_t h = hash(t, f);
	size_t slot, before = t->text.len;
	uint32_t source_at = 0;
	bool shared;
	int r;

	if (f->name.len > UINT16_MAX || f->system_name.len > UINT16_MAX ||
	    f->source.len > UINT16_MAX)
		return -ENOBUFS;
	r = grow(t);
	if (r)
		return r;
	for (slot = h & (t->slot_count - 1); t->slots[slot];
	     slot = (slot + 1) & (t->slot_count - 1)) {
		struct function_entry *e = &t->entries[t->slots[slot] - 1];

		if (is_entry(t, e, h, f)) {
			*ret_id = t->slots[slot];
			*ret_new = !(e->payers & payer);
			e->payers |= payer;
			return 0;
		}
	}
	if (t->len >= t->max)
		return -ENOBUFS;
	shared = str_ends_with(f->name, f->system_name);
	r = buf_append(&t->text, f->name.data, f->name.len);
	if (r == 0 && !shared)
		r = buf_append(&t->text, f->system_name.data, f->system_name.len);
	if (r == 0)
		r = put_source(t, f->source, &source_at);
	if (r) {
		t->text.len = before;
		return r;
	}
	t->entries[t->len] = (struct function_entry){ .hash = h,
						      .start_line = f->start_line,
						      .at = (uint32_t)before,
						      .source_at = source_at,
						      .shared = shared,
						      .payers = payer,
						      .name = (uint16_t)f->name.len,
						      .system_name = (uint16_t)f->system_name.len,
						      .source = (uint16_t)f->source.len };
	t->slots[slot] = (uint32_t)++t->len;
	*ret_id = t->len;
	*ret_new = true;
	return 0;
}

size_t functions_bytes(const struct functions *t)
{
	return t->text.cap + t->cap * sizeof(*t->entries) + t->slot_count * sizeof(*t->slots);
}
