/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "tools/prof-bpf/limit/cpulimit.h"
#include "tools/prof-bpf/limit/limit.h"

#define MIB (1ull << 20)

static struct budget b;
static struct limit l;

static void begin(uint64_t limit)
{
	budget_split(limit, 0, &b);
	l = (struct limit){ .fixed = 6 * MIB, .sure = b.maps - 6 * MIB };
}

/* The memory of all tools when there is little load. */
static const struct limit_asked quiet = { .held = { 8 * MIB, 5 * MIB, 9 * MIB, 3 * MIB },
					  .tables = 4 * MIB };

/* Others may use the part of prof-symd's share that it does not hold. */
static uint64_t all_of(const struct limit_asked *a, uint64_t tables)
{
	const uint64_t symd = l.symd > b.symd ? l.symd : a->held[DEPLOY_SYMD];

	return l.fixed + b.launcher + a->held[DEPLOY_BPF] + a->held[DEPLOY_DELTAS] + symd +
	       a->held[DEPLOY_EXPORT] + tables;
}

Test(limit, rows_get_the_memory_that_no_other_wants)
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
		cr_assert_geq(tables, l.sure, "%lu: what is sure", limit);
		cr_assert_geq(l.symd, b.symd < a.held[DEPLOY_SYMD] ? b.symd : a.held[DEPLOY_SYMD]);
	}
}

Test(limit, prof_symd_gets_memory_when_the_tables_have_freed_it)
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

Test(limit, rows_in_use_are_not_evicted_for_mere_wishes_of_prof_symd)
{
	struct limit_asked a = quiet;

	begin(96 * MIB);
	a.held[DEPLOY_SYMD] = 20 * MIB;
	a.tables = 36 * MIB;
	a.useful = 34 * MIB;
	a.symd = b.symd + 40 * MIB;
	cr_assert_geq(limit_divide(&l, &b, &a), 36 * MIB);
	cr_assert_geq(l.symd, a.held[DEPLOY_SYMD]);
	/* Idle ones do. */
	const uint64_t before = l.symd;

	a.useful = 4 * MIB;
	const uint64_t tables = limit_divide(&l, &b, &a);

	cr_assert_lt(tables, 36 * MIB);
	a.tables = tables;
	(void)limit_divide(&l, &b, &a);
	cr_assert_gt(l.symd, before);
	/* Memory that prof-symd holds counts in the same way. */
	a.held[DEPLOY_SYMD] = b.symd;
	a.tables = a.useful = 60 * MIB;
	(void)limit_divide(&l, &b, &a);
	a.tables = limit_divide(&l, &b, &a);
	(void)limit_divide(&l, &b, &a);
	cr_assert_geq(l.symd, b.symd, "%lu of %lu", l.symd, b.symd);
}

Test(limit, rows_get_memory_that_prof_symd_wants_but_does_not_hold)
{
	/* Half of the rows are idle, and their room becomes free only after the grace period. */
	struct limit_asked a = quiet;

	begin(200 * MIB);
	a.symd = b.symd_most;
	a.tables = 70 * MIB;
	a.useful = 35 * MIB;
	(void)limit_divide(&l, &b, &a);
	cr_assert_gt(l.symd, 80 * MIB);
	a.lacking = 20 * MIB;
	cr_assert_geq(limit_divide(&l, &b, &a), (a.tables + a.lacking) / 15 * 16);
}

/* What the tools held when a limit of 64 MiB once counted as reached at 43 MiB. */
Test(limit, rows_lack_memory_only_when_the_limit_is_reached)
{
	for (uint64_t limit = BUDGET_LEAST; limit <= 1024 * MIB; limit += limit / 3) {
		struct limit_asked a = { .held = { 9 * MIB, 2 * MIB, 14 * MIB, 3 * MIB },
					 .tables = 10 * MIB,
					 .useful = 9 * MIB,
					 .lacking = 2 * limit };

		begin(limit);
		/* As long as rows lack room, it may only ask and wait. */
		a.symd = b.symd + 8 * MIB;
		for (uint64_t now = 1; now < 8; now++) {
			a.swing = limit_swing(&l.past, limit, 28 * MIB, now * 1000000000);
			a.tables = limit_divide(&l, &b, &a) / TABLES_SLAB_BYTES * TABLES_SLAB_BYTES;
			a.useful = a.tables;
		}
		const uint64_t used = l.fixed + b.launcher + 28 * MIB + a.tables;

		cr_assert_geq(used, limit / 100 * 92, "%lu of %lu", used >> 20, limit >> 20);
		cr_assert_leq(used, limit);
	}
}

Test(limit, a_tool_may_take_again_memory_that_it_just_freed)
{
	struct limit_past p = { .last_s = 0 };
	const uint64_t s = 1000000000, limit = 64 * MIB;

	cr_assert_eq(limit_swing(&p, limit, 20 * MIB, 100 * s), 0);
	cr_assert_eq(limit_swing(&p, limit, 26 * MIB, 100 * s + 1), 0);
	cr_assert_eq(limit_swing(&p, limit, 20 * MIB, 102 * s), 6 * MIB);
	cr_assert_eq(limit_swing(&p, limit, 20 * MIB, 104 * s), 6 * MIB);
	cr_assert_eq(limit_swing(&p, limit, 20 * MIB, 105 * s), 0, "long ago");
	cr_assert_eq(limit_swing(&p, limit, 21 * MIB, 106 * s), MIB, "it grows");
	cr_assert_lt(limit_swing(&p, limit, 61 * MIB, 107 * s), 4 * MIB, "that has an end");
	cr_assert_eq(limit_swing(&p, limit, 10 * MIB, 300 * s), 0, "no measurement meanwhile");
	cr_assert_eq(limit_swing(&p, limit, 10 * MIB, 1 * s), 0, "a clock that went back");
}

Test(limit, the_limit_that_would_have_sufficed_is_named_and_suffices)
{
	for (uint64_t lacking = MIB; lacking <= 700 * MIB; lacking += lacking / 2) {
		struct limit_asked a = quiet;

		begin(64 * MIB);
		a.tables = a.useful = limit_divide(&l, &b, &a);
		a.lacking = lacking;
		(void)limit_divide(&l, &b, &a);
		const uint64_t enough = l.enough, fixed = l.fixed;

		cr_assert_gt(enough, 64 * MIB);
		cr_assert_lt(enough, 64 * MIB + lacking * 3 / 2 + 12 * MIB);
		/* The rings grow with the limit. */
		begin(enough);
		l.fixed = fixed + (enough - 64 * MIB) / 12;
		const uint64_t room = limit_divide(&l, &b, &a) / TABLES_SLAB_BYTES *
				      TABLES_SLAB_BYTES;

		cr_assert_geq(room - room / 16, a.useful + lacking, "%lu MiB more", lacking / MIB);
	}
}

Test(limit, a_tool_without_measurements_keeps_its_share)
{
	const struct limit_asked unknown = { .tables = 4 * MIB };

	begin(128 * MIB);
	const uint64_t tables = limit_divide(&l, &b, &unknown);

	cr_assert_geq(tables, l.sure);
	cr_assert_leq(tables + b.bpf + b.deltas + b.symd + b.export, 128 * MIB);
}

Test(limit, memory_of_optional_tools_comes_off_the_tables)
{
	for (int t = DEPLOY_SEND; t <= METER_METRICS; t++) {
		struct limit_asked a = quiet;

		begin(128 * MIB);
		const uint64_t without = limit_divide(&l, &b, &a);

		begin(128 * MIB);
		a.held[t] = 10 * MIB;
		cr_assert_eq(limit_divide(&l, &b, &a), without - 10 * MIB);
	}
}

/* While all want more than there is. */
Test(limit, prof_send_and_prof_metrics_are_sure_of_their_shares)
{
	for (uint64_t limit = BUDGET_LEAST; limit <= 4096 * MIB; limit += limit / 3) {
		struct limit_asked a = { .lacking = limit,
					 .tables = limit / 4,
					 .useful = limit / 4 };

		budget_split(limit, BUDGET_SEND | BUDGET_METRICS, &b);
		l = (struct limit){ .fixed = 4 * MIB, .sure = b.maps - 4 * MIB };
		a.held[DEPLOY_BPF] = b.bpf;
		a.held[DEPLOY_DELTAS] = b.deltas;
		a.held[DEPLOY_SYMD] = b.symd;
		a.held[DEPLOY_EXPORT] = b.export;
		const uint64_t without = limit_divide(&l, &b, &a);

		a.held[DEPLOY_SEND] = b.send;
		a.held[METER_METRICS] = b.metrics;
		const uint64_t tables = limit_divide(&l, &b, &a);

		cr_assert_leq(l.fixed + b.launcher + b.bpf + b.deltas + b.symd + b.export + b.send +
				      b.metrics + tables,
			      limit, "%lu", limit);
		cr_assert_leq(tables, without);
	}
}

Test(limit, the_meter_reads_what_the_kernel_says)
{
	const struct deploy d = { .uid = { getuid(), getuid(), getuid(), getuid() } };
	struct meter m = { .proc = open("/proc", O_PATH | O_DIRECTORY), .deploy = &d };
	uint64_t first[METER_TOOLS], then[METER_TOOLS];
	const size_t n = 16 * MIB;

	meter_read(&m, 1, first);
	cr_assert_gt(first[DEPLOY_BPF], 100 << 10);
	volatile char *p = malloc(n);

	for (size_t i = 0; i < n; i += 4096)
		p[i] = (char)i;
	meter_read(&m, 2, then);
	/* Pages shared with the other tests count in part, and change at any time. */
	cr_assert_geq(then[DEPLOY_BPF], n);
	cr_assert_lt(first[DEPLOY_BPF], n);
	free((void *)p);
	close(m.proc);
}

Test(limit, the_meter_visits_pages_only_after_a_change_or_some_time)
{
	const struct deploy d = { .uid = { 0 } };
	struct meter m = { .proc = open("/proc", O_PATH | O_DIRECTORY), .deploy = &d };
	const uint64_t s = 1000000000ull, mark = 3000 * MIB;
	uint64_t got[METER_TOOLS];
	volatile char *p = malloc(16 * MIB), *more = malloc(8 * MIB);

	for (size_t i = 0; i < 16 * MIB; i += 4096)
		p[i] = (char)i;
	meter_read(&m, s, got);
	cr_assert_eq(m.reads[0].pid, getpid());
	cr_assert_eq(m.reads[0].pss, got[DEPLOY_BPF]);
	m.reads[0].pss = mark;
	for (size_t i = 0; i < MIB; i += 4096)
		more[i] = (char)i;
	meter_read(&m, 2 * s, got);
	cr_assert_geq(got[DEPLOY_BPF], mark + MIB / 2, "it follows the resident size");
	cr_assert_leq(got[DEPLOY_BPF], mark + 2 * MIB);
	for (size_t i = 0; i < 8 * MIB; i += 4096)
		more[i] = (char)i;
	meter_read(&m, 3 * s, got);
	cr_assert_lt(got[DEPLOY_BPF], mark, "that has changed too much");
	m.reads[0].pss = mark;
	meter_read(&m, 34 * s, got);
	cr_assert_lt(got[DEPLOY_BPF], mark, "that is too old");
	free((void *)p);
	free((void *)more);
	close(m.proc);
}

/* Uses so much cpu time, in ns. */
static void burn(uint64_t ns)
{
	const uint64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
		;
}

/* Workers come and go. The end of one once made all cpu time of prof-bpf count again, so that
 * samples were dropped. */
Test(limit, cpu_time_is_counted_once_though_processes_end)
{
	const uint64_t s = 1000000000ull, ms = 1000000ull;
	const struct deploy d = { .uid = { 0 } };
	struct meter m = { .proc = open("/proc", O_PATH | O_DIRECTORY), .deploy = &d };
	struct cpulimit c;
	int ready[2];
	char byte;

	cpulimit_init(&c, 2, 1);
	cr_assert_eq(pipe(ready), 0);
	burn(300 * ms);
	const pid_t worker = fork();
	if (worker == 0) {
		burn(20 * ms);
		if (write(ready[1], "", 1) == 1)
			alarm(60);
		pause();
		_exit(0);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	cr_assert(cpulimit_run(&c, &m, s));
	kill(worker, SIGKILL);
	wait(NULL);
	for (unsigned i = 1; i <= 4; i++)
		cr_assert(cpulimit_run(&c, &m, s + i * CPULIMIT_STEP_NS));
	cr_assert_eq(c.drop, 0, "%u", c.drop);
	close(m.proc);
}

Test(limit, cpu_time_is_read_less_often_while_little_is_used)
{
	const struct deploy d = { .uid = { 0 } };
	struct meter m = { .proc = open("/proc", O_PATH | O_DIRECTORY), .deploy = &d };
	struct cpulimit c;
	uint64_t now = 1000000000ull;

	cpulimit_init(&c, 100, 4);
	for (unsigned i = 0; i < CPULIMIT_STEPS; i++, now += CPULIMIT_STEP_NS)
		cr_assert(cpulimit_run(&c, &m, now), "%u", i);
	cr_assert(!cpulimit_run(&c, &m, now));
	cr_assert(cpulimit_run(&c, &m, now + 3 * CPULIMIT_STEP_NS));
	/* With another limit, the use may be high. */
	cpulimit_set(&c, 1);
	cr_assert(cpulimit_run(&c, &m, now + 4 * CPULIMIT_STEP_NS));
	close(m.proc);
}

/* A process called prof-symd, of 16 MiB, with a child of the same name and user. */
static void be_symd(int ready)
{
	prctl(PR_SET_NAME, "prof-symd", 0, 0, 0);
	if (setuid(59303))
		_exit(1);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		pause();
	}
	volatile char *p = malloc(16 * MIB);
	const pid_t pid = getpid();

	for (size_t i = 0; i < 16 * MIB; i += 4096)
		p[i] = (char)i;
	if (write(ready, &pid, sizeof(pid)) < 0)
		_exit(1);
	alarm(60);
	pause();
	_exit(0);
}

/* Like the launcher: starts a prof-symd, and a prof-bpf that looks for it. */
static int be_launcher(void)
{
	const struct deploy d = { .uid = { [DEPLOY_SYMD] = 59303, [DEPLOY_EXPORT] = 59304 } };
	uint64_t got[METER_TOOLS];
	int ready[2], status;
	pid_t pid = 0;

	if (pipe(ready))
		return 2;
	const pid_t symd = fork();

	if (symd == 0)
		be_symd(ready[1]);
	if (read(ready[0], &pid, sizeof(pid)) != sizeof(pid))
		return 3;
	const pid_t bpf = fork();

	if (bpf == 0) {
		struct meter m = { .proc = open("/proc", O_PATH | O_DIRECTORY), .deploy = &d };

		meter_read(&m, 1, got);
		_exit(got[DEPLOY_SYMD] >= 16 * MIB && got[DEPLOY_SYMD] < 32 * MIB &&
				      !got[DEPLOY_EXPORT]
			      ? 7
			      : 4);
	}
	waitpid(bpf, &status, 0);
	kill(symd, SIGKILL);
	return WEXITSTATUS(status);
}

Test(limit, a_tool_of_the_same_parent_is_found_by_its_name_and_user)
{
	int status;
	const pid_t launcher = fork();

	if (launcher == 0)
		_exit(be_launcher());
	cr_assert_eq(waitpid(launcher, &status, 0), launcher);
	cr_assert_eq(WEXITSTATUS(status), 7, "%d", WEXITSTATUS(status));
}
