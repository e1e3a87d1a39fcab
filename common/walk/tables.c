/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <uthash.h>
#include "bpf/env.h"
#include "common/walk/array.h"
#include "common/walk/incoming.h"
#include "common/walk/rules.h"
#include "common/walk/slabs.h"
#include "common/walk/tables.h"
#include "common/walk/victims.h"

#define SLABS_TICK_NS 1000000000u
#define SCORE_SHIFT 32 /* of nanoseconds: scores are halved every 4 s */
#define UNMAPPED_SHIFT 4
#define IDLE_NS 10000000000ull /* of who was not sampled for so long the score is no matter */
#define AGAIN_NS 1000000000ull /* between two looks whether rows are worth their room by now */
#define SPARE_PART \
	16 /* of all room, which rows leave: without its mappings a process has no stacks */
#define DROPPED_AT_ONCE 2
#define IDLE_PART 8	   /* of all room, that idle rows leave as well */
#define LARGE_WORDS 16384u /* an array of mappings of so many is a large one: 2,048 of them */
/* Of all room, for large ones: of processes that were sampled of late, and when all are counted. A
 * large one that is published again and again is there many times, until the grace periods are
 * over. */
#define LARGE_PART 2
#define LARGE_IDLE_PART 8

struct table_file {
	uint8_t state; /* enum file_state, as in the map */
	uint32_t serial;
	bool unmapped;
	bool lacking;	/* rows went for want of memory, and have not come again */
	bool resting;	/* FILE_PENDING: nobody used its rows, and they are not asked for yet */
	uint32_t score; /* samples, of late; as of the period scored_at */
	uint64_t scored_at;
	uint64_t again_ns; /* FILE_EVICTED: its rows are not asked for before */
	uint64_t words;	   /* of its rows and index, as far as that is known */
	uint64_t touched_ns, rows;
	struct extents extents; /* index and rows */
	uint32_t *rules;	/* distinct rule numbers that it holds a count on */
	uint32_t rule_count;
	struct incoming *in;
	struct runtime_config *runtime; /* owned; NULL: it holds none */
	struct extent runtime_extent;
};

struct table_process {
	uint32_t pid;
	uint64_t touched_ns; /* by a sample; 0: never */
	struct process_entry entry;
	struct extent maps;
	UT_hash_handle hh;
};

/* Freed, and waiting for the grace period. */
struct waiting {
	enum { WAITING_EXTENT, WAITING_SLOT, WAITING_RULE } what;
	struct extent extent;
	bool mappings;	 /* of the extent: they were in it */
	uint32_t number; /* of a slot or a rule */
	uint64_t since_ns;
};

struct tables {
	struct tables_config config;
	struct slabs slabs;
	struct waiting *waiting;
	size_t waiting_len, waiting_head, waiting_cap;
	size_t waiting_new; /* so many, the last of them, were freed since the last tick */
	uint64_t waiting_words;
	uint64_t large_words;	  /* of large arrays of mappings, those that wait included */
	struct array files;	  /* of struct file_entry, by slot */
	struct table_file *state; /* likewise */
	uint16_t *free_slots;
	uint32_t free_slot_count, next_slot;
	struct rules rules;
	struct table_process *processes;
	void *walk_maps; /* a slab of our own memory, or NULL */
	uint32_t generation, serial;
	uint64_t now_ns, slabs_ns; /* when the slabs were looked after last */
	struct tables_figures figures;
};

/* Who takes words. */
struct taker {
	uint64_t spare; /* words that it leaves to others */
	uint64_t worth; /* samples: the rows of files with less than half of that may go for it */
	uint64_t all;	/* words, with those that it takes next */
};
#define WORTH_ANY UINT64_MAX

static void make_room(struct tables *t, uint64_t worth, uint64_t words);
static void keep_room(struct tables *t);
static void hand_back(struct tables *t);
static uint32_t score(const struct table_file *f, uint64_t now_ns);

static uint64_t all_words(const struct tables *t)
{
	return (uint64_t)t->slabs.max * SLAB_WORDS;
}

static uint64_t free_words(const struct tables *t)
{
	const uint64_t most = (uint64_t)t->slabs.max * SLAB_BYTES;

	return most > t->slabs.bytes_used ? (most - t->slabs.bytes_used) / sizeof(uint32_t) : 0;
}

/* What rows leave to mappings. */
static uint64_t spare_words(const struct tables *t)
{
	return all_words(t) / SPARE_PART;
}

/* Takes words of one slab. TABLES_FULL: something is evicted, where that is worth it, for a later
 * try to find. */
static int extent_take(struct tables *t, uint32_t words, struct taker by, struct extent *ret)
{
	/* Who leaves nothing has what is free also while the slabs above the ceiling go. */
	int r = !by.spare || free_words(t) >= words + by.spare ? slabs_take(&t->slabs, words, ret)
							       : SLABS_FULL;

	if (r == SLABS_FULL)
		make_room(t, by.worth, by.all + by.spare);
	return r == SLABS_FULL ? TABLES_FULL : r;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t extents_words(const struct extents *x)
{
	uint64_t words = 0;

	for (size_t i = 0; i < x->len; i++)
		words += x->data[i].words;
	return words;
}

static int rows_take(struct tables *t, uint16_t slot, uint32_t words, struct extent *ret)
{
	const struct table_file *f = &t->state[slot];

	return extent_take(t, words,
			   (struct taker){ .spare = spare_words(t),
					   .worth = score(f, t->now_ns),
					   .all = less(f->words, extents_words(&f->extents)) },
			   ret);
}

static bool is_large(const struct extent *e)
{
	return e->words >= LARGE_WORDS;
}

/* For mappings of p; NULL: of a process that is new. A few take the place of any rows. Many do so
 * for samples of their process alone, and have a part of the room. */
static int maps_take(struct tables *t, const struct table_process *p, uint32_t words,
		     struct extent *ret)
{
	const bool idle = !p || !p->touched_ns || t->now_ns > p->touched_ns + IDLE_NS;
	const uint64_t most = all_words(t) / (idle ? LARGE_IDLE_PART : LARGE_PART);
	struct taker by = { .worth = WORTH_ANY, .all = words };

	if (words >= LARGE_WORDS) {
		if (t->large_words + words > most)
			return TABLES_FULL;
		by.spare = spare_words(t);
		by.worth = idle ? 0 : WORTH_ANY;
	}
	const int r = extent_take(t, words, by, ret);

	if (!r && is_large(ret))
		t->large_words += ret->words;
	return r;
}

/* Nobody has seen them. */
static void maps_release(struct tables *t, struct extent e)
{
	if (is_large(&e))
		t->large_words -= e.words;
	slabs_release(&t->slabs, e);
}

static void wait_put(struct tables *t, struct waiting w)
{
	if (t->waiting_len == t->waiting_cap) {
		/* Room is made at the front before it is made at the back. */
		if (t->waiting_head > t->waiting_cap / 2) {
			memmove(t->waiting, t->waiting + t->waiting_head,
				(t->waiting_len - t->waiting_head) * sizeof(*t->waiting));
			t->waiting_len -= t->waiting_head;
			t->waiting_head = 0;
		} else {
			size_t cap = t->waiting_cap ? t->waiting_cap * 2 : 64;
			struct waiting *p = reallocarray(t->waiting, cap, sizeof(*p));

			if (!p)
				return; /* never used again: safe, and bounded by the tables */
			t->waiting = p;
			t->waiting_cap = cap;
		}
	}
	t->waiting[t->waiting_len++] = w;
	t->waiting_new++;
}

static void wait_extent(struct tables *t, struct extent e)
{
	t->waiting_words += e.words;
	if (e.words)
		wait_put(t, (struct waiting){ .what = WAITING_EXTENT, .extent = e });
}

static void wait_maps(struct tables *t, struct extent e)
{
	t->waiting_words += e.words;
	if (e.words)
		wait_put(t,
			 (struct waiting){ .what = WAITING_EXTENT, .extent = e, .mappings = true });
}

void tables_tick(struct tables *t, uint64_t now_ns)
{
	t->now_ns = now_ns;
	/* Samples up to now were drained. What was freed since the last tick was freed at some time
	 * before now; how long before, a clock that stood still meanwhile does not say. */
	for (; t->waiting_new; t->waiting_new--)
		t->waiting[t->waiting_len - t->waiting_new].since_ns = now_ns;
	while (t->waiting_head < t->waiting_len) {
		struct waiting *w = &t->waiting[t->waiting_head];

		if (now_ns - w->since_ns < TABLES_GRACE_NS && now_ns >= w->since_ns)
			break;
		if (w->what == WAITING_RULE)
			rules_reuse(&t->rules, w->number);
		else if (w->what == WAITING_SLOT)
			t->free_slots[t->free_slot_count++] = (uint16_t)w->number;
		else {
			t->waiting_words -= w->extent.words;
			if (w->mappings)
				maps_release(t, w->extent);
			else
				slabs_release(&t->slabs, w->extent);
		}
		t->waiting_head++;
	}
	if (t->waiting_head == t->waiting_len)
		t->waiting_head = t->waiting_len = 0;
	/* The tools have memory that was theirs at once. */
	hand_back(t);
	if (now_ns < t->slabs_ns + SLABS_TICK_NS && now_ns >= t->slabs_ns)
		return;
	t->slabs_ns = now_ns;
	keep_room(t);
	slabs_tick(&t->slabs);
}

/* --- files --- */

static struct file_entry *file_at(struct tables *t, uint16_t slot)
{
	return (struct file_entry *)t->files.data + slot;
}

static void file_drop_rows(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	for (size_t i = 0; i < f->extents.len; i++)
		wait_extent(t, f->extents.data[i]);
	free(f->extents.data);
	f->extents = (struct extents){ 0 };
	for (uint32_t i = 0; i < f->rule_count; i++) {
		if (rules_drop(&t->rules, f->rules[i]))
			wait_put(t,
				 (struct waiting){ .what = WAITING_RULE, .number = f->rules[i] });
	}
	free(f->rules);
	f->rules = NULL;
	f->rule_count = 0;
	t->figures.rows -= f->rows;
	f->rows = 0;
}

static void file_set_state(struct tables *t, uint16_t slot, enum file_state state)
{
	t->state[slot].state = (uint8_t)state;
	__atomic_store_n(&file_at(t, slot)->state, (uint32_t)state, __ATOMIC_RELEASE);
}

static void incoming_drop(struct tables *t, uint16_t slot)
{
	incoming_free(t->state[slot].in);
	t->state[slot].in = NULL;
}

static void runtime_drop(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	if (!f->runtime)
		return;
	wait_extent(t, f->runtime_extent);
	free(f->runtime);
	f->runtime = NULL;
}

static bool slot_live(const struct tables *t, uint16_t slot)
{
	return slot > 0 && slot < TABLES_MAX_FILES && t->state[slot].state != FILE_FREE;
}

int tables_file_new(struct tables *t, uint16_t *ret_slot)
{
	uint16_t slot;

	if (t->free_slot_count)
		slot = t->free_slots[--t->free_slot_count];
	else if (t->next_slot < TABLES_MAX_FILES)
		slot = (uint16_t)t->next_slot++;
	else
		return TABLES_FULL;
	int r = array_reach(&t->files, (slot + 1) * sizeof(struct file_entry));
	if (r) {
		t->free_slots[t->free_slot_count++] = slot;
		return r;
	}
	t->state[slot] = (struct table_file){ .touched_ns = t->now_ns, .serial = ++t->serial };
	file_set_state(t, slot, FILE_PENDING);
	t->figures.files++;
	*ret_slot = slot;
	return 0;
}

void tables_file_free(struct tables *t, uint16_t slot)
{
	if (!slot_live(t, slot))
		return;
	file_set_state(t, slot, FILE_FREE);
	incoming_drop(t, slot);
	file_drop_rows(t, slot);
	runtime_drop(t, slot);
	t->figures.files--;
	wait_put(t, (struct waiting){ .what = WAITING_SLOT, .number = slot });
}

void tables_file_none(struct tables *t, uint16_t slot)
{
	if (!slot_live(t, slot))
		return;
	file_set_state(t, slot, FILE_NO_ROWS);
	t->state[slot].lacking = t->state[slot].resting = false;
	incoming_drop(t, slot);
	file_drop_rows(t, slot);
}

void tables_file_touch(struct tables *t, uint16_t slot, uint64_t now_ns)
{
	if (!slot_live(t, slot))
		return;
	struct table_file *f = &t->state[slot];

	if (f->touched_ns == now_ns)
		return; /* another frame of the same sample */
	f->unmapped = false;
	f->score = score(f, now_ns) + 1;
	f->scored_at = now_ns >> SCORE_SHIFT > f->scored_at ? now_ns >> SCORE_SHIFT : f->scored_at;
	f->touched_ns = now_ns;
}

void tables_file_unmapped(struct tables *t, uint16_t slot)
{
	if (slot_live(t, slot))
		t->state[slot].unmapped = true;
}

uint32_t tables_file_serial(const struct tables *t, uint16_t slot)
{
	return slot_live(t, slot) ? t->state[slot].serial : 0;
}

enum file_state tables_file_state(const struct tables *t, uint16_t slot)
{
	return slot_live(t, slot) ? t->state[slot].state : FILE_FREE;
}

bool tables_file_lacks(const struct tables *t, uint16_t slot)
{
	return slot_live(t, slot) && t->state[slot].lacking;
}

void tables_file_pending(struct tables *t, uint16_t slot)
{
	if (slot_live(t, slot) &&
	    (t->state[slot].state == FILE_EVICTED || t->state[slot].state == FILE_NO_ROWS))
		file_set_state(t, slot, FILE_PENDING);
}

/* How often a file was sampled of late. */
static uint32_t score(const struct table_file *f, uint64_t now_ns)
{
	const uint64_t period = now_ns >> SCORE_SHIFT,
		       age = period > f->scored_at ? period - f->scored_at : 0;

	return age < 32 ? f->score >> age >> (f->unmapped ? UNMAPPED_SHIFT : 0) : 0;
}

/* Whether its rows are of no use to anybody, as far as that is known: nobody maps it, or it was not
 * sampled for long. */
static bool is_idle(const struct tables *t, const struct table_file *f)
{
	return f->unmapped || (t->now_ns > f->touched_ns && t->now_ns - f->touched_ns > IDLE_NS);
}

/* Those that have rows, in the order in which they go. NULL: none, or no memory. */
static struct victim *victims_new(const struct tables *t, size_t *ret_count)
{
	struct victim *v = calloc(t->next_slot, sizeof(*v));

	*ret_count = 0;
	for (uint32_t i = 1; v && i < t->next_slot; i++) {
		const struct table_file *f = &t->state[i];

		if (f->state != FILE_READY || !f->extents.len)
			continue;
		const bool idle = is_idle(t, f);

		v[(*ret_count)++] =
			(struct victim){ .slot = (uint16_t)i,
					 .idle = idle,
					 .samples = idle && !f->unmapped ? 0 : score(f, t->now_ns),
					 .touched_ns = f->touched_ns,
					 .words = extents_words(&f->extents) };
	}
	if (v)
		victims_sort(v, *ret_count);
	return v;
}

/* Words that are free, or will be after the grace period. */
static uint64_t room(const struct tables *t)
{
	return t->waiting_words + free_words(t);
}

static void evict(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	/* Who runs again waits for its rows, as for those of a new file: nothing is cut. */
	f->resting = is_idle(t, f);
	f->lacking = !f->resting;
	file_set_state(t, slot, f->resting ? FILE_PENDING : FILE_EVICTED);
	f->again_ns = f->resting ? t->now_ns : t->now_ns + AGAIN_NS;
	file_drop_rows(t, slot);
	t->figures.evictions++;
}

/* What is free may lie in pieces too small: one goes in any case, but where others are on their
 * way.
 */
static void make_room(struct tables *t, uint64_t worth, uint64_t words)
{
	const uint64_t lacking = less(words, room(t));
	size_t n;

	if (!lacking && t->waiting_words)
		return;
	struct victim *v = victims_new(t, &n);

	n = v ? victims_choose(v, n, worth, lacking) : 0;
	for (size_t i = 0; i < n; i++)
		evict(t, v[i].slot);
	free(v);
}

/* Rows that nobody uses go before others need their room, since that has to wait for the grace
 * period. */
static void keep_room(struct tables *t)
{
	size_t n;

	if (room(t) >= all_words(t) / IDLE_PART)
		return;
	const uint64_t lacking = all_words(t) / IDLE_PART - room(t);
	struct victim *v = victims_new(t, &n);
	uint64_t got = 0;

	for (size_t i = 0; v && i < n && got < lacking; i++) {
		if (!victim_is_free(&v[i]))
			continue;
		got += v[i].words;
		evict(t, v[i].slot);
	}
	free(v);
}

static bool is_closing(const struct tables *t, const struct table_file *f)
{
	for (size_t i = 0; i < f->extents.len; i++) {
		if (slabs_closing(&t->slabs, f->extents.data[i]))
			return true;
	}
	return false;
}

/* Which slab goes when there are too many: that whose files were sampled least of late. What a
 * runtime's config lies in stays, since processes name its position. -1: none can. */
static int vacated(const struct tables *t)
{
	uint64_t samples[SLAB_MAX] = { 0 };
	bool stays[SLAB_MAX] = { false };
	int ret = -1;

	for (uint32_t i = 1; i < t->next_slot; i++) {
		const struct table_file *f = &t->state[i];

		for (size_t k = 0; k < f->extents.len; k++)
			samples[f->extents.data[k].position >> SLAB_WORDS_SHIFT] +=
				score(f, t->now_ns);
		if (f->runtime)
			stays[f->runtime_extent.position >> SLAB_WORDS_SHIFT] = true;
	}
	for (uint32_t i = 0; i < t->slabs.top; i++) {
		if (t->slabs.slot[i].data && !t->slabs.slot[i].closing && !stays[i] &&
		    (ret < 0 || samples[i] <= samples[ret]))
			ret = (int)i;
	}
	return ret;
}

/* Copies the mappings of all processes that lie in closing slabs into others. The old ones stay for
 * whoever reads them now. */
static void move_processes(struct tables *t)
{
	struct table_process *p, *next;

	HASH_ITER(hh, t->processes, p, next) {
		struct extent e;

		if (!p->maps.words || !slabs_closing(&t->slabs, p->maps) ||
		    maps_take(t, p, p->maps.words, &e))
			continue;
		const uint32_t *from = slabs_at(&t->slabs, p->maps.position, p->maps.words);
		uint32_t *copy = malloc(p->maps.words * sizeof(*copy)), *to = NULL;

		if (from && copy) {
			memcpy(copy, from, p->maps.words * sizeof(*copy));
			to = slabs_at(&t->slabs, e.position, e.words);
		}
		if (to) {
			struct process_entry entry = p->entry;

			memcpy(to, copy, p->maps.words * sizeof(*copy));
			entry.maps = e.position;
			if (t->config.processes_fd >= 0 &&
			    bpf_map_update_elem(t->config.processes_fd, &p->pid, &entry, BPF_EXIST))
				to = NULL;
			else
				p->entry = entry;
		}
		free(copy);
		wait_maps(t, to ? p->maps : e);
		if (to)
			p->maps = e;
	}
}

/* What waits in a slab that goes now does not wait any more. */
static void forget_waiting(struct tables *t, uint32_t slab)
{
	for (size_t i = t->waiting_head; i < t->waiting_len; i++) {
		struct waiting *w = &t->waiting[i];

		if (w->what != WAITING_EXTENT || !w->extent.words ||
		    w->extent.position >> SLAB_WORDS_SHIFT != slab)
			continue;
		t->waiting_words -= w->extent.words;
		if (w->mappings && is_large(&w->extent))
			t->large_words -= w->extent.words;
		w->extent.words = 0;
	}
}

/* Closing slabs in which nothing lives go at once: the kernel frees one when no walk can read it
 * any more, and a walk that comes later finds none. Not many: each waits for the kernel. */
static void drop_closing(struct tables *t)
{
	uint32_t words[SLAB_MAX] = { 0 };
	int dropped = 0;

	for (size_t i = t->waiting_head; i < t->waiting_len; i++) {
		const struct waiting *w = &t->waiting[i];

		if (w->what == WAITING_EXTENT)
			words[w->extent.position >> SLAB_WORDS_SHIFT] += w->extent.words;
	}
	for (uint32_t i = 0; i < t->slabs.top && dropped < DROPPED_AT_ONCE; i++) {
		if (!slabs_drop_closing(&t->slabs, i, words[i]))
			continue;
		forget_waiting(t, i);
		dropped++;
	}
}

/* Hands back the slabs that are above the ceiling: what lies in them goes, or moves. Rows that are
 * just coming go when they are all there. */
static void hand_back(struct tables *t)
{
	int slab;

	while (slabs_excess(&t->slabs) && (slab = vacated(t)) >= 0)
		slabs_close(&t->slabs, (uint32_t)slab);
	if (!t->slabs.closing)
		return;
	for (uint32_t i = 1; i < t->next_slot; i++) {
		if (t->state[i].state == FILE_READY && is_closing(t, &t->state[i]))
			evict(t, (uint16_t)i);
	}
	move_processes(t);
	drop_closing(t);
}

void tables_limit(struct tables *t, size_t max_bytes)
{
	slabs_limit(&t->slabs, (uint32_t)(max_bytes / SLAB_BYTES < SLAB_MAX ? max_bytes / SLAB_BYTES
									    : SLAB_MAX));
}

uint64_t tables_useful(const struct tables *t)
{
	uint64_t idle = 0;

	for (uint32_t i = 1; i < t->next_slot; i++) {
		const struct table_file *f = &t->state[i];

		if (f->state == FILE_READY && is_idle(t, f))
			idle += f->words * sizeof(uint32_t);
	}
	return t->slabs.bytes_used > idle ? t->slabs.bytes_used - idle : 0;
}

uint64_t tables_lacking(const struct tables *t, uint64_t *ret_all)
{
	uint64_t words = 0, all = 0;

	for (uint32_t i = 1; i < t->next_slot; i++) {
		const struct table_file *f = &t->state[i];

		if (f->state != FILE_EVICTED)
			continue;
		all += f->words;
		if (t->now_ns - f->touched_ns < IDLE_NS && score(f, t->now_ns))
			words += f->words;
	}
	*ret_all = all * sizeof(uint32_t);
	return words * sizeof(uint32_t);
}

bool tables_fit(const struct tables *t, uint64_t bytes)
{
	return free_words(t) >= bytes / sizeof(uint32_t) + spare_words(t);
}

uint64_t tables_rows_bytes(uint64_t span, uint64_t rows)
{
	if (span > UNWIND_MAX_SPAN || rows > UNWIND_MAX_ROWS)
		return 0;
	return ((span >> BLOCK_SHIFT) + 1) * sizeof(struct block_entry) + rows * sizeof(uint32_t);
}

void tables_file_full(struct tables *t, uint16_t slot)
{
	if (!slot_live(t, slot))
		return;
	struct table_file *f = &t->state[slot];

	tables_file_none(t, slot);
	file_set_state(t, slot, FILE_EVICTED);
	f->lacking = true;
	f->resting = false;
	f->again_ns = t->now_ns + TABLES_GRACE_NS + AGAIN_NS;
}

uint64_t tables_file_needs(const struct tables *t, uint16_t slot)
{
	const struct table_file *f = &t->state[slot];

	return slot_live(t, slot) && (f->state == FILE_EVICTED || f->resting) &&
			       t->now_ns >= f->again_ns
		       ? f->words * sizeof(uint32_t)
		       : 0;
}

bool tables_file_again(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	if (!slot_live(t, slot) || (f->state != FILE_EVICTED && !f->resting) ||
	    t->now_ns < f->again_ns)
		return false;
	f->again_ns = t->now_ns + AGAIN_NS;
	const uint64_t words = f->words + spare_words(t);

	if (f->resting && words > free_words(t)) {
		f->resting = false;
		f->lacking = true;
		file_set_state(t, slot, FILE_EVICTED);
	}
	if (words > all_words(t))
		return false;
	/* They come when what goes for them is gone. */
	if (words > free_words(t))
		make_room(t, score(f, t->now_ns), words);
	if (words > free_words(t))
		return false;
	f->resting = false;
	return true;
}

/* --- rows as they come --- */

void tables_rows_abort(struct tables *t, uint16_t slot)
{
	if (!slot_live(t, slot) || !t->state[slot].in)
		return;
	incoming_drop(t, slot);
	file_drop_rows(t, slot);
}

static int rows_fail(struct tables *t, uint16_t slot, int why)
{
	tables_rows_abort(t, slot);
	return why;
}

/* What incoming.h says, as tables.h does. */
static int incoming_status(int r)
{
	return r == INCOMING_BAD ? TABLES_BAD_ROWS : r;
}

/* The file whose rows are coming, or NULL. */
static struct table_file *file_coming(struct tables *t, uint16_t slot)
{
	return slot_live(t, slot) && t->state[slot].in ? &t->state[slot] : NULL;
}

int tables_rows_begin(struct tables *t, uint16_t slot, uint64_t base, uint64_t span, uint64_t rows,
		      uint64_t rules)
{
	if (!slot_live(t, slot) || t->state[slot].state != FILE_PENDING || t->state[slot].in)
		return TABLES_BAD_ROWS;
	if (base & ((1u << BLOCK_SHIFT) - 1) || base >> (BLOCK_SHIFT + 31))
		return TABLES_BAD_ROWS;

	struct table_file *f = &t->state[slot];
	int r = incoming_status(incoming_new(span, rows, rules, &f->in));
	if (r)
		return r;
	f->rules = calloc(rules, sizeof(*f->rules));
	if (!f->rules)
		return rows_fail(t, slot, -ENOMEM);

	struct extent index;
	uint32_t blocks;
	(void)incoming_index(f->in, &blocks);
	f->words = (uint64_t)blocks * 2 + rows;
	/* Half of them would help nobody, and take the place of others meanwhile. */
	if (!tables_fit(t, f->words * sizeof(uint32_t))) {
		make_room(t, score(f, t->now_ns), f->words + spare_words(t));
		return rows_fail(t, slot, TABLES_FULL);
	}
	r = rows_take(t, slot, blocks * 2, &index);
	if (r)
		return rows_fail(t, slot, r);
	r = extents_insert(&f->extents, 0, index);
	if (r) {
		slabs_release(&t->slabs, index);
		return rows_fail(t, slot, r);
	}
	file_at(t, slot)->index = index.position;
	file_at(t, slot)->first_block = (uint32_t)(base >> BLOCK_SHIFT);
	file_at(t, slot)->blocks = blocks;
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

		memcpy(&rule, &r[i], sizeof(rule));
		if (!unwind_rule_valid(&rule))
			return rows_fail(t, slot, TABLES_BAD_ROWS);
		int v = rules_take(&t->rules, &rule, &number);
		if (v)
			return rows_fail(t, slot, v == RULES_FULL ? TABLES_FULL : v);
		if (!(number & RULE_SHORT))
			f->rules[f->rule_count++] = number;
		incoming_rule(f->in, number);
	}
	return 0;
}

/* Moves what blocks are whole into slabs, each extent as large as a slab allows. */
static int flush_blocks(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];
	const uint32_t *from;
	uint32_t words;

	while ((words = incoming_peek(f->in, SLAB_WORDS / 4, &from)) > 0) {
		struct extent e;
		int r = rows_take(t, slot, words, &e);
		if (r)
			return r;
		r = extents_insert(&f->extents, f->extents.len, e);
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
	uint32_t *to = slabs_at(&t->slabs, file_at(t, slot)->index, blocks * 2);
	if (!to)
		return rows_fail(t, slot, -ENOMEM);
	memcpy(to, index, blocks * sizeof(*index));
	f->rows = rows;
	t->figures.rows += f->rows;
	incoming_drop(t, slot);
	f->touched_ns = t->now_ns;
	f->lacking = false;
	file_set_state(t, slot, FILE_READY);
	return 0;
}

/* --- processes --- */

static void put_maps(struct map_entry *to, const struct tables_mapping *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (struct map_entry){ .start = m[i].start,
					    .end = m[i].end,
					    .bias = m[i].start - m[i].offset,
					    .slot = m[i].slot };
}

/* A config is read as a unit: it begins at a multiple of its size. */
static uint32_t config_position(struct extent e)
{
	return (e.position + RUNTIME_CONFIG_WORDS - 1) & ~(RUNTIME_CONFIG_WORDS - 1);
}

int tables_file_runtime(struct tables *t, uint16_t slot, const struct runtime_config *c)
{
	struct extent e;
	struct runtime_config *copy;
	uint32_t *to;

	if (!slot_live(t, slot))
		return -EINVAL;
	int r = extent_take(t, 2 * RUNTIME_CONFIG_WORDS,
			    (struct taker){ .worth = WORTH_ANY, .all = 2 * RUNTIME_CONFIG_WORDS },
			    &e);
	if (r)
		return r;
	to = slabs_at(&t->slabs, config_position(e), RUNTIME_CONFIG_WORDS);
	copy = malloc(sizeof(*copy));
	if (!to || !copy) {
		slabs_release(&t->slabs, e);
		free(copy);
		return -ENOMEM;
	}
	memcpy(to, c, sizeof(*c));
	*copy = *c;
	runtime_drop(t, slot);
	t->state[slot].runtime = copy;
	t->state[slot].runtime_extent = e;
	return 0;
}

const struct runtime_config *tables_runtime(const struct tables *t, uint16_t slot)
{
	return slot_live(t, slot) ? t->state[slot].runtime : NULL;
}

/* The runtimes among the files of mappings, each once. How many. */
static size_t find_runtimes(const struct tables *t, const struct tables_mapping *m, size_t n,
			    struct runtime_entry ret[static PROCESS_RUNTIMES_MAX])
{
	size_t found = 0;

	for (size_t i = 0; i < n && found < PROCESS_RUNTIMES_MAX; i++) {
		const struct table_file *f = &t->state[m[i].slot];
		bool again = false;

		if (!m[i].slot || !f->runtime)
			continue;
		for (size_t j = 0; j < found; j++)
			again |= ret[j].config == config_position(f->runtime_extent);
		if (!again)
			ret[found++] = (struct runtime_entry){
				.base = m[i].start - m[i].offset,
				.config = config_position(f->runtime_extent),
				.runtime = f->runtime->runtime,
				.slot = m[i].slot,
			};
	}
	return found;
}

int tables_process_set(struct tables *t, uint32_t pid, uint64_t start_ns, uint64_t heard_ns,
		       const struct tables_mapping *m, size_t n, bool selected,
		       uint32_t *ret_generation)
{
	struct runtime_entry runtimes[PROCESS_RUNTIMES_MAX];
	size_t runtime_count = find_runtimes(t, m, n, runtimes);
	struct table_process *p;
	struct extent e = { 0 };

	if (n > TABLES_MAX_MAPPINGS)
		return TABLES_FULL;
	HASH_FIND(hh, t->processes, &pid, sizeof(pid), p);
	if (!p && HASH_CNT(hh, t->processes) >= TABLES_MAX_PROCESSES)
		return TABLES_FULL;
	if (n) {
		int r = maps_take(t, p, (uint32_t)(n + runtime_count) * 8, &e);

		if (r)
			return r;
		struct map_entry *to = (struct map_entry *)slabs_at(&t->slabs, e.position, e.words);
		if (!to) {
			maps_release(t, e);
			return -ENOMEM;
		}
		put_maps(to, m, n);
		memcpy(to + n, runtimes, runtime_count * sizeof(*runtimes));
	}
	struct process_entry entry = {
		.start_ns = start_ns,
		.heard_ns = heard_ns,
		.maps = e.position,
		.map_count = (uint32_t)n,
		.flags = (selected ? PROCESS_SELECTED : 0) | (uint32_t)runtime_count
								     << PROCESS_RUNTIMES_SHIFT,
	};
	t->generation = t->generation == UINT32_MAX ? 1 : t->generation + 1;
	entry.generation = t->generation;
	if (t->config.processes_fd >= 0) {
		int r = bpf_map_update_elem(t->config.processes_fd, &pid, &entry, BPF_ANY);

		if (r < 0) {
			maps_release(t, e);
			return r == -E2BIG ? TABLES_FULL : r;
		}
	}
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p) {
			wait_maps(t, e);
			return -ENOMEM;
		}
		p->pid = pid;
		HASH_ADD(hh, t->processes, pid, sizeof(p->pid), p);
		t->figures.processes++;
	} else {
		wait_maps(t, p->maps);
	}
	p->entry = entry;
	p->maps = e;
	*ret_generation = entry.generation;
	return 0;
}

void tables_process_touch(struct tables *t, uint32_t pid, uint64_t now_ns)
{
	struct table_process *p;

	HASH_FIND(hh, t->processes, &pid, sizeof(pid), p);
	if (p)
		p->touched_ns = now_ns;
}

bool tables_process_start(const struct tables *t, uint32_t pid, uint64_t *ret_start_ns)
{
	struct process_entry entry;

	if (t->config.processes_fd < 0 ||
	    bpf_map_lookup_elem(t->config.processes_fd, &pid, &entry) != 0)
		return false;
	*ret_start_ns = entry.start_ns;
	return true;
}

void tables_process_drop(struct tables *t, uint32_t pid)
{
	struct table_process *p;

	/* The kernel's hook may have entered a child that user space never published. */
	if (t->config.processes_fd >= 0)
		(void)bpf_map_delete_elem(t->config.processes_fd, &pid);
	HASH_FIND(hh, t->processes, &pid, sizeof(pid), p);
	if (!p)
		return;
	HASH_DEL(t->processes, p);
	wait_maps(t, p->maps);
	free(p);
	t->figures.processes--;
}

void tables_figures(const struct tables *t, struct tables_figures *ret)
{
	*ret = t->figures;
	ret->rules = t->rules.count;
	ret->bytes = t->slabs.bytes;
	ret->bytes_used = t->slabs.bytes_used;
}

/* A slab for a walk in user space. Number SLAB_MAX is not in the map: it holds the mappings of the
 * walk at hand. */
static const struct slab *walk_slab(void *ctx, uint32_t position, uint32_t words)
{
	struct tables *t = ctx;
	uint32_t i = position >> SLAB_WORDS_SHIFT;

	if (i == SLAB_MAX)
		return t->walk_maps;
	if (i >= t->slabs.top || !t->slabs.slot[i].data)
		return NULL;
	uint32_t *at = slabs_at(&t->slabs, position, words);
	return at ? (const struct slab *)(at - (position & (SLAB_WORDS - 1))) : NULL;
}

void tables_env(struct tables *t, struct env *ret)
{
	ret->slab = walk_slab;
	ret->tables = t;
	ret->files = t->files.data;
	ret->rules = t->rules.array.data;
}

int tables_walk_maps(struct tables *t, const struct tables_mapping *m, size_t n,
		     struct process_entry *ret)
{
	if (n > TABLES_MAX_MAPPINGS)
		return TABLES_FULL;
	/* Its pages are taken as they are written: a few, mostly. */
	if (!t->walk_maps)
		t->walk_maps = calloc(1, SLAB_BYTES);
	if (!t->walk_maps)
		return -ENOMEM;
	put_maps((struct map_entry *)t->walk_maps, m, n);
	*ret = (struct process_entry){ .maps = SLAB_MAX << SLAB_WORDS_SHIFT,
				       .map_count = (uint32_t)n,
				       .generation = 1 };
	return 0;
}

/* --- all of it --- */

int tables_new(const struct tables_config *c, struct tables **ret)
{
	struct tables *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->config = *c;
	t->next_slot = 1;
	t->state = calloc(TABLES_MAX_FILES, sizeof(*t->state));
	t->free_slots = calloc(TABLES_MAX_FILES, sizeof(*t->free_slots));
	int r = t->state && t->free_slots ? 0 : -ENOMEM;
	if (!r)
		r = array_init(&t->files, c->files_fd,
			       sizeof(struct file_entry) * TABLES_MAX_FILES);
	if (!r)
		r = rules_init(&t->rules, c->rules_fd);
	size_t slabs = c->max_bytes / SLAB_BYTES;
	slabs = slabs < 1 ? 1 : slabs > SLAB_MAX ? SLAB_MAX : slabs;
	if (!r)
		r = slabs_init(&t->slabs, c->slabs_fd, (uint32_t)slabs);
	if (r) {
		tables_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	slabs_done(&t->slabs);
	for (uint32_t i = 1; t->state && i < t->next_slot; i++) {
		incoming_free(t->state[i].in);
		free(t->state[i].extents.data);
		free(t->state[i].rules);
		free(t->state[i].runtime);
	}
	struct table_process *p, *p_next;
	HASH_ITER(hh, t->processes, p, p_next) {
		HASH_DEL(t->processes, p);
		free(p);
	}
	array_done(&t->files);
	rules_done(&t->rules);
	free(t->walk_maps);
	free(t->waiting);
	free(t->state);
	free(t->free_slots);
	free(t);
}
