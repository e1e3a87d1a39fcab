/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/files/fd.h"
#include "common/rows/derive/derive_internal.h"

#define GAP_MIN (ROWS_PADDING + 1) /* bytes; a smaller gap is padding */

/* --- gaps --- */

/* `section`: the gap is a whole section, such as .init, which may be small. */
static int add_gap(struct derive *d, uint32_t start, uint32_t end, bool blind, bool section)
{
	int r;

	if (end <= start || (end - start < GAP_MIN && !section))
		return 0;
	r = known_starts_reserve((void **)&d->gap, &d->gap_cap, d->gaps + 1, sizeof(*d->gap));
	if (!r)
		d->gap[d->gaps++] =
			(struct derive_gap){ .start = start, .end = end, .blind = blind };
	return r;
}

int derive_find_gaps(struct derive *d)
{
	size_t i = 0;

	for (unsigned n = 0; n < d->known.starts.ranges; n++) {
		const struct starts_range *range = &d->known.starts.range[n];
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

static const struct derive_gap *gap_of(const struct derive *d, uint32_t at)
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

bool derive_in_gap(const void *ctx, uint32_t at)
{
	return gap_of(ctx, at) != NULL;
}

/* --- bytes --- */

int derive_need(struct derive *d, uint32_t at, uint32_t n, uint32_t end, const uint8_t **ret,
		uint32_t *ret_n)
{
	int64_t got;

	if (n > end - at)
		n = end - at;
	if (at < d->window_at || (uint64_t)at + n > (uint64_t)d->window_at + d->window_len) {
		uint32_t before = d->now && at - d->now->start < DERIVE_BACK ? at - d->now->start
				  : d->now				     ? DERIVE_BACK
									     : 0;
		uint32_t from = at - before,
			 want = end - from < DERIVE_WINDOW ? end - from : DERIVE_WINDOW;

		got = fd_pread_all(d->fd, d->window, want, d->rows->base + from);
		if (got < 0)
			return (int)got;
		d->window_at = from;
		d->window_len = got < before ? before : (uint32_t)got;
	}
	*ret = d->window + (at - d->window_at);
	*ret_n = d->window_at + d->window_len - at;
	if (*ret_n > n)
		*ret_n = n;
	return 0;
}

/* --- claimed bytes --- */

void derive_claim(struct derive *d, uint32_t start, uint32_t end)
{
	if (end > d->now->end)
		end = d->now->end;
	if (start < d->bare_to && end > d->bare_from)
		d->bare_to = start > d->bare_from ? start : d->bare_from;
	start -= d->now->start;
	end -= d->now->start;
	for (uint32_t next; start < end; start = next) {
		uint64_t word = UINT64_MAX << start % 64;

		next = (start / 64 + 1) * 64;
		if (next > end) {
			next = end;
			word &= UINT64_MAX >> (63 - (end - 1) % 64);
		}
		d->claimed[start / 64] |= word;
	}
}

uint32_t derive_next_place(struct derive *d, uint32_t at, uint32_t up_to, bool claimed)
{
	uint32_t bit = at - d->now->start, end = up_to - d->now->start;
	uint64_t flip = claimed ? 0 : UINT64_MAX;

	if (claimed && (at < d->bare_from || at >= d->bare_to))
		d->bare_from = d->bare_to = at;
	if (claimed)
		bit = d->bare_to - d->now->start;
	if (bit >= end)
		return up_to;
	while (bit < end) {
		uint64_t word = (d->claimed[bit / 64] ^ flip) >> bit % 64;

		if (word) {
			bit += (uint32_t)__builtin_ctzll(word);
			break;
		}
		bit = (bit / 64 + 1) * 64;
	}
	if (bit > end)
		bit = end;
	if (claimed)
		d->bare_to = d->now->start + bit;
	return d->now->start + bit;
}

/* --- rows --- */

int derive_put_row(struct derive *d, uint32_t at, const struct unwind_rule *rule)
{
	uint16_t number;
	int r = rows_rules_put(&d->rows->rules, rule, &number);

	/* The set of rules is full: this place stays a gap. */
	if (r > 0)
		number = ROWS_RULE_GAP;
	return r < 0 ? r : rows_add(d->rows, at, number);
}

int derive_put_pieces(struct derive *d, uint32_t at, const struct stub_piece *p, unsigned n)
{
	uint32_t end = at;
	int r;

	for (unsigned i = 0; i < n; i++)
		end += p[i].len;
	if (d->now)
		derive_claim(d, at, end);
	r = rows_open(d->rows, at, end);
	if (r)
		return r == MSG_ROWS_NONE ? 0 : r;
	for (unsigned i = 0; i < n && !r; i++) {
		if (p[i].len)
			r = derive_put_row(d, at, &p[i].rule);
		at += p[i].len;
	}
	if (!r)
		rows_close(d->rows);
	return r;
}

/* Whether the first bytes are a nop or a trap. */
static bool is_padding(const uint8_t *code, uint32_t n)
{
	return n && (code[0] == 0x90 || code[0] == 0xcc || code[0] == 0x66 ||
		     (code[0] == 0x0f && n > 1 && code[1] == 0x1f));
}

/* Returns how far from pos on flow_run reached bytes without rows. Padding in between counts as
 * reached. */
static uint32_t run_end(const struct derive *d, const uint8_t *code, uint32_t pos, uint32_t end)
{
	struct unwind_rule rule;
	uint32_t behind = pos, len;
	bool known;

	while (pos < end) {
		if (derive_is_claimed(d, d->from + pos))
			break;
		if (flow_rule(d->flow, pos, &len, &known, &rule))
			behind = pos += len;
		else if (pos - behind < ROWS_PADDING && is_padding(code + behind, end - behind))
			pos++;
		else
			break;
	}
	return behind < end ? behind : end;
}

/* Adds the rows of the code that flow_run reached in [begin, end), which has no break. */
static int put_run(struct derive *d, uint32_t begin, uint32_t end)
{
	uint32_t pos = begin, len = 0;
	int r = rows_open(d->rows, d->from + begin, d->from + end);
	struct unwind_rule last = { 0 }; /* of the newest row; no rule is all zeros */

	derive_claim(d, d->from + begin, d->from + end);
	if (r)
		return r == MSG_ROWS_NONE ? 0 : r;
	while (pos < end && !r) {
		struct unwind_rule rule;
		bool known;

		if (!flow_rule(d->flow, pos, &len, &known, &rule)) {
			pos++; /* padding */
			continue;
		}
		if (!known) {
			r = rows_add(d->rows, d->from + pos, ROWS_RULE_GAP);
			last = (struct unwind_rule){ 0 };
		} else if (!rows_words_eq(rows_words_of(&rule), rows_words_of(&last))) {
			r = derive_put_row(d, d->from + pos, &rule);
			last = rule;
		}
		pos += len;
	}
	if (!r)
		rows_close(d->rows);
	return r;
}

int derive_put_flow(struct derive *d, const uint8_t *code, uint32_t low, uint32_t high)
{
	int r = 0;

	for (uint32_t pos = low; pos < high && !r;) {
		struct unwind_rule rule;
		uint32_t len, end;
		bool known;

		if (!flow_rule(d->flow, pos, &len, &known, &rule)) {
			pos++;
			continue;
		}
		if (derive_is_claimed(d, d->from + pos)) {
			pos++; /* inside an instruction: instructions may overlap */
			continue;
		}
		end = run_end(d, code, pos, high);
		r = put_run(d, pos, end);
		pos = end;
	}
	return r;
}
