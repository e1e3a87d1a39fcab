/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/derive/derive_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"
#include "common/rows/derive/candidate.h"
#include "common/rows/derive/taken_addresses.h"
#include "common/rows/x86/linear_code.h"

#define CODE_MAX (FLOW_MAX_CODE - DERIVE_BACK)
#define LOOK 4096u /* bytes searched for padding */
/* Limit of work, as flow_work counts it: this much for each byte of the gaps, and a minimum. Wrong
 * guesses overlap, so they cost extra. Compiled code takes 2 to 4 per byte. */
#define WORK_PER_BYTE 16ull
#define WORK_MIN (1u << 20)
/* A file keeps frame pointers if it has this many functions, and this percentage of them do. */
#define FRAMED_MIN 2000
#define FRAMED_SHARE 90ull
/* A file is foreign, with code that C mostly does not call, if it has this many foreign places, and
 * at least one for this many functions. */
#define FOREIGN_MIN 32
#define FOREIGN_SHARE 8
/* With this many foreign places, a file counts as foreign before the whole file is read. */
#define FOREIGN_PLAIN 256
/* Guesses are looked at until so many more were wrong than right; one that is right makes up for
 * this many. */
#define GUESSES 8192
#define GUESSES_FOR_ONE 128
/* If the gaps together are smaller, they hold no code worth reading symbols for. */
#define SYMBOLS_MIN 64
/* If the gaps are smaller, or their share of the code is (1/TAKEN_ADDRESSES_SHARE), the file is not
 * searched for taken addresses. */
#define TAKEN_ADDRESSES_MIN 2048
#define TAKEN_ADDRESSES_SHARE 256

static const struct unwind_rule end_rule = {
	.cfa = UNWIND_CFA_REG,
	.cfa_reg = UNWIND_REG_RSP,
	.cfa_off = 8,
	.ra = UNWIND_RA_UNDEFINED,
	.flags = UNWIND_DERIVED,
};

/* The callback flow_reader.begins. */
static bool begins(const void *ctx, int64_t at)
{
	const struct derive *d = ctx;

	return known_starts_begins(&d->known, at + d->from);
}

/* The callback flow_reader.bare. */
static bool bare(const void *ctx, int64_t at)
{
	const struct derive *d = ctx;

	at += d->from;
	return at >= 0 && at < (int64_t)d->rows->span && derive_in_gap(d, (uint32_t)at);
}

/* The callback flow_reader.endless. */
static bool endless(const void *ctx, int64_t at)
{
	const struct derive *d = ctx;

	return known_starts_endless(&d->known, at + d->from);
}

/* The callback flow_reader.read: reads the file's segments. */
static bool read_table(void *ctx, uint64_t address, void *into, uint32_t n)
{
	const struct derive *d = ctx;

	return elf_pread_at(d->fd, d->file, into, n, address);
}

/* --- known by their bytes --- */

static bool is_slot_zero(const struct derive *d, int64_t at)
{
	uint8_t bytes[24];

	if (at < 0 || at >= (int64_t)d->rows->span)
		return false;

	int64_t got = fd_pread_all(d->fd, bytes, sizeof(bytes), d->rows->base + (uint64_t)at);

	return stub_is_slot_zero(bytes, got > 0 ? (uint32_t)got : 0);
}

/* Adds the rows of a linker's stub, if there is one. *ret_used is its length, or 0. */
static int try_stub(struct derive *d, uint32_t at, const struct derive_gap *g, uint32_t *ret_used)
{
	const uint8_t *code;
	struct stub stub;
	uint32_t n;
	int r = derive_need(d, at, STUB_MAX, g->end, &code, &n);

	*ret_used = 0;
	if (r || !stub_find(code, n, rows_address(d->rows, at), &stub) ||
	    (stub.slot && !is_slot_zero(d, at + stub.zero)))
		return r;
	*ret_used = stub.used < g->end - at ? stub.used : g->end - at;
	return derive_put_pieces(d, at, stub.piece, stub.pieces);
}

/* Adds the rows of a signal restorer. The kernel sets its first byte as the return address, and the
 * walker looks up the byte before a return address. So the rows begin one byte early. */
static int try_restorer(struct derive *d, uint32_t at, const struct derive_gap *g,
			uint32_t *ret_used)
{
	struct stub_piece p = { .rule = { .cfa = UNWIND_CFA_DEREF,
					  .cfa_reg = UNWIND_REG_RSP,
					  .cfa_off = 160,
					  .flags = UNWIND_SIGNAL_FRAME | UNWIND_DERIVED } };
	const uint8_t *code;
	uint32_t n, begin = at;
	int r = derive_need(d, at, 16, g->end, &code, &n);

	*ret_used = 0;
	if (r)
		return r;
	p.len = stub_restorer(code, n);
	if (!p.len)
		return 0;
	*ret_used = p.len;
	if (begin > g->start) {
		uint8_t before;

		if (fd_pread_all(d->fd, &before, 1, d->rows->base + begin - 1) == 1 &&
		    (before == 0x90 || before == 0xcc || before == 0)) {
			begin--;
			p.len++;
		}
	}
	return derive_put_pieces(d, begin, &p, 1);
}

/* --- functions --- */

/* Notes that functions begin at these targets (offsets in the code). */
static int note_calls(struct derive *d, const int64_t *target, uint32_t n, uint32_t at)
{
	for (uint32_t i = 0; i < n; i++) {
		int64_t to = d->from + target[i];
		struct known_starts_offsets *l = &d->left_out;
		int r = 0;

		if (to < 0 || to == at || to >= (int64_t)d->rows->span ||
		    !derive_in_gap(d, (uint32_t)to))
			continue;
		if (to > at) {
			r = known_starts_call(&d->known, (uint32_t)to);
		} else if (to >= d->now->start && !derive_is_claimed(d, (uint32_t)to) &&
			   l->n < KNOWN_STARTS_MAX_CALLED) {
			r = known_starts_reserve((void **)&l->value, &l->cap, l->n + 1,
						 sizeof(*l->value));
			if (!r)
				l->value[l->n++] = (uint32_t)to;
		}
		if (r)
			return r;
	}
	return 0;
}

/* Adds rows if a function begins at the place; *ret_is tells whether one does. */
static int run_place(struct derive *d, const struct candidate *p, bool *ret_is)
{
	uint32_t before = p->at - d->now->start < DERIVE_BACK ? p->at - d->now->start : DERIVE_BACK;
	struct flow_result result = { 0 };
	struct flow_code c = { .entry = before };
	const uint8_t *code;
	int r;

	*ret_is = false;
	d->from = p->at - before;
	r = derive_need(d, d->from, before + CODE_MAX, d->now->end, &code, &c.size);
	if (r || c.size <= before)
		return r;
	c.bytes = code;
	c.address = rows_address(d->rows, d->from);
	c.end = p->size ? before + p->size : p->limit - d->from;
	if (c.end > c.size)
		c.end = c.size;
	r = candidate_look(d->flow, p, &c,
			   &(struct flow_reader){ .begins = begins, .bare = bare, .ctx = d },
			   d->budget > 0, &result);
	d->foreign += r > 0 && flow_foreign(d->flow);
	if (r)
		return r < 0 ? r : 0;
	*ret_is = true;
	r = note_calls(d, result.call, result.calls, p->at);
	code += before;
	if (!r && candidate_is_whole(d->flow, &c, &result))
		r = note_calls(d, result.jump, result.jumps, p->at);
	if (!r)
		r = known_starts_accept(&d->known, p->at, result.endless);
	d->framed += stub_bytes(code, c.size - before, stub_endbr(code, c.size - before),
				"\x55\x48\x89\xe5", 4);
	if (!r)
		r = derive_put_flow(d, c.bytes, result.low, result.end);
	/* The whole size belongs to the function, even code that no branch reaches. If the size is
	 * unknown, at least the first byte is done. */
	if (!r)
		derive_claim(d, p->at, p->at + (p->size ? p->size : 1));
	return r;
}

static int try_place(struct derive *d, const struct candidate *p, bool *ret_is)
{
	uint64_t before = flow_work(d->flow), spent;
	int r = run_place(d, p, ret_is);

	spent = flow_work(d->flow) - before;
	d->budget -= spent < d->budget ? spent : d->budget;
	return r;
}

/* Returns the first hlt from p on; NULL: there is none. */
static const uint8_t *next_hlt(const uint8_t *p, const uint8_t *end)
{
	return memchr(p, 0xf4, (size_t)(end - p));
}

/* Adds the rows where fibers' stacks end. They begin one byte early, since the walker looks up the
 * byte before a return address. */
static int put_fiber_ends(struct derive *d, const struct derive_gap *g)
{
	struct stub_piece p = { .rule = end_rule };
	uint32_t at = g->start, n, last;

	while (at < g->end) {
		const uint8_t *code, *hit;
		int r = derive_need(d, at, FLOW_MAX_CODE, g->end, &code, &n);

		if (r)
			return r;
		/* Search for the last byte of the code, which is the rarest. A match that begins in
		 * the overlap belongs to the next window. */
		last = n < FLOW_MAX_CODE ? n : n - STUB_MAX;
		for (hit = next_hlt(code, code + n); hit && !r; hit = next_hlt(hit + 1, code + n)) {
			uint32_t end = (uint32_t)(hit + 1 - code), len = stub_fiber_end(code, end);

			p.len = len + 1;
			if (len && len < end && end - len <= last)
				r = derive_put_pieces(d, at + end - p.len, &p, 1);
		}
		if (r || n < FLOW_MAX_CODE)
			return r;
		at += last;
	}
	return 0;
}

/* Notes that a function begins at main. The code of the entry point passes main's address to libc,
 * directly or in a function that it calls (musl). */
static int note_main(struct derive *d, uint64_t main)
{
	uint64_t left;
	uint32_t at;

	if (!main || !rows_locate(d->rows, main, &at, &left) || !derive_in_gap(d, at))
		return 0;
	return starts_add(&d->known.starts, at, 0, false);
}

static int try_entry(struct derive *d)
{
	const uint8_t *code;
	uint64_t left;
	uint32_t at, n, len;
	int64_t call = 0;
	int r;

	if (!d->file->entry || !rows_locate(d->rows, d->file->entry, &at, &left))
		return 0;
	r = derive_need(d, at, LINEAR_CODE_MAX_ENTRY,
			left < LINEAR_CODE_MAX_ENTRY ? at + (uint32_t)left
						     : at + LINEAR_CODE_MAX_ENTRY,
			&code, &n);
	if (r)
		return r;

	/* The first instructions of real entry points: xor ebp or rbp with itself, and ld.so's mov
	 * rdi, rsp; call. In a library without one, linkers store the start of .text as e_entry. */
	uint32_t skip = stub_endbr(code, n);

	if (!d->file->entry_certain && !stub_bytes(code, n, skip, "\x31\xed", 2) &&
	    !stub_bytes(code, n, skip, "\x48\x31\xed", 3) &&
	    !stub_bytes(code, n, skip, "\x48\x89\xe7\xe8", 4))
		return 0;
	len = linear_code_entry(code, n, &call);
	if (!len)
		return 0;

	uint64_t main = linear_code_argument(code, n, d->file->entry);

	call += at;
	if (call != at && call >= 0 && call < (int64_t)d->rows->span &&
	    derive_in_gap(d, (uint32_t)call)) {
		r = known_starts_call(&d->known, (uint32_t)call);
		if (!r && !main) {
			r = derive_need(d, (uint32_t)call, LINEAR_CODE_MAX_ENTRY, d->rows->span,
					&code, &n);
			main = r ? 0
				 : linear_code_argument(code, n,
							rows_address(d->rows, (uint32_t)call));
		}
		if (r)
			return r;
	}
	r = note_main(d, main);
	if (r)
		return r;

	const struct stub_piece p = { len, end_rule };
	uint64_t covered = d->rows->skipped[ROWS_SKIP_COVERED];

	r = derive_put_pieces(d, at, &p, 1);
	d->rows->skipped[ROWS_SKIP_COVERED] = covered;
	return r;
}

/* Adds signal restorers, which may lie anywhere and are called by nothing. */
static int find_restorers(struct derive *d, const struct derive_gap *g)
{
	static const char bytes[] = "\x0f\0\0\0\x0f\x05";
	uint32_t at = g->start, n;

	while (at < g->end) {
		const uint8_t *code, *hit;
		int r = derive_need(d, at, FLOW_MAX_CODE, g->end, &code, &n);

		if (r)
			return r;
		if (n < 9)
			return 0;
		hit = memmem(code, n, bytes, 6);
		if (!hit) {
			at += n - 8;
			continue;
		}

		uint32_t back = hit - code >= 3 && memcmp(hit - 3, "\x48\xc7\xc0", 3) == 0 ? 3
				: hit - code >= 1 && hit[-1] == 0xb8			   ? 1
											   : 0;

		if (back) {
			r = known_starts_call(&d->known, at + (uint32_t)(hit - code) - back);
			if (r)
				return r;
		}
		at += (uint32_t)(hit - code) + 6;
	}
	return 0;
}

/* Counts a guess. Code that is reached through tables alone looks like the beginning of a function
 * at many places. */
static void count_guess(struct derive *d, bool right)
{
	d->guesses += right ? GUESSES_FOR_ONE : 0;
	d->guesses -= !right && d->guesses;
	if (d->guesses > GUESSES)
		d->guesses = GUESSES;
}

/* Tries to add a function at a place. `known`: the place is a known start. */
static int try_function(struct derive *d, uint32_t pos, bool known, bool *ret_is)
{
	const struct starts_function *start = known ? known_starts_start(&d->known, pos) : NULL;
	struct candidate p = { .at = pos, .foreign = d->strict };
	int r = 0;

	*ret_is = false;
	p.trust = !known ? CANDIDATE_GUESSED
		  : start && start->taken && !known_starts_called(&d->known, pos) ? CANDIDATE_TAKEN
										  : CANDIDATE_SURE;
	p.size = start && start->size <= d->now->end - pos ? start->size : 0;
	p.limit = known_starts_next(&d->known, pos + 1, d->now->end);
	if (p.trust != CANDIDATE_SURE && !d->budget)
		return 0;
	if (p.trust == CANDIDATE_GUESSED && !d->guesses)
		return 0;
	r = try_place(d, &p, ret_is);
	if (p.trust == CANDIDATE_GUESSED)
		count_guess(d, *ret_is);
	/* Symbols of assembly may have a size that is too small (musl's _init). */
	if (!r && !*ret_is && p.size) {
		uint32_t size = p.size;

		p.size = 0;
		r = try_place(d, &p, ret_is);
		if (!r && !*ret_is)
			derive_claim(d, pos, pos + size);
		*ret_is = true;
	}
	/* The function may continue beyond the start of one that is only likely. */
	if (!r && !*ret_is && d->budget && flow_fell(d->flow)) {
		uint32_t sure = known_starts_sure(&d->known, pos + 1, d->now->end);

		if (sure > p.limit) {
			p.limit = sure;
			r = try_place(d, &p, ret_is);
		}
	}
	return r;
}

static bool is_foreign(const struct derive *d, uint32_t min)
{
	return d->foreign >= min && d->foreign * (uint64_t)FOREIGN_SHARE >= d->known.accepted.n;
}

/* Works through one gap, from low to high addresses. */
static int one_gap(struct derive *d)
{
	const struct derive_gap *g = d->now;
	uint32_t pos = g->start;

	for (;;) {
		pos = derive_next_place(d, pos, g->end, false);
		if (pos >= g->end)
			break;

		uint32_t known = known_starts_next(&d->known, pos, g->end), used = 0, n, pad;
		uint32_t end = derive_next_place(d, pos, g->end - pos < LOOK ? g->end : pos + LOOK,
						 true);
		bool trusted = known == pos, is = false;

		if (rows_stopped(d->rows))
			return MSG_ROWS_LATER;
		/* The walker handles code with frame pointers without rows. */
		if (d->known.accepted.n >= FRAMED_MIN &&
		    d->framed * 100ull >= d->known.accepted.n * FRAMED_SHARE)
			return 0;
		/* derive_rows starts again, with `strict` set. */
		if (!d->strict && is_foreign(d, FOREIGN_PLAIN))
			return 0;
		if (end > known && !trusted)
			end = known;

		const uint8_t *code;
		int r = derive_need(d, pos, trusted ? 32 : end - pos, g->end, &code, &n);

		if (r)
			return r;
		if (!n)
			return 0;
		if (!trusted) {
			pad = linear_code_padding(code, n);
			pos += pad;
			if (pad == n)
				continue;
			if (g->blind) {
				pos = end;
				continue;
			}
		}
		r = try_stub(d, pos, g, &used);
		if (!r && !used)
			r = try_restorer(d, pos, g, &used);
		if (!r && !used)
			r = try_function(d, pos, trusted, &is);
		if (!r && !used && !is) {
			uint32_t limit = g->end - pos < CODE_MAX ? g->end : pos + CODE_MAX;

			limit = known_starts_next(&d->known, pos + 1, limit);
			limit = derive_next_place(d, pos, limit, true);
			r = derive_need(d, pos, limit - pos, g->end, &code, &n);
			used = r ? 0 : linear_code_past(code, n);
			if (!r && !used)
				return 0;
		}
		if (r)
			return r;
		pos += used;
	}
	return 0;
}

/* Looks at functions that the search had already passed when it found the calls to them. */
static int what_was_left_out(struct derive *d)
{
	struct known_starts_offsets *l = &d->left_out;
	int r = 0;

	if (l->n)
		qsort(l->value, l->n, sizeof(*l->value), numbers_rising);
	for (uint32_t i = 0; i < l->n && !r; i++) {
		struct candidate p = { .at = l->value[i],
				       .trust = CANDIDATE_SURE,
				       .foreign = d->strict };
		bool is;

		if (rows_stopped(d->rows))
			return MSG_ROWS_LATER;
		if (derive_is_claimed(d, p.at) || !d->budget)
			continue;
		p.limit = known_starts_next(&d->known, p.at + 1, d->now->end);
		r = try_place(d, &p, &is);
	}
	l->n = 0;
	return r;
}

/* Adds a gap row for short unreached code between rows. Without it, a reader would take the code
 * for padding, and would not see that it has no rows. */
static int cut_between(struct derive *d)
{
	const struct derive_gap *g = d->now;
	uint32_t pos = derive_next_place(d, g->start, g->end, true);

	while (pos < g->end) {
		uint32_t begin = derive_next_place(d, pos, g->end, false);
		uint32_t end = derive_next_place(d, begin, g->end, true), n;
		const uint8_t *code;
		int r;

		pos = end;
		if (end == g->end || end - begin > ROWS_PADDING)
			continue;
		r = derive_need(d, begin, end - begin, g->end, &code, &n);
		if (r)
			return r;
		if (linear_code_padding(code, n) == n)
			continue;
		r = rows_open(d->rows, begin, end);
		if (!r)
			r = rows_add(d->rows, begin, ROWS_RULE_GAP);
		if (!r)
			rows_close(d->rows);
		if (r && r != MSG_ROWS_NONE)
			return r;
	}
	return 0;
}

static int derive_gap(struct derive *d, const struct derive_gap *g)
{
	uint32_t words = (g->end - g->start) / 64 + 1;
	int r;

	d->claimed = calloc(words, sizeof(*d->claimed));
	if (!d->claimed)
		return -ENOMEM;
	d->now = g;
	d->bare_from = d->bare_to = 0;
	d->window_len = 0;
	r = find_restorers(d, g);
	if (!r)
		r = one_gap(d);
	if (!r)
		r = what_was_left_out(d);
	if (!r)
		r = cut_between(d);
	free(d->claimed);
	d->claimed = NULL;
	d->now = NULL;
	return r;
}

/* Finds starts of functions in the gaps, whose sizes add up to `total` bytes. */
static int find_starts(struct derive *d, uint64_t total)
{
	const struct starts_search search = { d->fd, d->rows, &d->known.starts, derive_in_gap, d };
	int r = 0;

	if (total >= SYMBOLS_MIN)
		r = starts_functions(&search);
	if (!r && total >= TAKEN_ADDRESSES_MIN && total >= d->rows->span / TAKEN_ADDRESSES_SHARE)
		r = taken_addresses_find(&search, d->file);
	starts_sort(&d->known.starts);
	return r;
}

static int derive_gaps(struct derive *d)
{
	uint64_t left = DERIVE_MAX_BYTES;
	uint64_t total = 0;
	int r;

	d->gaps = 0;
	r = derive_find_gaps(d); /* from here on without the entry's code and the ends of fibers */
	for (uint32_t i = 0; i < d->gaps; i++)
		total += d->gap[i].end - d->gap[i].start;
	if (r || !total)
		return r;
	if (!d->strict)
		r = find_starts(d, total);
	if (total > DERIVE_MAX_BYTES)
		total = DERIVE_MAX_BYTES;
	d->budget = WORK_PER_BYTE * total + WORK_MIN;
	d->guesses = GUESSES;
	for (uint32_t i = 0; i < d->gaps && !r; i++) {
		struct derive_gap g = d->gap[i];

		if (g.end - g.start > left)
			g.end = g.start + (uint32_t)left;
		if (g.end == g.start || (!d->strict && is_foreign(d, FOREIGN_PLAIN)))
			break;
		left -= g.end - g.start;
		r = derive_gap(d, &g);
	}
	return r;
}

static uint32_t largest_gap(const struct derive *d)
{
	uint32_t most = LINEAR_CODE_MAX_ENTRY;

	for (uint32_t i = 0; i < d->gaps; i++) {
		if (d->gap[i].end - d->gap[i].start > most)
			most = d->gap[i].end - d->gap[i].start;
	}
	return most;
}

int derive_rows(int fd, const struct elf_file *f, struct rows *rows)
{
	struct derive *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->fd = fd;
	d->file = f;
	d->rows = rows;
	d->known.rows = rows;
	r = starts_ranges(fd, rows, &d->known.starts);
	if (!r)
		r = derive_find_gaps(d);
	if (!r && !d->gaps)
		goto out;
	d->window = malloc(DERIVE_WINDOW);
	if (!r)
		r = d->window ? flow_new(largest_gap(d), &d->flow) : -ENOMEM;
	if (!r) {
		flow_set_reader(d->flow,
				&(struct flow_reader){ read_table, begins, bare, endless, d });
		flow_set_tracked(d->flow, rows->tracked);
	}
	rows_fill(rows);
	if (!r)
		r = try_entry(d);
	for (uint32_t i = 0; i < d->gaps && !r; i++)
		r = put_fiber_ends(d, &d->gap[i]);
	for (uint32_t i = 0; i < d->gaps && !r && f->native_image; i++)
		r = derive_put_methods(d, &d->gap[i]);
	if (!r)
		r = rows_finish(rows);
	rows_fill(rows);
	if (!r)
		r = derive_gaps(d);
	if (!r && is_foreign(d, FOREIGN_MIN)) {
		rows_forget(rows);
		d->framed = d->known.accepted.n = d->known.called.n = d->known.endless.n = 0;
		d->known.next = 0;
		d->strict = true;
		r = derive_gaps(d);
	}
	if (!r)
		r = rows_finish(rows);
out:
	known_starts_done(&d->known);
	free(d->left_out.value);
	flow_free(d->flow);
	free(d->window);
	free(d->gap);
	free(d);
	return r;
}
