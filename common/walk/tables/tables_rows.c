/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of files: the memory that they take, eviction, and rows as they arrive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/walk/rows/victims.h"
#include "common/walk/tables/tables_internal.h"

/* Parts of all memory that rows, and idle rows, leave free for mappings: without space for its
 * mappings, a process has no stacks. */
#define SPARE_PART 16
#define IDLE_PART 8
#define RESTS_NS 500000000ull /* for so long, the rows of an unmapped file keep their samples */
/* Part of all memory, and of all rules, that is left free by owners who hold more than their
 * share. */
#define FAIR_PART 16

uint64_t tables_all_words(const struct tables *t)
{
	return (uint64_t)t->slabs.max * TABLES_SLAB_WORDS;
}

static uint64_t free_words(const struct tables *t)
{
	const uint64_t most = (uint64_t)t->slabs.max * TABLES_SLAB_BYTES;

	return most > t->slabs.bytes_used ? (most - t->slabs.bytes_used) / sizeof(uint32_t) : 0;
}

uint64_t tables_spare_words(const struct tables *t)
{
	return tables_all_words(t) / SPARE_PART;
}

/* Returns the words that are left free by owners who hold more than their share. */
static uint64_t fair_words(const struct tables *t)
{
	return t->ledger ? tables_all_words(t) / FAIR_PART : 0;
}

static uint64_t extents_words(const struct slabs_extents *x)
{
	uint64_t words = 0;

	for (size_t i = 0; i < x->len; i++)
		words += x->data[i].words;
	return words;
}

static bool has_rows(const struct table_file *f)
{
	return f->state == TABLES_FILE_READY && f->extents.len;
}

static struct victim victim_of(const struct tables *t, uint16_t slot)
{
	const struct table_file *f = &t->state[slot];
	const bool idle = tables_file_is_idle(t, f);
	/* A program that runs again and again keeps its rows between two runs. */
	const bool rests = f->unmapped && t->now_ns < f->touched_ns + RESTS_NS;

	return (struct victim){ .slot = slot,
				.owner = f->owner,
				.idle = idle,
				.samples = idle && !rests ? 0 : tables_file_score(f, t->now_ns),
				.touched_ns = f->touched_ns,
				.words = extents_words(&f->extents) };
}

/* Sorts the files that have rows in the order of eviction. This takes up to a millisecond, and any
 * user can cause many refusals. So the order is kept until the next tick, or until another file has
 * rows. Returns false without memory. */
static bool sort_files(struct tables *t)
{
	if (t->sorted)
		return true;
	if (!t->victims)
		t->victims = calloc(TABLES_SLOTS, sizeof(*t->victims));
	if (!t->victims)
		return false;
	t->victim_count = 0;
	for (uint32_t i = 1; i < t->next_slot; i++)
		if (has_rows(&t->state[i]))
			t->victims[t->victim_count++] = victim_of(t, (uint16_t)i);
	victims_sort(t->victims, t->victim_count);
	t->sorted = true;
	t->round++;
	t->figures.sorts++;
	return true;
}

/* Returns the files that have rows, in the order of eviction. The caller frees them. NULL: none, or
 * no memory. */
static struct victim *victims_new(struct tables *t, size_t *ret_count)
{
	struct victim *v = sort_files(t) ? calloc(t->victim_count + 1, sizeof(*v)) : NULL;

	*ret_count = 0;
	for (size_t i = 0; v && i < t->victim_count; i++) {
		const uint16_t slot = t->victims[i].slot;

		/* It may have been evicted or sampled since. */
		if (has_rows(&t->state[slot]))
			v[(*ret_count)++] = victim_of(t, slot);
	}
	return v;
}

/* Returns the words that are free, or will be after the grace period. */
static uint64_t room(const struct tables *t)
{
	return t->waiting_words + free_words(t);
}

/* Returns, for each owner of n victims, how many words or rules it holds above its share of `all`.
 * Memory that waits for the grace period cannot be evicted, so it does not count. The caller frees
 * the array. NULL: no memory. */
static uint64_t *spare_of_owners(const struct tables *t, const struct victim *v, size_t n,
				 uint32_t taker, enum tables_resource what, uint64_t all)
{
	const struct tables_ledger *l = t->ledger;
	uint64_t *spare = calloc(TABLES_OWNERS, sizeof(*spare));
	const uint64_t share = spare ? l->share(l->ctx, taker, what, all) : 0;

	for (size_t i = 0; spare && i < n; i++)
		spare[v[i].owner] = numbers_less(
			l->held(l->ctx, v[i].owner, what),
			share + (what == TABLES_WORDS ? t->waiting_of[v[i].owner] : 0));
	return spare;
}

/* Evicts rows of owners who hold more than their share, for one who holds less. Returns false if
 * that would not free enough words. */
static bool take_back(struct tables *t, struct tables_taker by, struct victim *v, size_t n,
		      uint64_t lacking)
{
	const uint64_t all = numbers_less(tables_all_words(t), lacking);

	if (!t->ledger || tables_is_large(t, by.owner, TABLES_WORDS, by.all, all))
		return false;
	uint64_t *spare = spare_of_owners(t, v, n, by.owner, TABLES_WORDS, all), got = 0;
	size_t kept = spare ? victims_of_owners(v, n, by.owner, spare, true) : 0;

	free(spare);
	for (size_t i = 0; i < kept; i++)
		got += v[i].words;
	if (!kept || got < lacking)
		return false;
	got = 0;
	for (size_t i = 0; i < kept && (got < lacking || !i); i++) {
		got += v[i].words;
		tables_file_evict(t, v[i].slot);
	}
	return true;
}

/* Evicts rows to free `words`. Free memory may be fragmented, so it evicts at least one file,
 * unless freed words are already waiting. */
static void make_room(struct tables *t, struct tables_taker by, uint64_t words)
{
	const uint64_t lacking = numbers_less(words, room(t));
	size_t n;

	if (!lacking && t->waiting_words)
		return;
	struct tables_refusal *last = &t->refusals[by.owner % TABLES_REFUSALS];

	if (t->sorted && last->round == t->round && last->owner == by.owner &&
	    by.worth <= last->worth && lacking >= last->lacking)
		return;
	struct victim *v = victims_new(t, &n);
	struct victim *others = v && t->ledger ? calloc(n ? n : 1, sizeof(*v)) : NULL;

	if (others)
		memcpy(others, v, n * sizeof(*v));
	if (others && take_back(t, by, others, n, lacking)) {
		free(others);
		free(v);
		return;
	}
	free(others);
	if (v && t->ledger) {
		uint64_t *none = calloc(TABLES_OWNERS, sizeof(*none));

		n = none ? victims_of_owners(v, n, by.owner, none, false) : 0;
		free(none);
	}
	const bool known = v != NULL;

	n = known ? victims_choose(v, n, by.worth, lacking) : 0;
	for (size_t i = 0; i < n; i++)
		tables_file_evict(t, v[i].slot);
	free(v);
	if (known && !n)
		*last = (struct tables_refusal){
			.round = t->round, .worth = by.worth, .lacking = lacking, .owner = by.owner
		};
}

/* Returns how much of `kept` an owner must leave free. It grows as the owner comes closer to its
 * share. So an owner that takes and frees quickly leaves space for one that needs little. more: how
 * much it wants besides what it holds; all: what the owners share. */
static uint64_t reserve_of(const struct tables *t, uint32_t owner, enum tables_resource what,
			   uint64_t more, uint64_t all, uint64_t kept)
{
	const struct tables_ledger *l = t->ledger;
	const uint64_t held = l->held(l->ctx, owner, what) + more,
		       share = l->share(l->ctx, owner, what, numbers_less(all, kept));

	return held < share ? kept * held / share : kept;
}

/* Returns how many words this taker must leave free. Displaced rows come back only if the fair part
 * stays free. Otherwise the owner that asks for them first would hold little, and take what the
 * others need. An owner who holds little takes little, so its rows may also use what is kept for
 * mappings. */
static uint64_t spare_of(const struct tables *t, struct tables_taker by)
{
	const uint64_t fair = fair_words(t);

	if (!fair || free_words(t) >= by.all + by.spare + fair)
		return by.spare;
	if (by.displaced)
		return by.spare + fair;
	return reserve_of(t, by.owner, TABLES_WORDS, by.all, tables_all_words(t), by.spare + fair);
}

/* Evicts idle rows, so that `words` and some more are free. */
static void evict_idle(struct tables *t, uint64_t words)
{
	const uint64_t want = words + tables_all_words(t) / IDLE_PART;
	size_t n;

	if (room(t) >= want)
		return;
	struct victim *v = victims_new(t, &n);

	for (size_t i = 0; v && i < n && room(t) < want; i++)
		if (victim_is_free(&v[i]))
			tables_file_evict(t, v[i].slot);
	free(v);
}

/* Evicts rows so that `words` are free. Returns whether they are free now. Idle rows go together,
 * since each wait for the kernel takes as long. */
static bool make_room_now(struct tables *t, struct tables_taker by, uint64_t words)
{
	make_room(t, by, words);
	evict_idle(t, words);
	return room(t) >= words && tables_hurry(t) && free_words(t) >= words;
}

/* Takers that need not leave words free may use free words while slabs above the limit are
 * closed. */
static int take_words(struct tables *t, uint32_t words, uint64_t spare, struct slabs_extent *ret)
{
	return !spare || free_words(t) >= words + spare ? slabs_take(&t->slabs, words, ret)
							: SLABS_FULL;
}

int tables_take(struct tables *t, uint32_t words, struct tables_taker by, struct slabs_extent *ret)
{
	const uint64_t spare = spare_of(t, by);
	int r = take_words(t, words, spare, ret);

	if (r == SLABS_FULL && make_room_now(t, by, by.all + spare))
		r = take_words(t, words, spare, ret);
	if (r == SLABS_FULL)
		tables_refuse(t, by.owner, TABLES_WORDS);
	return r == SLABS_FULL ? TABLES_FULL : r;
}

static struct tables_taker rows_taker(const struct tables *t, const struct table_file *f)
{
	return (struct tables_taker){ .spare = tables_spare_words(t),
				      .worth = tables_file_score(f, t->now_ns),
				      .all = numbers_less(f->words, extents_words(&f->extents)),
				      .owner = f->owner,
				      .displaced = f->displaced };
}

static int rows_take(struct tables *t, uint16_t slot, uint32_t words, struct slabs_extent *ret)
{
	struct table_file *f = &t->state[slot];
	const int r = tables_take(t, words, rows_taker(t, f), ret);

	if (!r) {
		f->held += ret->words;
		tables_hold(t, f->owner, TABLES_WORDS, ret->words);
	}
	return r;
}

static int by_age(const void *a, const void *b)
{
	const struct victim *l = a, *r = b;

	return l->touched_ns < r->touched_ns ? -1 : l->touched_ns > r->touched_ns;
}

/* Evicts files to free `need` numbers of rules: files of owners who hold more than their share,
 * those not sampled for longest first. Of the taker's own files only idle ones are evicted, since
 * others would come back at once. */
static void make_rules(struct tables *t, uint32_t taker, uint64_t need)
{
	const uint64_t all = numbers_less(TABLES_MAX_RULES - TABLES_MAX_RULES / FAIR_PART, need);
	size_t n;
	struct victim *v = t->ledger ? victims_new(t, &n) : NULL;
	uint64_t *spare = v ? spare_of_owners(t, v, n, taker, TABLES_RULES, all) : NULL;

	if (spare)
		qsort(v, n, sizeof(*v), by_age);
	for (size_t i = 0, got = 0; spare && i < n && got < need; i++) {
		uint64_t *rest = &spare[v[i].owner];

		if (!*rest || (v[i].owner == taker && !v[i].idle))
			continue;
		const uint32_t freed = tables_file_evict(t, v[i].slot);

		got += freed;
		*rest -= freed < *rest ? freed : *rest;
	}
	free(spare);
	free(v);
}

/* Returns how many numbers of rules are free, or will be after the grace period. */
static uint32_t rules_coming(const struct tables *t)
{
	return TABLES_MAX_RULES - 1 - (uint32_t)t->rules.count;
}

static void keep_rules(struct tables *t)
{
	const uint32_t fair = TABLES_MAX_RULES / FAIR_PART;

	if (rules_coming(t) < fair)
		make_rules(t, TABLES_NOBODY, fair - rules_coming(t));
	/* Otherwise an owner that holds little waits for the grace period. */
	if (t->ledger && rules_free(&t->rules) < fair)
		(void)tables_hurry(t);
}

/* Evicts rows of owners who hold more than their share, so that there is space for the others. */
static void keep_fair_room(struct tables *t)
{
	const uint64_t keep = tables_spare_words(t) + fair_words(t);
	size_t n;

	if (!t->ledger || room(t) >= keep)
		return;
	const uint64_t lacking = keep - room(t);
	struct victim *v = victims_new(t, &n);
	uint64_t got = 0, *spare = v ? spare_of_owners(t, v, n, TABLES_NOBODY, TABLES_WORDS,
						       numbers_less(tables_all_words(t), keep))
				     : NULL;

	n = spare ? victims_of_owners(v, n, TABLES_NOBODY, spare, true) : 0;
	for (size_t i = 0; i < n && got < lacking; i++) {
		got += v[i].words;
		tables_file_evict(t, v[i].slot);
	}
	free(spare);
	free(v);
}

void tables_keep_room(struct tables *t)
{
	keep_rules(t);
	keep_fair_room(t);
	evict_idle(t, 0);
}

uint64_t tables_useful(const struct tables *t)
{
	uint64_t idle = 0;

	for (uint32_t i = 1; i < t->next_slot; i++) {
		const struct table_file *f = &t->state[i];

		if (f->state == TABLES_FILE_READY && tables_file_is_idle(t, f))
			idle += f->words * sizeof(uint32_t);
	}
	return t->slabs.bytes_used > idle ? t->slabs.bytes_used - idle : 0;
}

uint64_t tables_lacking(const struct tables *t, uint64_t *ret_all)
{
	uint64_t words = 0, all = 0;

	for (uint32_t i = 1; i < t->next_slot; i++) {
		const struct table_file *f = &t->state[i];

		if (f->state != TABLES_FILE_EVICTED)
			continue;
		all += f->words;
		if (t->now_ns - f->touched_ns < TABLES_IDLE_NS && tables_file_score(f, t->now_ns))
			words += f->words;
	}
	*ret_all = all * sizeof(uint32_t);
	return words * sizeof(uint32_t);
}

bool tables_fit(const struct tables *t, uint64_t bytes)
{
	return free_words(t) >= bytes / sizeof(uint32_t) + tables_spare_words(t) + fair_words(t);
}

uint64_t tables_rows_bytes(uint64_t span, uint64_t rows)
{
	if (span > UNWIND_MAX_SPAN || rows > UNWIND_MAX_ROWS)
		return 0;
	return ((span >> TABLES_BLOCK_SHIFT) + 1) * sizeof(struct block_entry) +
	       rows * sizeof(uint32_t);
}

uint64_t tables_file_needs(const struct tables *t, uint16_t slot)
{
	const struct table_file *f = &t->state[slot];

	return tables_slot_live(t, slot) && (f->state == TABLES_FILE_EVICTED || f->resting) &&
			       t->now_ns >= f->again_ns
		       ? f->words * sizeof(uint32_t)
		       : 0;
}

bool tables_file_again(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	if (!tables_slot_live(t, slot) || (f->state != TABLES_FILE_EVICTED && !f->resting) ||
	    t->now_ns < f->again_ns)
		return false;
	f->again_ns = t->now_ns + TABLES_AGAIN_NS;
	const struct tables_taker by = rows_taker(t, f);
	const uint64_t words = f->words + spare_of(t, by);

	if (f->resting && words > free_words(t)) {
		f->resting = false;
		f->lacking = true;
		tables_file_set_state(t, slot, TABLES_FILE_EVICTED);
	}
	if (words > tables_all_words(t))
		return false;
	/* The rows can come once the memory that was evicted for them is free. */
	if (words > free_words(t) && !make_room_now(t, by, words))
		return false;
	f->resting = false;
	return true;
}

/* --- rows as they arrive --- */

void tables_rows_abort(struct tables *t, uint16_t slot)
{
	if (!tables_slot_live(t, slot) || !t->state[slot].in)
		return;
	tables_file_drop_incoming(t, slot);
	tables_file_drop_rows(t, slot);
}

bool tables_rows_coming(const struct tables *t, uint16_t slot)
{
	return tables_slot_live(t, slot) && t->state[slot].in;
}

static int rows_fail(struct tables *t, uint16_t slot, int why)
{
	tables_rows_abort(t, slot);
	return why;
}

/* Converts a verdict of incoming.h to that of tables.h. */
static int incoming_status(int r)
{
	return r == INCOMING_BAD ? TABLES_BAD_ROWS : r;
}

/* Returns the file whose rows are arriving, or NULL. */
static struct table_file *file_coming(struct tables *t, uint16_t slot)
{
	return tables_slot_live(t, slot) && t->state[slot].in ? &t->state[slot] : NULL;
}

/* Whether a file may take this many rules now. As in spare_of, some numbers must stay free. */
static bool rules_suffice(const struct tables *t, const struct table_file *f, uint64_t rules)
{
	const uint32_t fair = TABLES_MAX_RULES / FAIR_PART, free = rules_free(&t->rules);

	if (!t->ledger || free >= rules + fair)
		return true;
	if (f->displaced)
		return false;
	const uint64_t reserve = reserve_of(t, f->owner, TABLES_RULES, rules, TABLES_MAX_RULES,
					    fair);

	return reserve < fair && free >= rules + reserve;
}

/* Whether a file may take this many rules. If not at once, evicts files, and waits for the kernel
 * as make_room_now does. */
static bool rules_fit(struct tables *t, const struct table_file *f, uint64_t rules)
{
	if (rules_suffice(t, f, rules))
		return true;
	make_rules(t, f->owner,
		   numbers_less(rules + TABLES_MAX_RULES / FAIR_PART, rules_coming(t)));
	if (tables_hurry(t) && rules_suffice(t, f, rules))
		return true;
	tables_refuse(t, f->owner, TABLES_RULES);
	return false;
}

int tables_rows_begin(struct tables *t, uint16_t slot, uint64_t base, uint64_t span, uint64_t rows,
		      uint64_t rules)
{
	if (!tables_slot_live(t, slot) || t->state[slot].state != TABLES_FILE_PENDING ||
	    t->state[slot].in)
		return TABLES_BAD_ROWS;
	if (base & ((1u << TABLES_BLOCK_SHIFT) - 1) || base >> (TABLES_BLOCK_SHIFT + 31))
		return TABLES_BAD_ROWS;

	struct table_file *f = &t->state[slot];
	int r = incoming_status(incoming_new(span, rows, rules, &f->in));
	if (r)
		return r;
	f->rules = calloc(rules, sizeof(*f->rules));
	if (!f->rules)
		return rows_fail(t, slot, -ENOMEM);

	struct slabs_extent index;
	uint32_t blocks;
	(void)incoming_index(f->in, &blocks);
	f->words = (uint64_t)blocks * 2 + rows;
	/* Only a part of the rows would be of no use, but displace others meanwhile. */
	const struct tables_taker by = rows_taker(t, f);
	const uint64_t words = f->words + spare_of(t, by);
	if (free_words(t) < words && !make_room_now(t, by, words)) {
		tables_refuse(t, f->owner, TABLES_WORDS);
		return rows_fail(t, slot, TABLES_FULL);
	}
	f->lacks_rules = !rules_fit(t, f, rules);
	if (f->lacks_rules)
		return rows_fail(t, slot, TABLES_FULL);
	r = rows_take(t, slot, blocks * 2, &index);
	if (r)
		return rows_fail(t, slot, r);
	r = slabs_extents_insert(&f->extents, 0, index);
	if (r) {
		slabs_release(&t->slabs, index);
		return rows_fail(t, slot, r);
	}
	tables_file_at(t, slot)->index = index.position;
	tables_file_at(t, slot)->first_block = (uint32_t)(base >> TABLES_BLOCK_SHIFT);
	tables_file_at(t, slot)->blocks = blocks;
	return 0;
}

int tables_rows_rules(struct tables *t, uint16_t slot, const struct unwind_rule *r, size_t n)
{
	struct table_file *f = file_coming(t, slot);

	if (!f)
		return TABLES_BAD_ROWS;
	if (n > incoming_rules_left(f->in))
		return rows_fail(t, slot, TABLES_BAD_ROWS);
	for (size_t i = 0; i < n; i++) {
		struct unwind_rule rule;
		uint32_t number;
		bool new;

		memcpy(&rule, &r[i], sizeof(rule));
		if (!unwind_rule_valid(&rule))
			return rows_fail(t, slot, TABLES_BAD_ROWS);
		int v = rules_take(&t->rules, &rule, f->owner, &number, &new);
		if (v == RULES_FULL) {
			const uint64_t rest = incoming_rules_left(f->in);

			f->lacks_rules = true;
			tables_refuse(t, f->owner, TABLES_RULES);
			rows_fail(t, slot, TABLES_FULL);
			make_rules(t, f->owner, rest);
			return TABLES_FULL;
		}
		if (v)
			return rows_fail(t, slot, v);
		tables_hold(t, f->owner, TABLES_RULES, new);
		if (!(number & TABLES_RULE_SHORT))
			f->rules[f->rule_count++] = number;
		incoming_rule(f->in, number);
	}
	return 0;
}

/* Moves complete blocks into slabs, each extent as large as a slab allows. */
static int flush_blocks(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];
	const uint32_t *from;
	uint32_t words;

	for (words = incoming_peek(f->in, TABLES_SLAB_WORDS / 4, &from); words > 0;
	     words = incoming_peek(f->in, TABLES_SLAB_WORDS / 4, &from)) {
		struct slabs_extent e;
		int r = rows_take(t, slot, words, &e);
		if (r)
			return r;
		r = slabs_extents_insert(&f->extents, f->extents.len, e);
		if (r) {
			slabs_release(&t->slabs, e);
			return r;
		}
		uint32_t *to = slabs_at(&t->slabs, e.position, words);
		if (!to)
			return -ENOMEM;
		memcpy(to, from, words * sizeof(*to));
		incoming_placed(f->in, words, e.position);
	}
	return 0;
}

int tables_rows_chunk(struct tables *t, uint16_t slot, const struct unwind_row_wire *rows, size_t n)
{
	struct table_file *f = file_coming(t, slot);

	if (!f)
		return TABLES_BAD_ROWS;
	int r = incoming_status(incoming_rows(f->in, rows, n));
	if (!r)
		r = flush_blocks(t, slot);
	return r ? rows_fail(t, slot, r) : 0;
}

int tables_rows_end(struct tables *t, uint16_t slot)
{
	struct table_file *f = file_coming(t, slot);
	uint64_t rows;
	uint32_t blocks;

	if (!f)
		return TABLES_BAD_ROWS;
	int r = incoming_status(incoming_end(f->in, &rows));
	if (!r)
		r = flush_blocks(t, slot);
	if (r)
		return rows_fail(t, slot, r);
	const struct block_entry *index = incoming_index(f->in, &blocks);
	uint32_t *to = slabs_at(&t->slabs, tables_file_at(t, slot)->index, blocks * 2);
	if (!to)
		return rows_fail(t, slot, -ENOMEM);
	memcpy(to, index, blocks * sizeof(*index));
	f->rows = rows;
	t->figures.rows += f->rows;
	tables_file_drop_incoming(t, slot);
	f->touched_ns = t->now_ns;
	f->lacking = f->displaced = f->lacks_rules = false;
	tables_file_set_state(t, slot, TABLES_FILE_READY);
	return 0;
}
