/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <uthash.h>
#include "bpf/env.h"
#include "common/clock.h"
#include "tools/prof-bpf/slabs.h"
#include "tools/prof-bpf/tables.h"

#define SLABS_TICK_NS 1000000000u

struct rule_count {
	struct unwind_rule rule; /* key */
	uint32_t number, files;	 /* how many files use it */
	UT_hash_handle hh;
};

/* What came of a file's rows so far. */
struct incoming {
	uint32_t *rule_numbers; /* of the sender's rules */
	struct extent index;
	struct block_entry *blocks;  /* the index being made: block_count of them */
	uint32_t block_count, block; /* the one being filled */
	uint32_t rules_wanted, rules_seen;
	uint64_t rows_wanted, rows_seen, span;
	uint32_t last_offset;
	uint16_t rule;	/* in force at the end of what was packed */
	uint32_t *pack; /* words of finished blocks of this chunk, then of the unfinished one */
	size_t pack_len, pack_cap;
	size_t block_start; /* where the unfinished block begins in pack */
};

struct table_file {
	uint8_t state; /* enum file_state, as in the map */
	uint32_t serial;
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
	struct process_entry entry;
	struct extent maps;
	UT_hash_handle hh;
};

/* Freed, and waiting for the grace period: an extent, or a slot (words 0), or a rule (words
 * UINT32_MAX). */
struct waiting {
	struct extent e;
	uint64_t since_ns;
};

struct tables {
	struct tables_config config;
	struct slabs slabs;
	struct waiting *waiting;
	size_t waiting_len, waiting_head, waiting_cap;
	struct file_entry *files;	   /* the map, its front mapped */
	char *rules;			   /* RULE_STRIDE apart; the same */
	size_t files_mapped, rules_mapped; /* bytes */
	struct table_file *state;	   /* by slot */
	uint16_t *free_slots;
	uint32_t free_slot_count, next_slot;
	struct rule_count *rule_hash;
	uint32_t *free_rules;
	uint32_t free_rule_count, next_rule;
	struct rule_count **rule_by_number;
	struct table_process *processes;
	void *walk_maps; /* a slab of our own memory, or NULL */
	uint32_t generation, serial;
	uint64_t now_ns, slabs_ns; /* when the slabs were looked after last */
	struct tables_figures figures;
};

static int evict_one(struct tables *t);

/* Maps the front of an array, at least so many bytes of it: what the kernel has of it counts for
 * us, too, once it is mapped. */
static int array_reach(int fd, void *at, size_t *mapped, size_t bytes)
{
	size_t wanted = *mapped ? *mapped : SLAB_PAGE;

	if (fd < 0 || bytes <= *mapped)
		return 0;
	while (wanted < bytes)
		wanted *= 2;
	if (mmap(at, wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return -errno;
	*mapped = wanted;
	return 0;
}

/* Takes words of one slab. TABLES_FULL evicts something, for a later try to find. */
static int extent_take(struct tables *t, uint32_t words, struct extent *ret)
{
	int r = slabs_take(&t->slabs, words, ret);

	if (r == SLABS_FULL)
		(void)evict_one(t);
	return r == SLABS_FULL ? TABLES_FULL : r;
}

static void wait_free(struct tables *t, struct extent e)
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
	t->waiting[t->waiting_len++] = (struct waiting){ .e = e, .since_ns = t->now_ns };
}

static void rule_release(struct tables *t, uint32_t number)
{
	struct rule_count *c = t->rule_by_number[number];

	if (number == RULE_GAP || !c || --c->files)
		return;
	HASH_DEL(t->rule_hash, c);
	t->rule_by_number[number] = NULL;
	free(c);
	t->figures.rules--;
	wait_free(t, (struct extent){ .position = number, .words = UINT32_MAX });
}

void tables_tick(struct tables *t, uint64_t now_ns)
{
	t->now_ns = now_ns;
	while (t->waiting_head < t->waiting_len) {
		struct waiting *w = &t->waiting[t->waiting_head];

		if (now_ns - w->since_ns < TABLES_GRACE_NS && now_ns >= w->since_ns)
			break;
		if (w->e.words == UINT32_MAX)
			t->free_rules[t->free_rule_count++] = w->e.position;
		else if (w->e.words == 0)
			t->free_slots[t->free_slot_count++] = (uint16_t)w->e.position;
		else
			slabs_release(&t->slabs, w->e);
		t->waiting_head++;
	}
	if (t->waiting_head == t->waiting_len)
		t->waiting_head = t->waiting_len = 0;
	if (now_ns < t->slabs_ns + SLABS_TICK_NS && now_ns >= t->slabs_ns)
		return;
	t->slabs_ns = now_ns;
	slabs_tick(&t->slabs);
}

/* --- rules --- */

static struct unwind_rule *rule_slot(struct tables *t, uint32_t number)
{
	return (struct unwind_rule *)(t->rules + (size_t)number * RULE_STRIDE);
}

/* How many words below the CFA something is saved, or 8: nothing that a short rule says. */
static uint32_t words_below(int32_t off)
{
	return off < 0 && off > -64 && off % 8 == 0 ? (uint32_t)(-off / 8) : 8;
}

/* The number that says a whole rule (RULE_SHORT), or 0. */
static uint32_t rule_short(const struct unwind_rule *r)
{
	uint32_t rbp = r->rbp == UNWIND_RBP_CFA ? words_below(r->rbp_off) : 0;

	if (r->cfa != UNWIND_CFA_REG || r->ra != UNWIND_RA_CFA || r->flags & UNWIND_SIGNAL_FRAME ||
	    (r->cfa_reg != UNWIND_REG_RSP && r->cfa_reg != UNWIND_REG_RBP) ||
	    (r->rbp != UNWIND_RBP_CFA && r->rbp != UNWIND_RBP_SAME) || rbp > 7 || r->rbx > 7 ||
	    r->cfa_off < 0 || r->cfa_off > 255 * 8 || r->cfa_off % 8)
		return 0;
	return RULE_SHORT | (r->cfa_reg == UNWIND_REG_RBP ? RULE_SHORT_RBP : 0) |
	       (uint32_t)r->cfa_off / 8 << 6 | rbp << 3 | r->rbx;
}

/* Short rules are not counted, and need not be released. */
static int rule_intern(struct tables *t, const struct unwind_rule *rule, uint32_t *ret_number)
{
	struct rule_count *c;

	*ret_number = rule_short(rule);
	if (*ret_number)
		return 0;
	HASH_FIND(hh, t->rule_hash, rule, sizeof(*rule), c);
	if (!c) {
		uint32_t number;

		if (t->free_rule_count)
			number = t->free_rules[t->free_rule_count - 1];
		else if (t->next_rule < TABLES_MAX_RULES)
			number = t->next_rule;
		else
			return TABLES_FULL;
		int r = array_reach(t->config.rules_fd, t->rules, &t->rules_mapped,
				    (number + 1) * (size_t)RULE_STRIDE);
		c = r ? NULL : calloc(1, sizeof(*c));
		if (!c)
			return r ? r : -ENOMEM;
		if (t->free_rule_count)
			t->free_rule_count--;
		else
			t->next_rule++;
		c->rule = *rule;
		c->number = number;
		HASH_ADD(hh, t->rule_hash, rule, sizeof(c->rule), c);
		t->rule_by_number[number] = c;
		*rule_slot(t, number) = *rule;
		t->figures.rules++;
	}
	c->files++;
	*ret_number = c->number;
	return 0;
}

/* --- files --- */

static void file_drop_rows(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	for (size_t i = 0; i < f->extents.len; i++)
		wait_free(t, f->extents.data[i]);
	free(f->extents.data);
	f->extents = (struct extents){ 0 };
	for (uint32_t i = 0; i < f->rule_count; i++)
		rule_release(t, f->rules[i]);
	free(f->rules);
	f->rules = NULL;
	f->rule_count = 0;
	t->figures.rows -= f->rows;
	f->rows = 0;
}

static void file_set_state(struct tables *t, uint16_t slot, enum file_state state)
{
	t->state[slot].state = (uint8_t)state;
	__atomic_store_n(&t->files[slot].state, (uint32_t)state, __ATOMIC_RELEASE);
}

static void incoming_free(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	if (!f->in)
		return;
	free(f->in->rule_numbers);
	free(f->in->blocks);
	free(f->in->pack);
	free(f->in);
	f->in = NULL;
}

static void runtime_drop(struct tables *t, uint16_t slot)
{
	struct table_file *f = &t->state[slot];

	if (!f->runtime)
		return;
	wait_free(t, f->runtime_extent);
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
	int r = array_reach(t->config.files_fd, t->files, &t->files_mapped,
			    (slot + 1) * sizeof(*t->files));
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
	incoming_free(t, slot);
	file_drop_rows(t, slot);
	runtime_drop(t, slot);
	t->figures.files--;
	wait_free(t, (struct extent){ .position = slot, .words = 0 });
}

void tables_file_none(struct tables *t, uint16_t slot)
{
	if (!slot_live(t, slot))
		return;
	file_set_state(t, slot, FILE_NO_ROWS);
	incoming_free(t, slot);
	file_drop_rows(t, slot);
}

void tables_file_touch(struct tables *t, uint16_t slot, uint64_t now_ns)
{
	if (slot_live(t, slot))
		t->state[slot].touched_ns = now_ns;
}

uint32_t tables_file_serial(const struct tables *t, uint16_t slot)
{
	return slot_live(t, slot) ? t->state[slot].serial : 0;
}

enum file_state tables_file_state(const struct tables *t, uint16_t slot)
{
	return slot_live(t, slot) ? t->state[slot].state : FILE_FREE;
}

void tables_file_pending(struct tables *t, uint16_t slot)
{
	if (slot_live(t, slot) && t->state[slot].state == FILE_EVICTED)
		file_set_state(t, slot, FILE_PENDING);
}

/* Drops the rows of the file that was sampled longest ago. -ENOENT when there is none. */
static int evict_one(struct tables *t)
{
	uint16_t oldest = 0;

	for (uint32_t i = 1; i < t->next_slot; i++) {
		if (t->state[i].state == FILE_READY && t->state[i].extents.len &&
		    (!oldest || t->state[i].touched_ns < t->state[oldest].touched_ns))
			oldest = (uint16_t)i;
	}
	if (!oldest)
		return -ENOENT;
	file_set_state(t, oldest, FILE_EVICTED);
	file_drop_rows(t, oldest);
	t->figures.evictions++;
	return 0;
}

/* --- rows as they come --- */

void tables_rows_abort(struct tables *t, uint16_t slot)
{
	if (!slot_live(t, slot) || !t->state[slot].in)
		return;
	incoming_free(t, slot);
	file_drop_rows(t, slot);
}

static int rows_fail(struct tables *t, uint16_t slot, int why)
{
	tables_rows_abort(t, slot);
	return why;
}

int tables_rows_begin(struct tables *t, uint16_t slot, uint64_t base, uint64_t span, uint64_t rows,
		      uint64_t rules)
{
	if (!slot_live(t, slot) || t->state[slot].state != FILE_PENDING || t->state[slot].in)
		return TABLES_BAD_ROWS;
	if (base & ((1u << BLOCK_SHIFT) - 1) || base >> (BLOCK_SHIFT + 31) || span == 0 ||
	    span > UNWIND_MAX_SPAN || rows == 0 || rows > UNWIND_MAX_ROWS || rules == 0 ||
	    rules > UNWIND_MAX_RULES)
		return TABLES_BAD_ROWS;

	struct table_file *f = &t->state[slot];
	struct incoming *in = f->in = calloc(1, sizeof(*in));
	if (!in)
		return -ENOMEM;
	in->span = span;
	in->block_count = (uint32_t)((span + (1u << BLOCK_SHIFT) - 1) >> BLOCK_SHIFT);
	in->rows_wanted = rows;
	in->rules_wanted = (uint32_t)rules;
	in->rule = RULE_GAP;
	in->rule_numbers = calloc(rules, sizeof(*in->rule_numbers));
	in->blocks = calloc(in->block_count, sizeof(*in->blocks));
	f->rules = calloc(rules, sizeof(*f->rules));
	if (!in->rule_numbers || !in->blocks || !f->rules)
		return rows_fail(t, slot, -ENOMEM);
	int r = extent_take(t, in->block_count * 2, &in->index);
	if (r)
		return rows_fail(t, slot, r);
	r = extents_insert(&f->extents, 0, in->index);
	if (r) {
		slabs_release(&t->slabs, in->index);
		return rows_fail(t, slot, r);
	}
	t->files[slot].index = in->index.position;
	t->files[slot].first_block = (uint32_t)(base >> BLOCK_SHIFT);
	t->files[slot].blocks = in->block_count;
	return 0;
}

int tables_rows_rules(struct tables *t, uint16_t slot, const struct unwind_rule *r, size_t n)
{
	struct table_file *f = slot_live(t, slot) ? &t->state[slot] : NULL;

	if (!f || !f->in)
		return TABLES_BAD_ROWS;
	struct incoming *in = f->in;
	if (n > in->rules_wanted - in->rules_seen)
		return rows_fail(t, slot, TABLES_BAD_ROWS);
	for (size_t i = 0; i < n; i++) {
		struct unwind_rule rule;
		uint32_t number;

		memcpy(&rule, &r[i], sizeof(rule));
		if (!unwind_rule_valid(&rule))
			return rows_fail(t, slot, TABLES_BAD_ROWS);
		int v = rule_intern(t, &rule, &number);
		if (v)
			return rows_fail(t, slot, v);
		if (!(number & RULE_SHORT))
			f->rules[f->rule_count++] = number;
		in->rule_numbers[in->rules_seen++] = number;
	}
	return 0;
}

static int pack_word(struct incoming *in, uint32_t word)
{
	if (in->pack_len == in->pack_cap) {
		size_t cap = in->pack_cap ? in->pack_cap * 2 : 8192;
		uint32_t *p = reallocarray(in->pack, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		in->pack = p;
		in->pack_cap = cap;
	}
	in->pack[in->pack_len++] = word;
	return 0;
}

/* The unfinished block is whole: its entry counts its words, whose position is still relative to
 * pack. */
static void close_block(struct incoming *in)
{
	in->blocks[in->block].rows = (uint32_t)in->block_start;
	in->blocks[in->block].count = (uint16_t)(in->pack_len - in->block_start);
	in->block_start = in->pack_len;
	in->block++;
}

/* Moves the whole blocks [first, in->block) of pack into slabs, each extent as large as a slab
 * allows. */
static int flush_blocks(struct tables *t, struct table_file *f, uint32_t first)
{
	struct incoming *in = f->in;

	while (first < in->block) {
		uint32_t from = in->blocks[first].rows, last = first, words = 0;

		while (last < in->block && words + in->blocks[last].count <= SLAB_WORDS / 4) {
			words += in->blocks[last].count;
			last++;
		}
		struct extent e;
		int r = extent_take(t, words, &e);
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
		memcpy(to, in->pack + from, words * sizeof(*to));
		for (uint32_t i = first; i < last; i++)
			in->blocks[i].rows += e.position - from;
		first = last;
	}
	/* What is left is the unfinished block. */
	memmove(in->pack, in->pack + in->block_start,
		(in->pack_len - in->block_start) * sizeof(*in->pack));
	in->pack_len -= in->block_start;
	in->block_start = 0;
	return 0;
}

/* Goes on to the block of `offset`, each block on the way beginning with the rule in force. */
static int advance_to(struct incoming *in, uint32_t block)
{
	while (in->block < block) {
		if (in->pack_len == in->block_start) {
			int r = pack_word(in, in->rule);

			if (r)
				return r;
		}
		close_block(in);
	}
	return 0;
}

int tables_rows_chunk(struct tables *t, uint16_t slot, const struct unwind_row_wire *rows, size_t n)
{
	struct table_file *f = slot_live(t, slot) ? &t->state[slot] : NULL;

	if (!f || !f->in)
		return TABLES_BAD_ROWS;
	struct incoming *in = f->in;
	if (in->rules_seen != in->rules_wanted || n > in->rows_wanted - in->rows_seen)
		return rows_fail(t, slot, TABLES_BAD_ROWS);

	uint32_t first = in->block;
	for (size_t i = 0; i < n; i++) {
		struct unwind_row_wire row;

		memcpy(&row, &rows[i], sizeof(row));
		if (row.rule >= in->rules_wanted || row.offset >= in->span ||
		    (in->rows_seen && row.offset <= in->last_offset))
			return rows_fail(t, slot, TABLES_BAD_ROWS);
		in->rows_seen++;
		in->last_offset = row.offset;
		int r = advance_to(in, row.offset >> BLOCK_SHIFT);
		if (r)
			return rows_fail(t, slot, r);
		uint32_t in_block = row.offset & ((1u << BLOCK_SHIFT) - 1);
		if (in_block && in->pack_len == in->block_start)
			r = pack_word(in, in->rule);
		in->rule = (uint16_t)in->rule_numbers[row.rule];
		if (!r)
			r = pack_word(in, in_block << 16 | in->rule);
		if (r)
			return rows_fail(t, slot, r);
	}
	int r = flush_blocks(t, f, first);
	return r ? rows_fail(t, slot, r) : 0;
}

int tables_rows_end(struct tables *t, uint16_t slot)
{
	struct table_file *f = slot_live(t, slot) ? &t->state[slot] : NULL;

	if (!f || !f->in)
		return TABLES_BAD_ROWS;
	struct incoming *in = f->in;
	if (in->rows_seen != in->rows_wanted)
		return rows_fail(t, slot, TABLES_BAD_ROWS);
	uint32_t first = in->block;
	int r = advance_to(in, in->block_count);
	if (!r)
		r = flush_blocks(t, f, first);
	if (r)
		return rows_fail(t, slot, r);
	uint32_t *to = slabs_at(&t->slabs, in->index.position, in->block_count * 2);
	if (!to)
		return rows_fail(t, slot, -ENOMEM);
	memcpy(to, in->blocks, in->block_count * sizeof(*in->blocks));
	f->rows = in->rows_seen;
	t->figures.rows += f->rows;
	incoming_free(t, slot);
	f->touched_ns = t->now_ns;
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
	int r = extent_take(t, 2 * RUNTIME_CONFIG_WORDS, &e);
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
			};
	}
	return found;
}

int tables_process_set(struct tables *t, uint32_t pid, uint64_t start_ns,
		       const struct tables_mapping *m, size_t n, bool selected,
		       uint32_t *ret_generation)
{
	struct runtime_entry runtimes[PROCESS_RUNTIMES_MAX];
	size_t runtime_count = find_runtimes(t, m, n, runtimes);
	struct table_process *p;
	struct extent e = { 0 };

	if (n > SLAB_WORDS / 8 - PROCESS_RUNTIMES_MAX)
		return TABLES_FULL;
	HASH_FIND(hh, t->processes, &pid, sizeof(pid), p);
	if (!p && HASH_CNT(hh, t->processes) >= TABLES_MAX_PROCESSES)
		return TABLES_FULL;
	if (n) {
		int r = extent_take(t, (uint32_t)(n + runtime_count) * 8, &e);

		if (r)
			return r;
		struct map_entry *to = (struct map_entry *)slabs_at(&t->slabs, e.position, e.words);
		if (!to) {
			slabs_release(&t->slabs, e);
			return -ENOMEM;
		}
		put_maps(to, m, n);
		memcpy(to + n, runtimes, runtime_count * sizeof(*runtimes));
	}
	struct process_entry entry = {
		.start_ns = start_ns,
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
			slabs_release(&t->slabs, e);
			return r == -E2BIG ? TABLES_FULL : r;
		}
	}
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p) {
			wait_free(t, e);
			return -ENOMEM;
		}
		p->pid = pid;
		HASH_ADD(hh, t->processes, pid, sizeof(p->pid), p);
		t->figures.processes++;
	} else if (p->maps.words) {
		wait_free(t, p->maps);
	}
	p->entry = entry;
	p->maps = e;
	*ret_generation = entry.generation;
	return 0;
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
	if (p->maps.words)
		wait_free(t, p->maps);
	free(p);
	t->figures.processes--;
}

void tables_figures(const struct tables *t, struct tables_figures *ret)
{
	*ret = t->figures;
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
	if (i >= t->slabs.count)
		return NULL;
	uint32_t *at = slabs_at(&t->slabs, position, words);
	return at ? (const struct slab *)(at - (position & (SLAB_WORDS - 1))) : NULL;
}

void tables_env(struct tables *t, struct env *ret)
{
	ret->slab = walk_slab;
	ret->tables = t;
	ret->files = t->files;
	ret->rules = t->rules;
}

int tables_walk_maps(struct tables *t, const struct tables_mapping *m, size_t n,
		     struct process_entry *ret)
{
	if (n > SLAB_WORDS / 8)
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

/* Address space for all of it; pages of the map come with array_reach. */
static int array_reserve(int fd, size_t bytes, void **ret)
{
	if (fd < 0) {
		*ret = calloc(1, bytes);
		return *ret ? 0 : -ENOMEM;
	}
	*ret = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (*ret == MAP_FAILED) {
		*ret = NULL;
		return -errno;
	}
	return 0;
}

int tables_new(const struct tables_config *c, struct tables **ret)
{
	struct tables *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->config = *c;
	size_t slabs = c->max_bytes / SLAB_BYTES;

	slabs = slabs < 1 ? 1 : slabs > SLAB_MAX ? SLAB_MAX : slabs;
	t->next_slot = 1;
	t->next_rule = RULE_GAP + 1;
	t->state = calloc(TABLES_MAX_FILES, sizeof(*t->state));
	t->free_slots = calloc(TABLES_MAX_FILES, sizeof(*t->free_slots));
	t->free_rules = calloc(TABLES_MAX_RULES, sizeof(*t->free_rules));
	t->rule_by_number = calloc(TABLES_MAX_RULES, sizeof(*t->rule_by_number));
	r = t->state && t->free_slots && t->free_rules && t->rule_by_number ? 0 : -ENOMEM;
	if (!r)
		r = array_reserve(c->files_fd, sizeof(*t->files) * TABLES_MAX_FILES,
				  (void **)&t->files);
	if (!r)
		r = array_reserve(c->rules_fd, (size_t)RULE_STRIDE * TABLES_MAX_RULES,
				  (void **)&t->rules);
	if (!r)
		r = array_reach(c->rules_fd, t->rules, &t->rules_mapped, RULE_STRIDE);
	if (r) {
		tables_free(t);
		return r;
	}
	*rule_slot(t, RULE_GAP) = (struct unwind_rule){ .cfa = UNWIND_CFA_END,
							.cfa_add = UNWIND_END_GAP };
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
		incoming_free(t, (uint16_t)i);
		free(t->state[i].extents.data);
		free(t->state[i].rules);
		free(t->state[i].runtime);
	}
	struct rule_count *c, *c_next;
	HASH_ITER(hh, t->rule_hash, c, c_next) {
		HASH_DEL(t->rule_hash, c);
		free(c);
	}
	struct table_process *p, *p_next;
	HASH_ITER(hh, t->processes, p, p_next) {
		HASH_DEL(t->processes, p);
		free(p);
	}
	if (t->config.files_fd < 0)
		free(t->files);
	else if (t->files)
		munmap(t->files, sizeof(*t->files) * TABLES_MAX_FILES);
	if (t->config.rules_fd < 0)
		free(t->rules);
	else if (t->rules)
		munmap(t->rules, (size_t)RULE_STRIDE * TABLES_MAX_RULES);
	free(t->walk_maps);
	free(t->waiting);
	free(t->state);
	free(t->free_slots);
	free(t->free_rules);
	free(t->rule_by_number);
	free(t);
}
