/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/shares/ledger.h"

#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/owners/owners.h"

static enum owner_resource resource_of(enum tables_resource what)
{
	return what == TABLES_RULES ? OWNER_RULES : OWNER_ROWS;
}

static struct owner *owner_of(const struct host *h, uint32_t number)
{
	struct owner *w = owners_numbered(h->owners, number);

	return w ? w : owners_numbered(h->owners, 0);
}

static void hold(void *ctx, uint32_t owner, enum tables_resource what, int64_t n)
{
	struct host *h = ctx;

	if (n > 0)
		owner_hold(h->owners, owner_of(h, owner), resource_of(what), (uint64_t)n);
	else
		owner_release(h->owners, owner_of(h, owner), resource_of(what), (uint64_t)-n);
}

static uint64_t held(void *ctx, uint32_t owner, enum tables_resource what)
{
	return owner_of(ctx, owner)->held[resource_of(what)];
}

static uint64_t share(void *ctx, uint32_t taker, enum tables_resource what, uint64_t all)
{
	const struct host *h = ctx;

	return owners_share(h->owners, taker == TABLES_NOBODY ? NULL : owner_of(h, taker),
			    resource_of(what), all);
}

static void refuse(void *ctx, uint32_t owner, enum tables_resource what)
{
	owner_refuse(owner_of(ctx, owner), resource_of(what), 1);
}

struct tables_ledger ledger_of(struct host *h)
{
	return (struct tables_ledger){
		.hold = hold, .held = held, .share = share, .refuse = refuse, .ctx = h
	};
}
