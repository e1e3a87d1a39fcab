/* SPDX-License-Identifier: Apache-2.0 */
#include "common/budget.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include "common/heap.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) KIB((uint64_t)(n) << 10)

/* What is there before any container has anything in it: program text, libraries, the stacks of
 * their threads, kernel symbols. And so many thousandths of what is left of the limit. */
static const struct share {
	size_t at;
	uint64_t least;
	uint32_t per_mille;
} shares[] = {
	{ offsetof(struct budget, maps), MIB(8), 230 },
	{ offsetof(struct budget, bpf), MIB(13), 140 },
	{ offsetof(struct budget, deltas), MIB(6), 90 },
	{ offsetof(struct budget, symd), MIB(12), 430 },
	{ offsetof(struct budget, export), MIB(6), 110 },
	{ offsetof(struct budget, launcher), MIB(1), 0 },
};

#define MAPS offsetof(struct budget, maps)
#define BPF offsetof(struct budget, bpf)
#define SYMD offsetof(struct budget, symd)
#define EXPORT offsetof(struct budget, export)

/* Of a tool's share, less what it has before any container, so many thousandths, and at least so
 * much; more than so much is of no use. */
static const struct part {
	size_t at, of;
	uint64_t base, least, most;
	uint32_t per_mille;
} parts[] = {
	{ offsetof(struct budget, sideband), MAPS, 0, KIB(256), MIB(512), 120 },
	{ offsetof(struct budget, ring), MAPS, 0, KIB(512), MIB(16), 120 },
	{ offsetof(struct budget, interned), BPF, MIB(9), MIB(1), MIB(32), 180 },
	{ offsetof(struct budget, outbox), BPF, MIB(9), MIB(1), MIB(64), 300 },
	{ offsetof(struct budget, deferred), BPF, MIB(9), MIB(1), MIB(64), 200 },
	{ offsetof(struct budget, programs), SYMD, MIB(6), MIB(1), MIB(512), 40 },
	{ offsetof(struct budget, dwarf), SYMD, MIB(6), MIB(2), MIB(512), 580 },
	{ offsetof(struct budget, generated), SYMD, MIB(6), MIB(1), MIB(96), 115 },
	{ offsetof(struct budget, objects), SYMD, MIB(6), MIB(1), MIB(64), 45 },
	{ offsetof(struct budget, definitions), SYMD, MIB(6), MIB(2), MIB(128), 190 },
	{ offsetof(struct budget, names), SYMD, MIB(6), KIB(512), MIB(16), 30 },
	{ offsetof(struct budget, model), EXPORT, MIB(2), MIB(3), MIB(4096), 800 },
};

static uint64_t *at(struct budget *b, size_t offset)
{
	return (uint64_t *)((char *)b + offset);
}

void budget_split(uint64_t limit, struct budget *ret)
{
	uint64_t rest = limit;

	assert(limit >= BUDGET_LEAST && limit <= BUDGET_MOST);
	*ret = (struct budget){ .limit = limit };
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		rest -= shares[i].least;
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		*at(ret, shares[i].at) = shares[i].least + rest / 1000 * shares[i].per_mille;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct part *p = &parts[i];
		uint64_t n = (*at(ret, p->of) - p->base) / 1000 * p->per_mille;

		n = n < p->least ? p->least : n > p->most ? p->most : n;
		*at(ret, p->at) = n;
	}
}

uint64_t budget_fence(uint64_t share, unsigned threads)
{
	/* Containers are what holds the share; the fence is behind them, for what nobody foresaw,
	 * and a tool that meets it may die. What nng queues, and what malloc has and does not use,
	 * is between the two, as are the pages of stacks that no thread has come to. */
	return share + MIB(6) + (uint64_t)threads * HEAP_STACK;
}

bool budget_parse(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	uint64_t n = 0;
	const char *s = text;

	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			return false;
	if (s == text)
		return false;
	const char upper = *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;
	const char *unit = upper ? strchr(units, upper) : NULL;

	if (unit) {
		const unsigned shift = 10 * (unsigned)(unit - units + 1);

		if (n > UINT64_MAX >> shift)
			return false;
		n <<= shift;
		s++;
		if (s[0] == 'i' && s[1] == 'B')
			s++;
	}
	if (*s == 'B')
		s++;
	if (*s)
		return false;
	*ret = n;
	return true;
}
