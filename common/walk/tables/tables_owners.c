/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of the tables' user: records the rules and words that owners hold. */
#include "common/walk/tables/tables_internal.h"

void tables_hold(struct tables *t, uint32_t owner, enum tables_resource what, int64_t n)
{
	if (t->ledger && n)
		t->ledger->hold(t->ledger->ctx, owner, what, n);
}

void tables_refuse(struct tables *t, uint32_t owner, enum tables_resource what)
{
	if (t->ledger)
		t->ledger->refuse(t->ledger->ctx, owner, what);
}

bool tables_is_large(const struct tables *t, uint32_t owner, enum tables_resource what, uint64_t n,
		     uint64_t all)
{
	const struct tables_ledger *l = t->ledger;

	return l && l->held(l->ctx, owner, what) + n > l->share(l->ctx, owner, what, all);
}
