/* SPDX-License-Identifier: Apache-2.0 */
/* The process in which libdw runs, when it dies, hangs, lacks memory, or has been taken over. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include "common/base/system/clock.h"
#include "common/names/program/programwire.h"
#include "common/wire/peer/lastword.h"
#include "tests/unit/forbidden.h"
#include "tests/unit/program_fixture.h"

Test(fileworker, a_worker_that_is_killed_while_nothing_is_asked_costs_nothing)
{
	struct symfile *f = self();
	struct program *d;

	start();
	cr_assert_eq(open_self(f, MAX, &d), 0);
	for (int i = 0; i < 20; i++) {
		expect_names(d, "outer");

		const pid_t worker = the_worker();

		cr_assert_eq(kill(worker, SIGKILL), 0);
		/* Dead when its socket is closed; a zombie still exists. */
		for (char state = 0; state != 'Z';) {
			char path[64];

			snprintf(path, sizeof(path), "/proc/%d/stat", worker);
			FILE *s = fopen(path, "re");

			cr_assert(s && fscanf(s, "%*d (%*[^)]) %c", &state) == 1);
			fclose(s);
		}
	}
	expect_names(d, "outer");
	program_free(d);
	symfile_free(f);
}

/* Kills a stopped worker once it has a request. */
static pid_t kill_when_asked(void)
{
	const pid_t worker = the_worker();

	cr_assert_eq(kill(worker, SIGSTOP), 0);
	const pid_t killer = fork();

	if (killer == 0) {
		usleep(500000);
		_exit(kill(worker, SIGKILL) ? 1 : 0);
	}
	return killer;
}

static void await(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

Test(fileworker, a_file_that_the_worker_is_killed_over_is_read_once_more)
{
	struct symfile *f = self();
	struct program *d, *later;

	start();
	cr_assert_eq(open_self(f, MAX, &d), 0);
	expect_names(d, "outer");
	cr_assert_eq(program_dwarf_kills(d), 0);

	pid_t killer = kill_when_asked();

	expect_names(d, "outer");
	cr_assert_eq(program_dwarf_kills(d), 1);
	await(killer);

	killer = kill_when_asked();
	cr_assert_eq(open_self(f, MAX, &later), 0);
	expect_names(later, "outer");
	cr_assert_eq(program_dwarf_kills(later), 1);
	cr_assert_eq(program_dwarf_kills(d), 1, "it was not asked for");
	await(killer);

	killer = kill_when_asked();
	cr_assert_eq(program_lookup(d, NAME, &names), SYMFILE_NONE);
	cr_assert(program_dwarf_lost(d) && program_dwarf_kills(d) == 2);
	await(killer);
	expect_names(later, "outer");
	program_free(d);
	program_free(later);
	symfile_free(f);
}

Test(fileworker, a_worker_has_a_limit_of_cpu_time_and_is_replaced_before_it)
{
	char path[64], line[256];
	struct symfile *f = self();
	unsigned long soft = 0, hard = 0;
	struct program *d;

	start_for(1);
	cr_assert_eq(open_self(f, MAX, &d), 0);
	const pid_t worker = the_worker();

	snprintf(path, sizeof(path), "/proc/%d/limits", worker);
	FILE *limits = fopen(path, "re");

	cr_assert(limits);
	while (fgets(line, sizeof(line), limits))
		sscanf(line, "Max cpu time %lu %lu", &soft, &hard);
	fclose(limits);
	cr_assert(hard > FILEWORKER_LIFE_S && hard < 2 * FILEWORKER_LIFE_S && soft == hard);

	cr_assert_eq(program_lookup(d, WORK, &names), 0);
	expect_names(d, "outer");
	cr_assert_eq(the_worker(), worker);
	cr_assert_eq(program_lookup(d, NAP, &names), 0);
	cr_assert_eq(program_lookup(d, NAP, &names), 0);
	expect_names(d, "outer");
	cr_assert_eq(the_worker(), worker, "a nap is no work");
	cr_assert_eq(program_lookup(d, WORK, &names), 0);
	expect_names(d, "outer");
	cr_assert_neq(the_worker(), worker);
	cr_assert_eq(program_dwarf_kills(d), 0);
	program_free(d);
	symfile_free(f);
}

/* Repeats a lookup until it is answered. */
static int look_until_answered(struct program *d, uint64_t deed)
{
	int r;

	while ((r = program_lookup(d, deed, &names)) == VERDICT_LATER)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	return r;
}

Test(fileworker, a_slow_lookup_holds_up_no_other_program)
{
	struct symfile *f = self();
	struct program *slow, *slow_too, *good;

	start();
	program_take_turns(50000000);
	cr_assert_eq(open_self(f, MAX, &good), 0);
	cr_assert_eq(open_self(f, MAX, &slow), 0);
	cr_assert_eq(open_self(f, MAX, &slow_too), 0);
	expect_names(good, "outer");
	cr_assert_eq(program_lookup(slow, WORK, &names), VERDICT_LATER);
	cr_assert(program_is_slow(slow) && !program_is_slow(good));
	expect_names(good, "outer");
	cr_assert_eq(program_lookup(slow, NAME, &names), VERDICT_LATER, "another lookup");
	cr_assert_eq(program_lookup(slow_too, WORK, &names), VERDICT_LATER);
	cr_assert(program_is_slow(slow_too));
	cr_assert(program_must_wait(PROGRAM_OF_OTHERS, slow_too));
	expect_names(good, "outer");
	cr_assert_eq(look_until_answered(slow, WORK), 0);
	cr_assert(str_eq(names.calls[1].name, STR_LIT("outer")));
	cr_assert_geq(program_worked_ns(slow), 400000000);
	cr_assert_lt(program_worked_ns(good), 400000000);
	cr_assert_eq(look_until_answered(slow_too, WORK), 0);
	expect_names(good, "outer");
	cr_assert(!program_dwarf_lost(slow) && !program_dwarf_lost(slow_too));
	program_free(slow);
	program_free(slow_too);
	expect_names(good, "outer");
	program_free(good);
	symfile_free(f);
}

Test(fileworker, an_offer_waits_for_a_busy_worker)
{
	struct symfile *f = self();
	struct program *slow, *offered;
	struct span id;
	const char *name;

	start();
	program_take_turns(50000000);
	cr_assert_eq(open_self(f, MAX, &slow), 0);
	cr_assert_eq(program_open(open("/bin/true", O_RDONLY | O_CLOEXEC), PROGRAM_OF_OTHERS, 0,
				  &offered),
		     0);
	program_set_slow(offered, true);
	cr_assert_eq(program_lookup(slow, WORK, &names), VERDICT_LATER);
	cr_assert_eq(program_wants(offered, &id, &name), PROGRAM_WANTS_ALT);
	cr_assert(!program_offer(offered, -1));
	cr_assert(program_offer_waits(offered));
	cr_assert_eq(program_wants(offered, &id, &name), PROGRAM_WANTS_LATER);
	cr_assert_eq(program_lookup(offered, NAME, &names), VERDICT_LATER);
	cr_assert_eq(look_until_answered(slow, WORK), 0);
	cr_assert_eq(program_wants(offered, &id, &name), PROGRAM_WANTS_NOTHING);
	cr_assert_eq(id.len, 0, "it is the id of this want");
	cr_assert(!program_offer_waits(offered));
	program_free(slow);
	program_free(offered);
	symfile_free(f);
}

Test(fileworker, an_unread_answer_delays_no_other)
{
	struct symfile *f = self();
	struct program *slow, *slow_too;

	start();
	program_take_turns(50000000);
	cr_assert_eq(open_self(f, MAX, &slow), 0);
	cr_assert_eq(open_self(f, MAX, &slow_too), 0);
	cr_assert_eq(program_lookup(slow, WORK, &names), VERDICT_LATER);
	program_set_slow(slow_too, true);
	cr_assert_eq(look_until_answered(slow_too, NAME), 0);
	cr_assert_eq(program_lookup(slow, WORK, &names), VERDICT_LATER);
	program_free(slow);
	cr_assert_eq(look_until_answered(slow_too, NAME), 0);
	program_free(slow_too);
	symfile_free(f);
}

Test(fileworker, work_without_end_is_given_up_by_the_patient_worker)
{
	struct symfile *f = self();
	struct program *bad, *good;

	start();
	program_take_turns(50000000);
	cr_assert_eq(open_self(f, MAX, &good), 0);
	cr_assert_eq(open_self(f, MAX, &bad), 0);
	cr_assert_eq(look_until_answered(bad, LOOP), SYMFILE_NONE);
	cr_assert(program_dwarf_lost(bad) && program_dwarf_kills(bad) == 0);
	expect_names(good, "outer");
	program_free(bad);
	program_free(good);
	symfile_free(f);
}

static void count(void *ctx)
{
	++*(unsigned *)ctx;
}

Test(fileworker, nothing_is_waited_for_after_the_end)
{
	struct symfile *f = self();
	struct program *d;

	start();
	cr_assert_eq(open_self(f, MAX, &d), 0);
	program_until(clock_mono_ns() + 100000000);
	const uint64_t begun_ns = clock_mono_ns();
	unsigned beats = 0;

	lastword_rest_with(count, &beats);
	cr_assert_eq(program_lookup(d, LOOP, &names), VERDICT_LATER);
	lastword_rest_with(NULL, NULL);
	cr_assert_lt(clock_mono_ns() - begun_ns, 2000000000);
	cr_expect_geq(beats, 2, "it reports while it waits");
	cr_assert(!program_dwarf_lost(d));
	program_free(d);
	symfile_free(f);
}

/* Where this function is in its file; other code follows. */
static uint64_t own_code(void)
{
	const uint64_t here = (uint64_t)(uintptr_t)&own_code;
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end, offset, found = 0;
	char line[4096];

	while (maps && !found && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx r-xp %lx", &start, &end, &offset) == 3 && start <= here &&
		    here < end)
			found = here - start + offset;
	if (maps)
		fclose(maps);
	return found;
}

Test(fileworker, lookups_that_were_announced_have_the_same_answers)
{
	static struct names alone;
	const uint64_t code = own_code();
	struct program *a, *b;
	unsigned named = 0, ahead = 0;

	start();
	cr_assert_gt(code, 0);
	cr_assert_eq(program_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), PROGRAM_OF_OTHERS,
				  0, &a),
		     0);
	cr_assert_eq(program_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), PROGRAM_OF_OTHERS,
				  0, &b),
		     0);
	for (unsigned i = 0; i < 60; i++) {
		uint64_t at[PROGRAM_EXPECTED + 1], address, start, alone_address, alone_start;

		for (unsigned k = 0; k <= PROGRAM_EXPECTED; k++)
			at[k] = code + 8 * (i * (PROGRAM_EXPECTED + 1) + k);
		program_expect(a, at + 1, PROGRAM_EXPECTED);
		for (unsigned k = 0; k <= PROGRAM_EXPECTED; k++) {
			ahead += program_has(a, at[k]);
			const int r = program_find(a, at[k], &names, &address, &start);

			cr_assert_eq(program_find(b, at[k], &alone, &alone_address, &alone_start),
				     r);
			cr_assert(address == alone_address && start == alone_start);
			cr_assert_eq(names.count, alone.count);
			cr_assert(r || str_eq(names.calls[0].name, alone.calls[0].name));
			named += !r;
		}
	}
	cr_assert_gt(named, 600);
	/* Some come one by one, because the worker had no time for them. */
	cr_assert_gt(ahead, 100);
	program_free(a);
	program_free(b);
}

Test(fileworker, more_files_than_a_worker_has_room_for_are_refused)
{
	static struct program *d[PROGRAMWIRE_PROGRAMS];
	struct symfile *f = self();
	struct program *more;

	start();
	for (size_t i = 0; i < PROGRAMWIRE_PROGRAMS; i++)
		cr_assert_eq(open_self(f, MAX, &d[i]), 0);
	cr_assert_eq(open_self(f, MAX, &more), -EMFILE);
	expect_names(d[0], "outer");
	program_free(d[0]);
	cr_assert_eq(open_self(f, MAX, &d[0]), 0);
	for (size_t i = 0; i < PROGRAMWIRE_PROGRAMS; i++)
		program_free(d[i]);
	symfile_free(f);
}

Test(fileworker, a_crash_costs_its_file_only)
{
	costs_its_file_only(CRASH);
}

Test(fileworker, an_exit_costs_its_file_only)
{
	costs_its_file_only(LEAVE);
}

Test(fileworker, work_without_end_costs_its_file_only)
{
	costs_its_file_only(LOOP);
}

Test(fileworker, a_malformed_answer_costs_only_its_file)
{
	costs_its_file_only(CHATTER);
}

#ifndef __SANITIZE_ADDRESS__ /* it has neither the limits nor the filter of system calls */
static void is_too_large(uint64_t deed)
{
	struct symfile *f = self();
	struct program *bad, *good;

	start();
	cr_assert_eq(open_self(f, MAX, &good), 0);
	cr_assert_eq(open_self(f, MAX, &bad), 0);
	expect_names(good, "outer");
	cr_assert_eq(program_lookup(bad, deed, &names), SYMFILE_NONE);
	cr_assert(program_dwarf_too_large(bad) && !program_dwarf_lost(bad));
	program_free(bad);
	expect_names(good, "outer");
	program_free(good);
	symfile_free(f);
}

Test(fileworker, a_file_that_takes_all_memory_is_too_large)
{
	is_too_large(MEMORY);
}

Test(fileworker, a_file_whose_reading_aborts_for_want_of_memory_is_too_large)
{
	is_too_large(MEMORY_ABORT);
}

Test(fileworker, a_file_whose_reading_goes_through_memory_it_was_refused_is_too_large)
{
	is_too_large(MEMORY_THROUGH);
}

Test(fileworker, output_of_libdw_does_not_reach_the_terminal)
{
	struct symfile *f = self();
	struct program *d;
	char text[64];
	int ends[2];

	cr_assert_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);

	const int before = dup(STDERR_FILENO);

	cr_assert(before >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
	start();
	cr_assert(dup2(before, STDERR_FILENO) >= 0);
	cr_assert_eq(open_self(f, MAX, &d), 0);
	cr_assert_eq(program_lookup(d, SHOUT, &names), SYMFILE_NONE);
	cr_assert(program_dwarf_lost(d), "a signal of a pipe without a reader does not end it");
	cr_assert_lt(read(ends[0], text, sizeof(text)), 0);
	program_free(d);
	symfile_free(f);
}

Test(fileworker, a_worker_that_was_taken_over_is_killed_at_its_first_call)
{
	struct symfile *f = self();

	start();
	for (uint64_t i = 0; i < FORBIDDEN_TO_ALL; i++) {
		struct program *d;

		cr_assert_eq(open_self(f, MAX, &d), 0);
		cr_assert_eq(program_lookup(d, FIRST_CALL + i, &names), SYMFILE_NONE, "call %d",
			     (int)i);
		cr_assert(program_dwarf_lost(d), "call %d", (int)i);
		program_free(d);
	}
	symfile_free(f);
}
#endif
