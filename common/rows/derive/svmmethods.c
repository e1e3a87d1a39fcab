/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/bytes/numbers.h"
#include "common/rows/derive/derive_internal.h"
#include "common/svm/svmcode.h"

/* Adds a row from a place on. taken: bytes between RSP and the return address. */
static int put(struct derive *d, uint32_t at, uint32_t taken, enum unwind_rbp rbp)
{
	const struct unwind_rule r = { .cfa = UNWIND_CFA_REG,
				       .cfa_reg = UNWIND_REG_RSP,
				       .cfa_off = 8 + (int)taken,
				       .rbp = (uint8_t)rbp,
				       .rbp_off = rbp == UNWIND_RBP_CFA ? -16 : 0,
				       .flags = UNWIND_DERIVED };

	return derive_put_row(d, at, &r);
}

/* Adds the row of the code between the beginning of a method and its ends. */
static int put_body(struct derive *d, uint32_t at, const struct svmcode_frame *f)
{
	const struct unwind_rule by_rbp = { .cfa = UNWIND_CFA_REG,
					    .cfa_reg = UNWIND_REG_RBP,
					    .cfa_off = 8 + (int)f->size,
					    .rbp = UNWIND_RBP_UNDEFINED,
					    .flags = UNWIND_DERIVED };

	if (f->based)
		return derive_put_row(d, at, &by_rbp);
	return f->pushed ? put(d, at, 8 + f->size, UNWIND_RBP_CFA)
			 : put(d, at, f->size, UNWIND_RBP_UNDEFINED);
}

/* Adds the rows of the method at a place, which has all of the code. */
static int put_method(struct derive *d, uint32_t at, struct span code,
		      const struct svmcode_frame *f)
{
	struct svmcode_exit e = { .end = f->based ? f->based : f->begins };
	int r = rows_open(d->rows, at, at + (uint32_t)code.len);

	if (r)
		return r == MSG_ROWS_NONE ? 0 : r;
	r = put(d, at, 0, UNWIND_RBP_SAME);
	if (!r && f->pushed)
		r = put(d, at + f->pushed, 8, UNWIND_RBP_CFA);
	if (!r && f->based)
		r = put(d, at + f->begins, f->size, UNWIND_RBP_SAME);
	if (!r)
		r = put_body(d, at + e.end, f);
	while (!r && svmcode_exit(code, f, e.end, &e)) {
		r = f->pushed ? put(d, at + e.popped, 8, UNWIND_RBP_CFA)
			      : put(d, at + e.popped, 0, UNWIND_RBP_UNDEFINED);
		if (!r && f->pushed)
			r = put(d, at + e.ret, 0, UNWIND_RBP_SAME);
		if (!r && e.end < code.len)
			r = put_body(d, at + e.end, f);
	}
	if (!r)
		rows_close(d->rows);
	return r;
}

/* Returns the offset of the first beginning of a method at a multiple of 16 from `from` on, or
 * code.len. */
static uint32_t next_method(const struct derive *d, uint32_t at, struct span code, uint32_t from)
{
	const uint32_t odd = (uint32_t)(rows_address(d->rows, at) % SVMCODE_ALIGNMENT);
	struct svmcode_frame f;

	for (size_t i = from + (-(odd + from) & (SVMCODE_ALIGNMENT - 1)); i < code.len;
	     i += SVMCODE_ALIGNMENT)
		if (svmcode_begins((struct span){ code.data + i, code.len - i }, &f))
			return (uint32_t)i;
	return (uint32_t)code.len;
}

/* The part of a gap that has methods. C's code, of which all else consists, has no traps between
 * functions. */
struct part {
	uint32_t first, last; /* beginnings of the first and the last method */
	bool any;
};

/* Finds the part of the gap with methods. Traps precede each method but the first. Returns 0,
 * MSG_ROWS_LATER or -errno. */
static int find_part(struct derive *d, const struct derive_gap *g, struct part *ret)
{
	uint32_t at = g->start, previous = UINT32_MAX;

	*ret = (struct part){ 0 };
	for (;;) {
		const uint8_t *bytes;
		uint32_t n;

		if (rows_stopped(d->rows))
			return MSG_ROWS_LATER;
		const int r = derive_need(d, at, FLOW_MAX_CODE, g->end, &bytes, &n);

		if (r)
			return r;
		const struct span code = { .data = bytes, .len = n };

		for (uint32_t i = next_method(d, at, code, 0); i < n;
		     i = next_method(d, at, code, i + 1)) {
			if (i && svmcode_is_trap(bytes[i - 1])) {
				if (!ret->any)
					ret->first = numbers_smaller(previous, at + i);
				ret->last = at + i;
				ret->any = true;
			}
			previous = at + i;
		}
		if (n < FLOW_MAX_CODE)
			return 0;
		at += n - SVMCODE_HEAD - 1;
	}
}

int derive_put_methods(struct derive *d, const struct derive_gap *g)
{
	struct part part;
	int r = find_part(d, g, &part);

	if (r || !part.any)
		return r;
	for (uint32_t at = part.first; at <= part.last && !r;) {
		struct svmcode_frame f;
		const uint8_t *bytes;
		uint32_t n;

		if (rows_stopped(d->rows))
			return MSG_ROWS_LATER;
		r = derive_need(d, at, FLOW_MAX_CODE, g->end, &bytes, &n);
		if (r || !n)
			break;
		struct span code = { .data = bytes, .len = n };

		if (!svmcode_begins(code, &f)) {
			at += next_method(d, at, code, 1);
			continue;
		}
		code.len = next_method(d, at, code, 1);
		if (at == part.last)
			code.len = svmcode_padding(code);
		r = put_method(d, at, code, &f);
		at += (uint32_t)code.len;
	}
	return r;
}
