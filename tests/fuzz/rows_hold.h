/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the conditions for all rows, whatever they were made of: prof-bpf accepts no others. */
#ifndef TESTS_FUZZ_ROWS_HOLD_H
#define TESTS_FUZZ_ROWS_HOLD_H

#include <stdlib.h>
#include "common/rows/rows.h"
#include "tests/fuzz/must.h"

static inline void rows_hold(const struct rows *r)
{
	struct rows_cursor c;
	struct unwind_row_wire row, last = { 0 };
	uint64_t n = 0;

	rows_cursor_init(&c, r);
	for (; rows_next(&c, &row); n++) {
		must(row.rule < r->rules.n);
		must(row.offset < r->span);
		must(!n || (row.offset > last.offset && row.rule != last.rule));
		last = row;
	}
	must(n == r->count);
	must(r->span <= UNWIND_MAX_SPAN && r->rules.n <= UNWIND_MAX_RULES);
	for (uint32_t i = 0; i < r->rules.n; i++)
		must(unwind_rule_valid(&r->rules.rule[i]));
}

#endif
