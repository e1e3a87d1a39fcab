// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/prof-deltas/derive.h"
#include "tools/prof-deltas/flow.h"
#include "tools/prof-deltas/starts.h"
#include "tools/prof-deltas/stretch.h"
#include "tools/prof-deltas/stubs.h"

#define GAP_MIN (ROWS_PADDING + 1) /* bytes: less is padding */
#define WINDOW (4 * FLOW_MAX_CODE) /* read at once: most of it is left for the next function */
#define LOOK 4096u		   /* bytes looked at for padding */
#define GUESS_MAX (64u << 10)	   /* bytes of a function that is guessed */
/* What may be spent on a byte of the gaps, as flow_work counts, and once: guesses that are none
 * overlap. Code that compilers made takes 2 to 4. */
#define WORK_PER_BYTE 16ull
#define WORK_MIN (1u << 20)
/* From so many functions on, with so many of a hundred, a file keeps frame pointers. */
#define FRAMED_MIN 2000
#define FRAMED_SHARE 90ull
#define MAX_CALLED (1u << 16) /* places that calls lead to, ahead */
/* Gaps that are smaller than this in all hold no code that symbols are worth reading for. */
#define SYMBOLS_MIN 64

struct gap {
	uint32_t start, end;
	bool blind;
};

struct numbers {
	uint32_t *value; /* owned */
	uint32_t n, cap;
};

struct derive {
	int fd;
	const struct elf_file *file;
	struct rows *rows;
	struct flow *flow;
	struct starts starts;
	struct gap *gap;
	uint32_t gaps, gap_cap;
	struct numbers called;	 /* heap: the least first */
	struct numbers accepted; /* where functions were found to begin, rising */
	uint64_t budget;	 /* what looking at functions may still cost: flow_work */
	uint32_t framed;	 /* of the accepted ones, that set up a frame pointer at once */
	uint32_t next_function;	 /* of starts */
	/* [window_at, window_at + window_len) of the text. */
	uint8_t *window;
	uint32_t window_at, window_len;
};

static int reserve(void **array, uint32_t *cap, uint32_t want, size_t item)
{
	uint32_t n = *cap ? *cap * 2 : 64;
	void *p;

	if (want <= *cap)
		return 0;
	p = realloc(*array, n * item);
	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = n;
	return 0;
}

/* --- what is not covered --- */

/* `section`: it is a whole one, such as .init, which may be small. */
static int add_gap(struct derive *d, uint32_t start, uint32_t end, bool blind, bool section)
{
	int r;

	if (end <= start || (end - start < GAP_MIN && !section))
		return 0;
	r = reserve((void **)&d->gap, &d->gap_cap, d->gaps + 1, sizeof(*d->gap));
	if (!r)
		d->gap[d->gaps++] = (struct gap){ .start = start, .end = end, .blind = blind };
	return r;
}

static int find_gaps(struct derive *d)
{
	size_t i = 0;

	for (unsigned n = 0; n < d->starts.ranges; n++) {
		const struct starts_range *range = &d->starts.range[n];
		uint32_t at = range->start, start, end;
		int r;

		for (; i < d->rows->settled; i++) {
			rows_extent(d->rows, i, &start, &end);
			if (start >= range->end)
				break;
			if (end <= at)
				continue;
			r = add_gap(d, at, start, range->blind, false);
			if (r)
				return r;
			at = end;
			if (end >= range->end)
				break;
		}
		r = add_gap(d, at, range->end, range->blind, at == range->start);
		if (r)
			return r;
	}
	return 0;
}

static const struct gap *gap_of(const struct derive *d, uint32_t at)
{
	uint32_t low = 0, high = d->gaps;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (d->gap[mid].end <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low < d->gaps && d->gap[low].start <= at ? &d->gap[low] : NULL;
}

static bool in_gap(const void *ctx, uint32_t at)
{
	return gap_of(ctx, at) != NULL;
}

/* --- where functions begin --- */

static int call_push(struct derive *d, uint32_t at)
{
	struct numbers *h = &d->called;
	uint32_t i;
	int r;

	if (h->n == MAX_CALLED)
		return 0;
	r = reserve((void **)&h->value, &h->cap, h->n + 1, sizeof(*h->value));
	if (r)
		return r;
	for (i = h->n++; i && h->value[(i - 1) / 2] > at; i = (i - 1) / 2)
		h->value[i] = h->value[(i - 1) / 2];
	h->value[i] = at;
	return 0;
}

static void call_pop(struct derive *d)
{
	struct numbers *h = &d->called;
	uint32_t last = h->value[--h->n], i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < h->n && h->value[child + 1] < h->value[child])
			child++;
		if (child >= h->n || h->value[child] >= last)
			break;
		h->value[i] = h->value[child];
		i = child;
	}
	h->value[i] = last;
}

static bool holds(const uint32_t *value, uint32_t n, uint32_t wanted)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (value[mid] < wanted)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && value[low] == wanted;
}

/* Whether a function is known to begin there. */
static bool begins(const struct derive *d, int64_t at)
{
	size_t low = 0, high = d->rows->settled;
	uint32_t first = 0, last = d->starts.functions;

	if (at < 0 || at >= (int64_t)d->rows->span)
		return false;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if ((int64_t)(d->rows->function[mid] >> 32) < at)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < d->rows->settled && (int64_t)(d->rows->function[low] >> 32) == at)
		return true;
	while (first < last) {
		uint32_t mid = first + (last - first) / 2;

		if (d->starts.function[mid].at < at)
			first = mid + 1;
		else
			last = mid;
	}
	if (first < d->starts.functions && d->starts.function[first].at == at)
		return true;
	return holds(d->accepted.value, d->accepted.n, (uint32_t)at);
}

/* The next place at or behind `at` that is known to begin a function, or `end`. */
static uint32_t next_known(struct derive *d, uint32_t at, uint32_t end)
{
	const struct starts *s = &d->starts;

	while (d->next_function < s->functions && s->function[d->next_function].at < at)
		d->next_function++;
	while (d->called.n && d->called.value[0] < at)
		call_pop(d);
	if (d->next_function < s->functions && s->function[d->next_function].at < end)
		end = s->function[d->next_function].at;
	if (d->called.n && d->called.value[0] < end)
		end = d->called.value[0];
	return end;
}

/* --- bytes --- */

/* Makes the window begin at or before `at` and hold n bytes from there, or what is there up to
 * `end`. *ret_n of them are. */
static int need(struct derive *d, uint32_t at, uint32_t n, uint32_t end, const uint8_t **ret,
		uint32_t *ret_n)
{
	int64_t got;

	if (n > end - at)
		n = end - at;
	if (at < d->window_at || (uint64_t)at + n > (uint64_t)d->window_at + d->window_len) {
		uint32_t want = end - at < WINDOW ? end - at : WINDOW;

		got = elf_pread(d->fd, d->window, want, d->rows->base + at);
		if (got < 0)
			return (int)got;
		d->window_at = at;
		d->window_len = (uint32_t)got;
	}
	*ret = d->window + (at - d->window_at);
	*ret_n = d->window_at + d->window_len - at;
	if (*ret_n > n)
		*ret_n = n;
	return 0;
}

/* struct flow_reader: from the file's segments. */
static bool read_table(void *ctx, uint64_t address, void *into, uint32_t n)
{
	const struct derive *d = ctx;

	for (unsigned i = 0; i < d->file->loads; i++) {
		const struct elf_load *l = &d->file->load[i];

		if (address >= l->vaddr && address - l->vaddr < l->filesz)
			return n <= l->filesz - (address - l->vaddr) &&
			       elf_pread(d->fd, into, n, l->offset + (address - l->vaddr)) == n;
	}
	return false;
}

/* --- rows --- */

static const struct unwind_rule end_rule = {
	.cfa = UNWIND_CFA_REG,
	.cfa_reg = UNWIND_REG_RSP,
	.cfa_off = 8,
	.ra = UNWIND_RA_UNDEFINED,
	.flags = UNWIND_DERIVED,
};

static int put(struct derive *d, uint32_t at, const struct unwind_rule *rule)
{
	uint16_t number;
	int r = rows_rules_put(&d->rows->rules, rule, &number);

	/* No room for more rules: this stays a gap. */
	if (r > 0)
		number = ROWS_RULE_GAP;
	return r < 0 ? r : rows_add(d->rows, at, number);
}

static int put_pieces(struct derive *d, uint32_t at, const struct stub_piece *p, unsigned n)
{
	uint32_t end = at;
	int r;

	for (unsigned i = 0; i < n; i++)
		end += p[i].len;
	r = rows_open(d->rows, at, end);
	if (r)
		return r == ROWS_NONE ? 0 : r;
	for (unsigned i = 0; i < n && !r; i++) {
		if (p[i].len)
			r = put(d, at, &p[i].rule);
		at += p[i].len;
	}
	if (!r)
		rows_close(d->rows);
	return r;
}

/* Not more than nops, by their first bytes, and what traps. */
static bool is_padding(const uint8_t *code, uint32_t n)
{
	return n && (code[0] == 0x90 || code[0] == 0xcc || code[0] == 0x66 ||
		     (code[0] == 0x0f && n > 1 && code[1] == 0x1f));
}

/* The rows of the function that flow_run looked at, `end` bytes of them. */
static int put_flow(struct derive *d, uint32_t at, const uint8_t *code, uint32_t end)
{
	uint32_t pos = 0, len = 0;
	int r = rows_open(d->rows, at, at + end);
	struct unwind_rule last = { 0 }; /* of the newest row; none is all zeros */

	if (r)
		return r == ROWS_NONE ? 0 : r;
	while (pos < end && !r) {
		struct unwind_rule rule;
		bool known;

		if (flow_rule(d->flow, pos, &len, &known, &rule)) {
			if (!known) {
				r = rows_add(d->rows, at + pos, ROWS_RULE_GAP);
				last = (struct unwind_rule){ 0 };
			} else if (!rows_words_eq(rows_words_of(&rule), rows_words_of(&last))) {
				r = put(d, at + pos, &rule);
				last = rule;
			}
			pos += len;
			continue;
		}

		/* Padding, or what no path leads to. */
		uint32_t begin = pos;

		while (pos < end && !flow_rule(d->flow, pos, &len, &known, &rule))
			pos++;
		if (pos - begin > ROWS_PADDING || !begin ||
		    !is_padding(code + begin, pos - begin)) {
			r = rows_add(d->rows, at + begin, ROWS_RULE_GAP);
			last = (struct unwind_rule){ 0 };
		}
	}
	if (!r)
		rows_close(d->rows);
	return r;
}

/* --- by content --- */

static bool is_slot_zero(const struct derive *d, int64_t at)
{
	uint8_t bytes[24];

	if (at < 0 || at >= (int64_t)d->rows->span)
		return false;

	int64_t got = elf_pread(d->fd, bytes, sizeof(bytes), d->rows->base + (uint64_t)at);

	return stub_is_slot_zero(bytes, got > 0 ? (uint32_t)got : 0);
}

/* What linkers write by a pattern. *ret_used is 0 where it is none. */
static int try_stub(struct derive *d, uint32_t at, const struct gap *g, uint32_t *ret_used)
{
	const uint8_t *code;
	struct stub stub;
	uint32_t n;
	int r = need(d, at, STUB_MAX, g->end, &code, &n);

	*ret_used = 0;
	if (r || !stub_find(code, n, rows_address(d->rows, at), &stub) ||
	    (stub.slot && !is_slot_zero(d, at + stub.zero)))
		return r;
	*ret_used = stub.used < g->end - at ? stub.used : g->end - at;
	return put_pieces(d, at, stub.piece, stub.pieces);
}

/* What signal handlers return to. The kernel makes it the return address as such, so that its
 * callers look one byte before it. */
static int try_restorer(struct derive *d, uint32_t at, const struct gap *g, uint32_t *ret_used)
{
	struct stub_piece p = { .rule = { .cfa = UNWIND_CFA_DEREF,
					  .cfa_reg = UNWIND_REG_RSP,
					  .cfa_off = 160,
					  .flags = UNWIND_SIGNAL_FRAME | UNWIND_DERIVED } };
	const uint8_t *code;
	uint32_t n, begin = at;
	int r = need(d, at, 16, g->end, &code, &n);

	*ret_used = 0;
	if (r)
		return r;
	p.len = stub_restorer(code, n);
	if (!p.len)
		return 0;
	*ret_used = p.len;
	if (begin > g->start) {
		uint8_t before;

		if (elf_pread(d->fd, &before, 1, d->rows->base + begin - 1) == 1 &&
		    (before == 0x90 || before == 0xcc || before == 0)) {
			begin--;
			p.len++;
		}
	}
	return put_pieces(d, begin, &p, 1);
}

/* --- functions --- */

/* Targets (relative to at) ahead are where functions begin. */
static int note_calls(struct derive *d, uint32_t at, const int64_t *target, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		int64_t to = at + target[i];
		int r;

		if (to <= at || to >= (int64_t)d->rows->span || !in_gap(d, (uint32_t)to))
			continue;
		r = call_push(d, (uint32_t)to);
		if (r)
			return r;
	}
	return 0;
}

static int accept(struct derive *d, uint32_t at)
{
	struct numbers *a = &d->accepted;
	int r = reserve((void **)&a->value, &a->cap, a->n + 1, sizeof(*a->value));

	if (!r)
		a->value[a->n++] = at;
	return r;
}

/* Code that begins as functions do, which need not return then: two registers saved, or a frame
 * pointer set up. */
static bool is_prologue(const struct derive *d, const uint8_t *code, uint32_t n)
{
	return stub_endbr(code, n) || stub_bytes(code, n, 0, "\x55\x48\x89\xe5", 4) ||
	       flow_saves(d->flow) >= 2;
}

/* Whether it lies where functions do, or the first instruction is a push or makes a frame. */
static bool may_begin(const struct derive *d, uint32_t at, const uint8_t *code, uint32_t n)
{
	uint32_t past = stub_endbr(code, n);

	return past > 0 || !(rows_address(d->rows, at) & 15) ||
	       (n > 1 && (code[0] & 0xf8) == 0x50) ||
	       (n > 1 && code[0] == 0x41 && (code[1] & 0xf8) == 0x50) ||
	       stub_bytes(code, n, past, "\x48\x83\xec", 3) ||
	       stub_bytes(code, n, past, "\x48\x81\xec", 3);
}

/* Begins and ends as functions do. */
static bool is_whole(const struct derive *d, const uint8_t *code, uint32_t n,
		     const struct flow_result *result)
{
	return result->returns && is_prologue(d, code, n);
}

/* Whether what was guessed to be a function is one. What begins and ends as such may leave to one
 * that is not known yet; and from where a ret finds the return address, RSP was at it, too. */
static bool is_function(const struct derive *d, uint32_t at, const uint8_t *code, uint32_t n,
			const struct flow_result *result)
{
	if (result->rets || is_whole(d, code, n, result))
		return true;
	for (uint32_t i = 0; i < result->jumps; i++) {
		if (!begins(d, at + result->jump[i]))
			return false;
	}
	return result->returns || result->jumps || is_prologue(d, code, n) || flow_frames(d->flow);
}

/* Compilers do not align the stack for those of their own functions that do not need it. Where
 * calls do not return is told by the alignment, otherwise: so first none of those returns that
 * could be such. */
static int run_unaligned(struct derive *d, uint32_t at, const uint8_t *code, uint32_t n,
			 struct flow_result *ret)
{
	uint64_t address = rows_address(d->rows, at);
	int r = flow_run(d->flow, code, n, address, FLOW_UNALIGNED | FLOW_NO_RETURN, ret);

	if (r > 0 || (!r && !ret->rets))
		r = flow_run(d->flow, code, n, address, FLOW_UNALIGNED, ret);
	if (r > 0)
		r = flow_again(d->flow, ret);
	return r || ret->rets ? r : FLOW_CONTRADICTS;
}

static int look_at(struct derive *d, uint32_t at, uint32_t size, uint32_t limit, unsigned flags,
		   uint32_t *ret_used)
{
	static const unsigned ways[] = { FLOW_SIZED, 0 };
	struct flow_result result = { 0 };
	const uint8_t *code;
	uint32_t n, ceiling = flags & FLOW_TRUSTED ? FLOW_MAX_CODE : GUESS_MAX, end;
	bool misaligned = false;
	int r = need(d, at, size ? size < ceiling ? size : ceiling : ceiling, limit, &code, &n);

	*ret_used = 0;
	if (r || !n)
		return r;
	for (unsigned i = size ? 0 : 1; i < 2; i++) {
		r = flow_run(d->flow, code, n, rows_address(d->rows, at), flags | ways[i], &result);
		misaligned = r == FLOW_MISALIGNED;
		if (r > 0 && d->budget)
			r = flow_again(d->flow, &result);
		if (r < 0)
			return r;
		if (!r)
			break;
	}
	if (!(flags & FLOW_TRUSTED) && misaligned && (r || !is_function(d, at, code, n, &result)) &&
	    may_begin(d, at, code, n)) {
		r = run_unaligned(d, at, code, n, &result);
		if (r < 0)
			return r;
	}
	if (r || !(flags & FLOW_TRUSTED || is_function(d, at, code, n, &result)))
		return 0;
	end = size && size <= n ? size : result.end;
	r = note_calls(d, at, result.call, result.calls);
	if (!r && is_whole(d, code, n, &result))
		r = note_calls(d, at, result.jump, result.jumps);
	if (!r)
		r = accept(d, at);
	d->framed += stub_bytes(code, n, stub_endbr(code, n), "\x55\x48\x89\xe5", 4);
	if (!r)
		r = put_flow(d, at, code, end);
	*ret_used = end;
	return r;
}

/* A function with `size` bytes, or (0) an unknown number of them up to `limit`. */
static int try_function(struct derive *d, uint32_t at, uint32_t size, uint32_t limit,
			unsigned flags, uint32_t *ret_used)
{
	uint64_t before = flow_work(d->flow), spent;
	int r = look_at(d, at, size, limit, flags, ret_used);

	spent = flow_work(d->flow) - before;
	d->budget -= spent < d->budget ? spent : d->budget;
	return r;
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
	r = need(d, at, STRETCH_MAX_ENTRY,
		 left < STRETCH_MAX_ENTRY ? at + (uint32_t)left : at + STRETCH_MAX_ENTRY, &code,
		 &n);
	if (r)
		return r;

	/* The first instructions of the entry points that libraries give to programs: xor ebp or
	 * rbp with itself, and ld.so's mov rdi, rsp; call. Tells them from what linkers write into
	 * e_entry of a library without one: the start of .text. */
	uint32_t skip = stub_endbr(code, n);

	if (!d->file->entry_certain && !stub_bytes(code, n, skip, "\x31\xed", 2) &&
	    !stub_bytes(code, n, skip, "\x48\x31\xed", 3) &&
	    !stub_bytes(code, n, skip, "\x48\x89\xe7\xe8", 4))
		return 0;
	len = stretch_entry(code, n, &call);
	if (!len)
		return 0;
	call += at;
	if (call != at && call >= 0 && call < (int64_t)d->rows->span && in_gap(d, (uint32_t)call)) {
		r = call_push(d, (uint32_t)call);
		if (r)
			return r;
	}

	const struct stub_piece p = { len, end_rule };
	uint64_t covered = d->rows->skipped[ROWS_SKIP_COVERED];

	r = put_pieces(d, at, &p, 1);
	d->rows->skipped[ROWS_SKIP_COVERED] = covered;
	return r;
}

/* Restorers lie anywhere, and nothing calls them. */
static int find_restorers(struct derive *d, const struct gap *g)
{
	static const char bytes[] = "\x0f\0\0\0\x0f\x05";
	uint32_t at = g->start, n;

	while (at < g->end) {
		const uint8_t *code, *hit;
		int r = need(d, at, FLOW_MAX_CODE, g->end, &code, &n);

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
			r = call_push(d, at + (uint32_t)(hit - code) - back);
			if (r)
				return r;
		}
		at += (uint32_t)(hit - code) + 6;
	}
	return 0;
}

/* One gap, from low to high. */
static int one_gap(struct derive *d, const struct gap *g)
{
	uint32_t pos = g->start;

	while (pos < g->end) {
		uint32_t known = next_known(d, pos, g->end), used = 0, n, pad;
		bool trusted = known == pos;

		/* Such code is walked as well without rows. */
		if (d->accepted.n >= FRAMED_MIN &&
		    d->framed * 100ull >= d->accepted.n * FRAMED_SHARE)
			return 0;

		const uint8_t *code;
		int r = need(d, pos,
			     trusted		  ? 32
			     : known - pos < LOOK ? known - pos
						  : LOOK,
			     g->end, &code, &n);

		if (r)
			return r;
		if (!n)
			return 0;
		if (!trusted) {
			pad = stretch_padding(code, n);
			pos += pad;
			if (pad == n)
				continue;
			if (g->blind) {
				pos = known;
				continue;
			}
		}
		r = try_stub(d, pos, g, &used);
		if (!r && !used)
			r = try_restorer(d, pos, g, &used);
		if (!r && !used) {
			const struct starts *s = &d->starts;
			uint32_t size = trusted && d->next_function < s->functions &&
							s->function[d->next_function].at == pos
						? s->function[d->next_function].size
						: 0;
			uint32_t limit = next_known(d, pos + 1, g->end);

			if (size > g->end - pos)
				size = 0;
			if (trusted || d->budget)
				r = try_function(d, pos, size, size ? g->end : limit,
						 trusted ? FLOW_TRUSTED : 0, &used);
			/* Assembly's symbols may have a size that is not all of it (musl's _init).
			 */
			if (!r && !used && size)
				r = try_function(d, pos, 0, limit, FLOW_TRUSTED, &used);
			if (!r && !used && size)
				used = size;
			if (!r && !used) {
				r = need(d, pos, limit - pos < GUESS_MAX ? limit - pos : GUESS_MAX,
					 g->end, &code, &n);
				used = r ? 0 : stretch_past(code, n);
			}
		}
		if (r)
			return r;
		if (!used)
			return 0;
		pos += used;
	}
	return 0;
}

static int derive_gaps(struct derive *d)
{
	uint64_t left = DERIVE_MAX_BYTES;
	uint64_t total = 0;
	int r;

	d->gaps = 0;
	r = find_gaps(d); /* the entry's code is none any more */
	for (uint32_t i = 0; i < d->gaps; i++)
		total += d->gap[i].end - d->gap[i].start;
	if (r || !total)
		return r;
	if (total >= SYMBOLS_MIN)
		r = starts_functions(d->fd, d->rows, &d->starts, in_gap, d);
	if (total > DERIVE_MAX_BYTES)
		total = DERIVE_MAX_BYTES;
	d->budget = WORK_PER_BYTE * total + WORK_MIN;
	for (uint32_t i = 0; i < d->gaps && !r; i++) {
		struct gap g = d->gap[i];

		if (g.end - g.start > left)
			g.end = g.start + (uint32_t)left;
		left -= g.end - g.start;
		r = find_restorers(d, &g);
		if (!r)
			r = one_gap(d, &g);
	}
	return r;
}

static uint32_t largest_gap(const struct derive *d)
{
	uint32_t most = STRETCH_MAX_ENTRY;

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
	r = starts_ranges(fd, rows, &d->starts);
	if (!r)
		r = find_gaps(d);
	if (!r && !d->gaps)
		goto out;
	d->window = malloc(WINDOW);
	if (!r)
		r = d->window ? flow_new(largest_gap(d), &d->flow) : -ENOMEM;
	if (!r)
		flow_set_reader(d->flow, &(struct flow_reader){ read_table, d });
	rows_fill(rows);
	if (!r)
		r = try_entry(d);
	if (!r)
		r = rows_finish(rows);
	rows_fill(rows);
	if (!r)
		r = derive_gaps(d);
	if (!r)
		r = rows_finish(rows);
out:
	starts_done(&d->starts);
	flow_free(d->flow);
	free(d->window);
	free(d->gap);
	free(d->called.value);
	free(d->accepted.value);
	free(d);
	return r;
}
