/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/budget/budget.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/heap.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) KIB((uint64_t)(n) << 10)

/* `least`: the memory of a tool whose containers are empty: program text, libraries, thread stacks,
 * kernel symbols. Of the rest of the limit, each tool gets a part according to its weight. extra:
 * the share exists only in runs with this tool; 0: in all runs. */
static const struct budget_share {
	size_t at;
	uint64_t least;
	uint32_t weight;
	unsigned extra;
} shares[] = {
	{ offsetof(struct budget, maps), MIB(8), 230, 0 },
	{ offsetof(struct budget, bpf), MIB(13), 140, 0 },
	{ offsetof(struct budget, deltas), MIB(6), 90, 0 },
	{ offsetof(struct budget, symd), MIB(12), 340, 0 },
	{ offsetof(struct budget, export), MIB(6), 110, 0 },
	{ offsetof(struct budget, launcher), MIB(1), 0, 0 },
	{ offsetof(struct budget, send), MIB(11), 60, BUDGET_SEND },
	{ offsetof(struct budget, requests), 0, 140, BUDGET_SEND },
	{ offsetof(struct budget, metrics), MIB(2), 0, BUDGET_METRICS },
	{ offsetof(struct budget, spare), 0, 90, 0 },
};

#define MAPS offsetof(struct budget, maps)
#define BPF offsetof(struct budget, bpf)
#define SYMD offsetof(struct budget, symd)
#define EXPORT offsetof(struct budget, export)
#define SEND offsetof(struct budget, send)

/* A part of a tool's share after `base` is subtracted: in thousandths, at least `least`, at most
 * `most`. */
static const struct budget_part {
	size_t at, of;
	uint64_t base, least, most;
	uint32_t per_mille;
} parts[] = {
	{ offsetof(struct budget, sideband), MAPS, 0, KIB(256), MIB(512), 120 },
	{ offsetof(struct budget, ring), MAPS, 0, KIB(512), MIB(16), 120 },
	{ offsetof(struct budget, interned), BPF, MIB(9), MIB(1), MIB(32), 180 },
	{ offsetof(struct budget, outbox), BPF, MIB(9), MIB(1), MIB(64), 300 },
	{ offsetof(struct budget, deferred), BPF, MIB(9), MIB(1), MIB(64), 200 },
	{ offsetof(struct budget, host), BPF, MIB(9), MIB(2), MIB(32), 320 },
	{ offsetof(struct budget, programs), SYMD, MIB(6), MIB(1), MIB(512), 40 },
	{ offsetof(struct budget, dwarf), SYMD, MIB(6), MIB(2), MIB(512), 375 },
	{ offsetof(struct budget, generated), SYMD, MIB(6), MIB(1), MIB(96), 130 },
	{ offsetof(struct budget, objects), SYMD, MIB(6), MIB(1), MIB(64), 220 },
	{ offsetof(struct budget, definitions), SYMD, MIB(6), MIB(2), MIB(128), 205 },
	{ offsetof(struct budget, names), SYMD, MIB(6), KIB(512), MIB(16), 30 },
	{ offsetof(struct budget, model), EXPORT, MIB(2), MIB(3), MIB(4096), 800 },
	/* The rest is for libraries, root certificates, connections, and requests that are being
	 * sent. */
	{ offsetof(struct budget, queues), SEND, MIB(9), MIB(1), MIB(4096), 1000 },
};

static uint64_t *at(struct budget *b, size_t offset)
{
	return (uint64_t *)((char *)b + offset);
}

static void set_part(struct budget *b, const struct budget_part *p)
{
	const uint64_t share = *at(b, p->of);

	if (!share)
		return;
	uint64_t n = share > p->base ? (share - p->base) / 1000 * p->per_mille : 0;

	n = n < p->least ? p->least : n > p->most ? p->most : n;
	*at(b, p->at) = n;
}

static bool has(const struct budget_share *s, unsigned extra)
{
	return !s->extra || s->extra & extra;
}

static uint64_t least_of(size_t at)
{
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		if (shares[i].at == at)
			return shares[i].least;
	return 0;
}

void budget_split(uint64_t limit, unsigned extra, struct budget *ret)
{
	uint64_t rest = limit, weights = 0, left;

	assert(limit >= BUDGET_LEAST && limit <= BUDGET_MOST);
	*ret = (struct budget){ .limit = limit };
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		if (!has(&shares[i], extra))
			continue;
		rest -= shares[i].least;
		weights += shares[i].weight;
	}
	left = rest;
	ret->symd_most = rest + least_of(SYMD);
	ret->export_most = rest + least_of(EXPORT);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		if (!has(&shares[i], extra))
			continue;
		const uint64_t more = rest / weights * shares[i].weight;

		*at(ret, shares[i].at) = shares[i].least + more;
		left -= more;
	}
	ret->spare += left; /* left over from rounding */
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		set_part(ret, &parts[i]);
	ret->export += ret->requests;
	ret->dwarf_most = ret->symd_most - (ret->symd - ret->dwarf);
}

void budget_symd(struct budget *b, uint64_t share)
{
	b->symd = share;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].of == SYMD)
			set_part(b, &parts[i]);
}

uint64_t budget_model(uint64_t share)
{
	struct budget b = { .export = share };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].of == EXPORT)
			set_part(&b, &parts[i]);
	return b.model;
}

static uint64_t unmet(const struct budget_claim *c)
{
	return c->wanted - c->granted;
}

uint64_t budget_settle(uint64_t limit, struct budget_claim *claims, size_t n)
{
	uint64_t left = limit;

	for (size_t i = 0; i < n; i++) {
		claims[i].granted =
			numbers_smaller(numbers_smaller(claims[i].wanted, claims[i].sure), left);
		left -= claims[i].granted;
	}
	/* Each round either satisfies at least one claim or distributes everything that is left. */
	for (;;) {
		uint64_t least = UINT64_MAX, waiting = 0;

		for (size_t i = 0; i < n; i++) {
			if (!unmet(&claims[i]))
				continue;
			waiting++;
			least = numbers_smaller(least, unmet(&claims[i]));
		}
		if (!waiting || left < waiting)
			return left;
		const uint64_t each = numbers_smaller(least, left / waiting);

		for (size_t i = 0; i < n; i++) {
			if (!unmet(&claims[i]))
				continue;
			claims[i].granted += each;
			left -= each;
		}
	}
}

uint64_t budget_fence(uint64_t share, unsigned threads)
{
	/* A tool's containers normally keep it within its share. The fence stops unexpected growth,
	 * and a tool that hits it may die. So the fence adds room for nng's queues, for free memory
	 * that malloc keeps, and for unused pages of stacks. */
	return share + MIB(6) + (uint64_t)threads * HEAP_STACK;
}
