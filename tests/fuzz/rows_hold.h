/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of any rows, whatever they were made of: what prof-bpf accepts. */
#ifndef TESTS_FUZZ_ROWS_HOLD_H
#define TESTS_FUZZ_ROWS_HOLD_H

#include <stdlib.h>
#include "tools/prof-deltas/rows.h"

static inline void must(bool what)
{
	if (!what)
		abort();
}

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
	for (uint32_t i = 0; i < r->rules.n; i++) {
		const struct unwind_rule *rule = &r->rules.rule[i];

		must(rule->cfa <= UNWIND_CFA_PLT && rule->rbp <= UNWIND_RBP_DEREF_REG &&
		     rule->ra <= UNWIND_RA_CFA_OFF);
		must(rule->cfa_reg < UNWIND_REG_MAX && rule->ra_reg < UNWIND_REG_MAX &&
		     rule->rbp_reg < UNWIND_REG_MAX && !rule->zero);
		must(rule->ra != UNWIND_RA_CFA_OFF || rule->cfa == UNWIND_CFA_REG);
	}
}

#endif
