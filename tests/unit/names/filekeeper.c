/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper of workers, when its owner ends or the keeper itself is stopped. */
#include <signal.h>
#include <sys/wait.h>
#include "common/base/system/clock.h"
#include "tests/unit/program_fixture.h"

Test(filekeeper, the_keeper_ends_with_its_owner)
{
	int control, status;

	cr_assert_eq(filekeeper_start(&fileworker_class, &codeworker_class, 64u << 20, &control),
		     0);
	program_use_keeper(control, FILEWORKER_LIFE_S, 64u << 20, 0);
	struct symfile *f = self();
	struct program *d;

	cr_assert_eq(open_self(f, MAX, &d), 0);
	close(control);
	cr_assert_gt(wait(&status), 0);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	cr_assert_eq(program_lookup(d, NAME, &names), SYMFILE_NONE);
	program_free(d);
	symfile_free(f);
}

Test(filekeeper, a_keeper_that_is_stopped_is_waited_for_once)
{
	struct symfile *f = self();
	struct program *d, *later;

	start();
	cr_assert_eq(open_self(f, MAX, &d), 0);
	const pid_t keeper = child_of(getpid()), worker = the_worker();

	cr_assert_eq(kill(keeper, SIGSTOP), 0);
	expect_names(d, "outer");
	cr_assert_not(program_keeper_gone(), "it had no request");
	cr_assert_eq(kill(worker, SIGKILL), 0);
	cr_assert_eq(program_lookup(d, LEAVE, &names), SYMFILE_NONE);
	const uint64_t before_ns = clock_mono_ns();

	/* Dead now, even if it was not a moment ago. */
	for (int i = 0; i < 5; i++)
		cr_assert_eq(program_lookup(d, NAME, &names), SYMFILE_NONE);
	for (int i = 0; i < 5; i++)
		cr_assert_lt(open_self(f, MAX, &later), 0);
	cr_assert_lt(clock_mono_ns() - before_ns, 5000000000u, "a wait is 2 s");
	cr_assert(program_keeper_gone());
	kill(keeper, SIGKILL);
	program_free(d);
	symfile_free(f);
}
