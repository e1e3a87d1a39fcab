/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <unistd.h>
#include <fcntl.h>
#include "tools/prof-bpf/limit.h"

#define MIB (1ull << 20)

static struct budget b;
static struct limit l;

static void begin(uint64_t limit)
{
	budget_split(limit, &b);
	l = (struct limit){ .fixed = 6 * MIB, .tables = b.maps - 6 * MIB };
}

/* What all take when little happens. */
static const struct limit_asked quiet = { .held = { 8 * MIB, 5 * MIB, 9 * MIB, 3 * MIB },
					  .tables = 4 * MIB };

static uint64_t all_of(const struct limit_asked *a, uint64_t tables)
{
	return l.fixed + b.launcher + a->held[DEPLOY_BPF] + a->held[DEPLOY_DELTAS] + l.symd +
	       a->held[DEPLOY_EXPORT] + tables;
}

Test(limit, rows_have_what_nobody_else_wants)
{
	begin(128 * MIB);
	cr_assert_gt(limit_divide(&l, &b, &quiet), 40 * MIB, "of 128");
	cr_assert_eq(l.enough, 0, "nothing was refused");
}

Test(limit, the_sum_stays_below_the_limit)
{
	for (uint64_t limit = BUDGET_LEAST; limit <= 4096 * MIB; limit += limit / 3) {
		struct limit_asked a = quiet;

		begin(limit);
		a.symd = limit / 2;
		a.lacking = limit;
		const uint64_t tables = limit_divide(&l, &b, &a);

		cr_assert_leq(all_of(&a, tables), limit, "%lu", limit);
		cr_assert_geq(tables, l.tables, "%lu: what is sure", limit);
		cr_assert_geq(l.symd, b.symd < a.held[DEPLOY_SYMD] ? b.symd : a.held[DEPLOY_SYMD]);
	}
}

Test(limit, what_the_tables_have_is_granted_to_prof_symd_when_they_have_handed_it_back)
{
	struct limit_asked a = quiet;

	begin(128 * MIB);
	a.symd = b.symd;
	const uint64_t most = limit_divide(&l, &b, &a);

	a.tables = most;
	a.symd = 80 * MIB;
	const uint64_t now = limit_divide(&l, &b, &a), first = l.symd;

	cr_assert_lt(now, most, "they are to hand some back");
	cr_assert_leq(all_of(&a, most), 128 * MIB);
	a.tables = now;
	cr_assert_eq(limit_divide(&l, &b, &a), now);
	cr_assert_gt(l.symd, first);
}

Test(limit, rows_in_use_do_not_go_for_what_prof_symd_only_asks_for)
{
	struct limit_asked a = quiet;

	begin(128 * MIB);
	a.held[DEPLOY_SYMD] = 20 * MIB;
	a.tables = 36 * MIB;
	a.useful = 34 * MIB;
	a.symd = b.symd + 40 * MIB;
	cr_assert_geq(limit_divide(&l, &b, &a), 36 * MIB);
	cr_assert_geq(l.symd, a.held[DEPLOY_SYMD] + b.dwarf, "the next file's DWARF has room");
	/* Idle ones do. */
	const uint64_t before = l.symd;

	a.useful = 4 * MIB;
	const uint64_t tables = limit_divide(&l, &b, &a);

	cr_assert_lt(tables, 36 * MIB);
	a.tables = tables;
	(void)limit_divide(&l, &b, &a);
	cr_assert_gt(l.symd, before);
	/* And what prof-symd holds counts as much. */
	a.held[DEPLOY_SYMD] = b.symd;
	a.tables = a.useful = 60 * MIB;
	(void)limit_divide(&l, &b, &a);
	a.tables = limit_divide(&l, &b, &a);
	(void)limit_divide(&l, &b, &a);
	cr_assert_geq(l.symd, b.symd, "%lu of %lu", l.symd, b.symd);
}

Test(limit, the_limit_that_would_have_sufficed_is_named_and_suffices)
{
	struct limit_asked a = quiet;

	begin(64 * MIB);
	a.tables = limit_divide(&l, &b, &a);
	a.lacking = 70 * MIB;
	(void)limit_divide(&l, &b, &a);
	const uint64_t enough = l.enough;

	cr_assert_gt(enough, 64 * MIB + 30 * MIB);
	cr_assert_lt(enough, 64 * MIB + 3 * 70 * MIB);
	begin(enough);
	cr_assert_geq(limit_divide(&l, &b, &a), a.tables + a.lacking);
}

Test(limit, a_tool_of_which_nothing_is_known_keeps_its_share)
{
	const struct limit_asked unknown = { .tables = 4 * MIB };

	begin(128 * MIB);
	const uint64_t tables = limit_divide(&l, &b, &unknown);

	cr_assert_geq(tables, l.tables);
	cr_assert_leq(tables + b.bpf + b.deltas + b.symd + b.export, 128 * MIB);
}

Test(limit, the_meter_reads_what_the_kernel_says)
{
	const struct deploy d = { .uid = { getuid(), getuid(), getuid(), getuid() } };
	struct meter m = { .proc = open("/proc", O_PATH | O_DIRECTORY), .deploy = &d };
	uint64_t first[DEPLOY_TOOLS], then[DEPLOY_TOOLS];
	const size_t n = 16 * MIB;

	meter_read(&m, 1, first);
	cr_assert_gt(first[DEPLOY_BPF], 100 << 10);
	volatile char *p = malloc(n);

	for (size_t i = 0; i < n; i += 4096)
		p[i] = (char)i;
	meter_read(&m, 2, then);
	/* Pages that it shares with the other tests count in part, and they come and go. */
	cr_assert_geq(then[DEPLOY_BPF], n);
	cr_assert_lt(first[DEPLOY_BPF], n);
	free((void *)p);
	close(m.proc);
}
