/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/processes/reach.h"

#include <stdlib.h>
#include <string.h>
#include "bpf/mix.h"

#define WAYS 8
#define NEAR_WAYS 4	    /* of these, for objects of samples */
#define TIME_SHIFT 28	    /* shift of nanoseconds: times are counted in quarters of a second */
#define LOWEST (1ull << 16) /* no pointer is below */
#define HIGHEST (1ull << 47)
/* Limits for a piece whose size is in memory; real ones are smaller. */
#define SIZE_AT 64u
#define SIZE_ADD 128u
#define SIZE_SHIFT 3u

struct place {
	uint64_t address; /* 0: unused */
	uint16_t slot;
	uint16_t steps;	   /* a bit for each step */
	uint16_t distance; /* number of pointers from an object of a sample */
	uint16_t last;	   /* `now` when it was last added */
};
static_assert(sizeof(struct place) == 16 && RUNTIME_STEPS <= 16, "no padding, a bit a step");

struct reach {
	uint32_t sets;	   /* a power of two */
	uint32_t replaced; /* places that were replaced since it grew */
	uint32_t turn;	   /* which of several equal places is replaced next */
	uint16_t now;	   /* the time of the last sample */
	struct place at[][WAYS];
};

static struct reach *new (uint32_t sets)
{
	struct reach *r = calloc(1, sizeof(*r) + sets * sizeof(r->at[0]));

	if (r)
		r->sets = sets;
	return r;
}

static uint32_t set_of(const struct reach *r, uint64_t address)
{
	return (uint32_t)(address * MIX_GOLDEN >> 40) & (r->sets - 1);
}

static struct place *find(struct reach *r, uint64_t address)
{
	struct place *set = r->at[set_of(r, address)];

	for (unsigned i = 0; i < WAYS; i++)
		if (set[i].address == address)
			return &set[i];
	return NULL;
}

static uint16_t age_of(const struct reach *r, const struct place *p)
{
	return (uint16_t)(r->now - p->last);
}

/* Returns an unused place; or else, of the kind that has more than its half of the set, the oldest
 * one, and of several the one with the largest distance. */
static struct place *room_for(struct reach *r, const struct place *p)
{
	struct place *set = r->at[set_of(r, p->address)], *oldest[2] = { NULL, NULL };
	unsigned near = 0;

	for (unsigned k = 0; k < WAYS; k++) {
		struct place *e = &set[(r->turn + k) % WAYS];

		if (!e->address)
			return e;
		struct place **old = &oldest[e->distance > 0];

		near += !e->distance;
		if (!*old || age_of(r, e) > age_of(r, *old) ||
		    (age_of(r, e) == age_of(r, *old) && e->distance > (*old)->distance))
			*old = e;
	}
	return oldest[near < NEAR_WAYS || (near == NEAR_WAYS && p->distance)];
}

static void put(struct reach *r, const struct place *p)
{
	struct place *e = find(r, p->address);

	r->now = p->last;
	if (e && e->slot == p->slot) {
		e->last = p->last;
		e->steps |= p->steps;
		e->distance = p->distance < e->distance ? p->distance : e->distance;
		return;
	}
	e = e ? e : room_for(r, p);
	r->replaced += e->address != 0;
	r->turn++;
	*e = *p;
}

/* Whether to grow before this place is added: an object of a sample would replace another place, or
 * be replaced, or many places were replaced. */
static bool is_short(struct reach *r, const struct place *p)
{
	const struct place *e = room_for(r, p);

	return r->sets * WAYS < REACH_MOST &&
	       (r->replaced >= r->sets * WAYS ||
		(!find(r, p->address) && e->address && (!p->distance || !e->distance)));
}

/* Doubles the set. Returns false if there is no memory. */
static bool grow(struct reach **reach)
{
	struct reach *old = *reach, *r = new (old->sets * 2);

	if (!r)
		return false;
	for (uint32_t i = 0; i < old->sets; i++)
		for (unsigned k = 0; k < WAYS; k++)
			if (old->at[i][k].address)
				put(r, &old->at[i][k]);
	r->now = old->now;
	r->replaced = 0;
	free(old);
	*reach = r;
	return true;
}

static void note(struct reach **reach, const struct place *p, bool may_grow)
{
	if (p->address < LOWEST || p->address >= HIGHEST)
		return;
	if (!*reach && may_grow)
		*reach = new (REACH_FIRST / WAYS);
	if (!*reach)
		return;
	while (may_grow && is_short(*reach, p) && grow(reach))
		;
	put(*reach, p);
}

static bool is_width(unsigned bytes)
{
	return bytes == 2 || bytes == 4 || bytes == 8;
}

static bool has_real_size(const struct runtime_step *s)
{
	return !s->size_bytes || s->size_bytes == RUNTIME_SIZE_TOLD ||
	       (is_width(s->size_bytes) && s->size_at <= SIZE_AT && s->size_add <= SIZE_ADD &&
		s->size_shift <= SIZE_SHIFT);
}

static bool has_real_index(const struct runtime_step *s, struct runtime_need need)
{
	if (!need.indexes)
		return !s->index_bytes && s->pointer != RUNTIME_ITSELF;
	return !s->index_bytes ||
	       ((s->index_bytes == 2 || s->index_bytes == 4) && s->index_at % s->index_bytes == 0);
}

bool reach_suits(const struct runtime_copy *c, struct runtime_need need)
{
	unsigned distance[RUNTIME_STEPS] = { 0 };
	const uint64_t count = (uint64_t)c->steps + c->more;

	if (count > need.steps || count > RUNTIME_STEPS || (c->more && !c->steps) ||
	    (count && c->step[0].bytes > need.object))
		return false;
	for (uint32_t i = 1; i < count; i++) {
		const struct runtime_step *s = &c->step[i];

		if (s->from >= i || !has_real_size(s) || !has_real_index(s, need))
			return false;
		distance[i] = distance[s->from] + 1;
		if (distance[i] > need.far || (!s->size_bytes && s->bytes > need.bytes))
			return false;
	}
	return true;
}

void reach_add(struct reach **reach, uint64_t address, uint16_t slot, uint64_t time_ns,
	       bool may_grow)
{
	note(reach,
	     &(struct place){ .address = address,
			      .slot = slot,
			      .steps = 1,
			      .last = (uint16_t)(time_ns >> TIME_SHIFT) },
	     may_grow);
}

/* Reads a number from memory. Returns false if it is not within the bytes. */
static bool read_number(struct span bytes, uint32_t at, uint32_t width, uint64_t *ret)
{
	uint64_t v = 0;

	if (width > sizeof(v) || bytes.len < width || at > bytes.len - width)
		return false;
	memcpy(&v, bytes.data + at, width);
	*ret = v;
	return true;
}

/* Returns the most bytes that the piece of a step may have. */
static uint64_t most_of(const struct reach_rule *r, uint32_t i)
{
	if (!r->copy->step[i].size_bytes)
		return r->copy->step[i].bytes;
	return i == r->copy->steps - 1 ? REACH_BYTES : i ? r->need.bytes : r->need.object;
}

/* Returns how many bytes the piece of a step has. The piece begins with `bytes`. */
static size_t size_of(const struct reach_rule *r, uint32_t i, struct span bytes)
{
	const struct runtime_step *s = &r->copy->step[i];
	const uint64_t most = most_of(r, i);
	uint64_t size = s->bytes;

	if (s->size_bytes && !read_number(bytes, s->size_at, s->size_bytes, &size))
		size = 0;
	else if (s->size_bytes)
		size = size < REACH_BYTES ? (size << (s->size_shift & 7)) + s->size_add
					  : 0; /* not a valid size, so nothing after it is read */
	if (s->size_bytes && size < s->size_at + (uint64_t)s->size_bytes)
		size = s->size_at + s->size_bytes;
	size = size < most ? size : most;
	return size < bytes.len ? (size_t)size : bytes.len;
}

/* A place, the needs of its runtime, and how many bytes before the place an address is. */
struct found {
	struct place place;
	struct reach_rule rule;
	uint32_t before;
};

static bool take(const struct reach_rules *rules, const struct place *p, struct found *ret)
{
	if (!p)
		return false;
	*ret = (struct found){ .place = *p, .rule = rules->of(rules->ctx, p->slot) };
	return ret->rule.copy;
}

static bool look_up(const struct reach *reach, uint64_t address, const struct reach_rules *rules,
		    struct found *ret)
{
	struct reach *r = (struct reach *)reach;

	if (!r || address >= HIGHEST)
		return false;
	if (take(rules, find(r, address), ret))
		return true;
	if (take(rules, find(r, address + REACH_BEFORE), ret) && !ret->place.distance) {
		ret->before = REACH_BEFORE;
		return true;
	}
	return false;
}

uint64_t reach_of(const struct reach *reach, uint64_t address, uint64_t length,
		  const struct reach_rules *rules)
{
	struct found f;
	uint64_t most = 0;

	if (!look_up(reach, address, rules, &f))
		return 0;
	for (uint32_t i = 0; i < f.rule.copy->steps + f.rule.copy->more && i < RUNTIME_STEPS; i++) {
		if (f.place.steps >> i & 1 && most_of(&f.rule, i) + f.before > most)
			most = most_of(&f.rule, i) + f.before;
	}
	return length < most ? length : most;
}

/* Adds the places that further steps lead to from step `from`, whose piece this is. */
static void follow(struct reach **reach, const struct found *f, uint32_t from, struct span piece,
		   bool may_grow)
{
	const struct runtime_copy *c = f->rule.copy;
	uint64_t to, index;

	for (uint32_t i = from + 1; i < c->steps + c->more && i < RUNTIME_STEPS; i++) {
		const struct runtime_step *s = &c->step[i];

		if (s->from != from)
			continue;
		if (s->pointer == RUNTIME_ITSELF)
			to = f->place.address;
		else if (!read_number(piece, s->pointer, sizeof(to), &to) || !to)
			continue;
		if (s->index_bytes && !read_number(piece, s->index_at, s->index_bytes, &index))
			continue;
		to += s->index_bytes ? 8 * index : 0;
		note(reach,
		     &(struct place){ .address = to + (uint64_t)(int64_t)s->start,
				      .slot = f->place.slot,
				      .steps = (uint16_t)(1u << i),
				      .distance = (uint16_t)(f->place.distance + 1),
				      .last = (*reach)->now },
		     may_grow);
	}
}

size_t reach_read(struct reach **reach, uint64_t address, struct span bytes,
		  const struct reach_rules *rules, bool may_grow)
{
	struct span piece = bytes;
	struct found f;
	size_t most = 0;

	if (!look_up(*reach, address, rules, &f) || bytes.len <= f.before)
		return 0;
	piece.data += f.before;
	piece.len -= f.before;
	for (uint32_t i = 0; i < RUNTIME_STEPS; i++) {
		if (!(f.place.steps >> i & 1))
			continue;
		const size_t size = size_of(&f.rule, i, piece);

		follow(reach, &f, i, (struct span){ .data = piece.data, .len = size }, may_grow);
		most = size + f.before > most ? size + f.before : most;
	}
	return most;
}

size_t reach_bytes(const struct reach *reach)
{
	return reach ? sizeof(*reach) + reach->sets * sizeof(reach->at[0]) : 0;
}

void reach_free(struct reach *reach)
{
	free(reach);
}
